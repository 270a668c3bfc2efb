"""Searches of a sweep: a grid, random draws, or Optuna's search near the most promising points.

A search is a generator: it yields batches of points and receives the values of the objectives for each. Batches never
depend on how many workers run them, or on which is done first, so the same sweep tries the same points anywhere; and a
search that is started again, and sent the same figures, proposes the same points.

Source: Bergstra et al., "Algorithms for Hyper-Parameter Optimization", NeurIPS 2011 (TPE).
"""

import itertools
import json
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.extras import require_extra
from fabrictune.foundation.seeds import stream, stream_key
from fabrictune.sweeps.axes import SweepAxis
from fabrictune.sweeps.schema import MAX_POINTS, RandomSearch, Sweep, TpeSearch

DRAWS_PER_POINT = 20  # before a small space counts as exhausted

AxisValues = tuple[Any, ...]  # one for each axis
PointCosts = tuple[float, ...] | None  # one for each objective, less is better; None where the point has none
Search = Generator[list[AxisValues], Sequence[PointCosts], None]


def start_search(sweep: Sweep) -> Search:
    """Return the search of a sweep, before its first batch; raises InputError, UnavailableError."""
    return SEARCHES[sweep.search.name](sweep)


def key_of_values(values: AxisValues) -> str:
    """Return a text that is the same for the same values, whatever they are: numbers, text, lists, mappings."""
    return json.dumps(values, sort_keys=True)


def num_points(sweep: Sweep) -> int:
    """Return how many points a sweep tries at most; raises InputError."""
    spec = sweep.search.spec
    if isinstance(spec, RandomSearch | TpeSearch):
        return spec.points
    count = math.prod(len(axis.levels()) for axis in sweep.vary)
    if count > MAX_POINTS:
        raise InputError(
            Mistake(
                where=sweep.where("vary"),
                found=f"a grid of {count:,} points",
                allowed=f"at most {MAX_POINTS:,}",
                next_step="take fewer values, or search at random: `search: {method: random, points: 1000}`",
            )
        )
    return count


def search_grid(sweep: Sweep) -> Search:
    """Yield all combinations at once, the last axis fastest."""
    yield list(itertools.product(*(axis.levels() for axis in sweep.vary)))


def search_randomly(sweep: Sweep) -> Search:
    """Yield independent draws at once; one that repeats is drawn again, while there are others."""
    random = stream(sweep.seed, "sweep", "random")
    drawn: dict[str, AxisValues] = {}
    num_wanted = num_points(sweep)
    for _ in range(num_wanted * DRAWS_PER_POINT):
        values = tuple(axis.at(share) for axis, share in zip(sweep.vary, random.random(len(sweep.vary)), strict=True))
        drawn.setdefault(key_of_values(values), values)
        if len(drawn) == num_wanted:
            break
    yield list(drawn.values())


def search_by_tpe(sweep: Sweep) -> Search:
    """Yield batches from Optuna's TPE sampler, of one or several objectives."""
    require_extra("optuna", extra="sweep", where=sweep.where("search"))
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    spec = sweep.search.spec
    sampler = optuna.samplers.TPESampler(
        seed=stream_key(sweep.seed, "sweep", "tpe") % 2**32,
        n_startup_trials=spec.startup,
        constant_liar=True,  # the points of a batch keep away from one another
    )
    study = optuna.create_study(sampler=sampler, directions=["minimize"] * len(sweep.objectives))
    for first in range(0, spec.points, spec.batch):
        trials = [study.ask() for _ in range(min(spec.batch, spec.points - first))]
        batch_costs = yield [tuple(_suggest(trial, axis) for axis in sweep.vary) for trial in trials]
        for trial, costs in zip(trials, batch_costs, strict=True):
            if costs is None:
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                study.tell(trial, list(costs))


def _suggest(trial: Any, axis: SweepAxis) -> Any:
    """Return the value of an axis that a trial proposes: a place along a range, or one of a list."""
    if axis.is_range:
        return axis.at(trial.suggest_float(axis.key, 0.0, 1.0))
    return axis.values[trial.suggest_categorical(axis.key, range(len(axis.values)))]


SEARCHES: Mapping[str, Callable[[Sweep], Search]] = {
    "grid": search_grid,
    "random": search_randomly,
    "tpe": search_by_tpe,
}
