"""Which points a search proposes."""

from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.settings.binding import Chosen
from fabrictune.sweeps.axes import SweepAxis
from fabrictune.sweeps.schema import GridSearch, Objective, RandomSearch, Sweep, TpeSearch
from fabrictune.sweeps.search import AxisValues, num_points, start_search

AXES = (SweepAxis(key="a", values=(1, 2)), SweepAxis(key="b", low=0.0, high=1.0, steps=3))


def sweep(name: str, spec: object, *, axes: tuple[SweepAxis, ...] = AXES, seed: int = 0) -> Sweep:
    """Return a sweep with that search."""
    return Sweep(
        name="s",
        scenario=Path("s.yaml"),
        vary=axes,
        search=Chosen(name=name, spec=spec),
        seed=seed,
        objectives=(Objective(metric="completion_time.max"),),
    )


def run(wanted: Sweep, *, best: float) -> list[AxisValues]:
    """Return all points of a search that is told how far each is from `b = best`."""
    search, found = start_search(wanted), []
    batch: list[AxisValues] | None = next(search)
    while batch is not None:
        found += batch
        try:
            batch = search.send([(abs(values[1] - best),) for values in batch])
        except StopIteration:
            batch = None
    return found


def test_a_grid_is_every_combination_the_last_axis_fastest() -> None:
    """2 x 3 points."""
    grid = sweep("grid", GridSearch())
    assert run(grid, best=0) == [(1, 0.0), (1, 0.5), (1, 1.0), (2, 0.0), (2, 0.5), (2, 1.0)]
    assert num_points(grid) == 6


def test_random_points_repeat_by_seed_and_differ_among_themselves() -> None:
    """20 draws, none twice; another seed draws others; two keys of two values give four."""
    wanted = sweep("random", RandomSearch(points=20))
    points = run(wanted, best=0)
    assert len(set(points)) == 20
    assert run(wanted, best=0) == points
    assert run(sweep("random", RandomSearch(points=20), seed=1), best=0) != points
    few = (AXES[0], SweepAxis(key="b", values=(0, 1)))
    assert len(run(sweep("random", RandomSearch(points=20), axes=few), best=0)) == 4


def test_tpe_goes_where_it_was_better_and_can_be_replayed() -> None:
    """Told the same, it proposes the same; told that b = 0.9 is best, its later half lies nearer than its first."""
    pytest.importorskip("optuna")
    wanted = sweep("tpe", TpeSearch(points=40, batch=4, startup=8))
    points = run(wanted, best=0.9)
    assert len(points) == 40
    assert run(wanted, best=0.9) == points
    distances = [abs(values[1] - 0.9) for values in points]
    assert sum(distances[20:]) < sum(distances[:20]) / 2


def test_a_grid_beyond_bounds_is_refused_before_it_is_made() -> None:
    """1000 x 1000 points."""
    axes = tuple(SweepAxis(key=key, low=0.0, high=1.0, steps=1000) for key in "ab")
    with pytest.raises(InputError, match="1,000,000 points"):
        num_points(sweep("grid", GridSearch(), axes=axes))


def test_a_grid_over_a_range_without_steps_is_refused() -> None:
    """How many values it should take is not for us to say."""
    with pytest.raises(InputError, match="add the key 'steps'"):
        num_points(sweep("grid", GridSearch(), axes=(SweepAxis(key="a", low=0.0, high=1.0),)))
