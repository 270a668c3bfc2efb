"""Answers of studies over hash seeds: the best variant, design or plan, its gain, and its settings."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import format_fraction
from fabrictune.foundation.wording import some
from fabrictune.reports.answers.answer import Answer, Settings, points, spread
from fabrictune.reports.blocks import duration, plural
from fabrictune.reports.record_view import Run
from fabrictune.reports.seed_studies import EFFECTS, STUDIES
from fabrictune.reports.selection import select

GAINS = select("plan_gains", "job", "simulated_before_ps", "simulated_after_ps")
WHOLE = "all"  # the row of all traffic
PLAN_FILES = "placement.csv, source_ports.csv and planned.yaml beside the record have the plan as it is"


@dataclass(frozen=True)
class Figures:
    """One row of outcomes."""

    outcomes: Columns
    row: int

    def value(self, name: str, end: str = "") -> float:
        """Return a figure, or an end of its interval."""
        return float(self.outcomes[f"{name}{end}"][self.row])

    def shown(self, name: str) -> str:
        """Return a share with its interval."""
        return spread((self.value(name, end) for end in ("", "_low", "_high")), format_fraction)

    def is_above(self, other: "Figures") -> bool:
        """Return whether more traffic gets through than in another, or else to the slowest flow, and surely so."""
        names = ("throughput_fraction", "slowest_fraction")
        return any(self.value(name, "_low") > other.value(name, "_high") for name in names)


def whatif_answer(run: Run) -> Answer | None:
    """Return the variant that lets most of the traffic through."""
    return _best(run, "variant", others="the scenario as it is")


def factorial_answer(run: Run) -> Answer | None:
    """Return the combination of factors that lets most of the traffic through, and the strongest factor."""
    answer, effects = _best(run, "design", others="none of the factors"), run.rows(EFFECTS)
    if answer is None or effects is None:
        return answer
    rows = np.flatnonzero(effects["metric"] == "throughput_fraction")
    if not len(rows):
        return answer
    row = int(rows[np.argmax(np.abs(effects["value"][rows]))])
    ends = (float(effects[end][row]) for end in ("value", "low", "high"))
    strongest = f"{answer.sentence} Strongest effect on flow throughput: {effects['effect'][row]}, "
    return Answer(sentence=f"{strongest}{spread(ends, points)}.", settings=answer.settings)


def plan_answer(run: Run) -> Answer | None:
    """Return what the steps that the plan takes bring, and what to set for it."""
    steps = run.rows(STUDIES["step"])
    if steps is None:
        return None
    sentences = [
        *_raised(steps, knows_seeds=False, what="Over unknown hash seeds"),
        *_raised(steps, knows_seeds=True, what="With the scenario's own hash seeds"),
    ]
    if not sentences:
        return Answer(sentence="No step that was tried lets more of the traffic through.")
    return Answer(sentence=" ".join((*sentences, *_simulated_gain(run))), settings=_settings_of_plan(run))


def _raised(steps: Columns, *, knows_seeds: bool, what: str) -> Iterator[str]:
    """Yield what the steps that are taken bring, of those measured over seeds or for known ones."""
    taken = np.flatnonzero((steps["knows_seeds"] == knows_seeds) & (steps["is_taken"] == 1)).tolist()
    if len(taken) < 2:  # the first is what there was before
        return
    first, last = Figures(steps, taken[0]), Figures(steps, taken[-1])
    gains = (
        f"{name} from {first.shown(column)} to {last.shown(column)}"
        for name, column in (("flow throughput", "throughput_fraction"), ("of the slowest flow", "slowest_fraction"))
    )
    yield f"{what} the plan raises {', '.join(gains)}, by: {some(str(steps['step'][row]) for row in taken[1:])}."


def _best(run: Run, what: str, *, others: str) -> Answer | None:
    """Return the row with the highest flow throughput, beside the first row."""
    outcomes = run.rows(STUDIES[what])
    if outcomes is None:
        return None
    order = np.lexsort((-outcomes["slowest_fraction"], -outcomes["throughput_fraction"])).tolist()
    base, best, count = Figures(outcomes, 0), Figures(outcomes, order[0]), len(order)
    shown = f"flow throughput {best.shown('throughput_fraction')}, slowest flow {best.shown('slowest_fraction')}"
    if best.row == 0:
        return Answer(sentence=f"None of {plural(count - 1, what)} lets more through than {others}: {shown}.")
    gains = (points(best.value(name) - base.value(name)) for name in ("throughput_fraction", "slowest_fraction"))
    name, is_clear = str(outcomes[what][best.row]), best.is_above(base)
    near = [str(outcomes[what][row]) for row in order[1:] if row and not best.is_above(Figures(outcomes, row))]
    sentences = [
        f"Best of {plural(count - 1, what)}: {name}, {shown}.",
        f"Over {others}: {' and '.join(gains)}{'' if is_clear else '; the intervals overlap, so it may be chance'}.",
        *([f"Not surely behind it: {some(near)}."] if near and is_clear else []),
    ]
    return Answer(sentence=" ".join(sentences), settings=_settings_of(run, name))


def _settings_of(run: Run, name: str) -> tuple[Settings, ...]:
    """Return what a variant or design sets in the scenario, where its record says so."""
    changes = run.record.run.get("changes")
    own = changes.get(name) if isinstance(changes, Mapping) else None
    if not isinstance(own, Mapping) or not own:
        return ()
    return (Settings.of(f"To apply in the scenario for {name}", _lines(own)),)


def _settings_of_plan(run: Run) -> tuple[Settings, ...]:
    changes = run.record.run.get("changes")
    lines = _lines(changes) if isinstance(changes, Mapping) else iter(())
    return (Settings.of("To apply in the scenario", (*lines, f"# {PLAN_FILES}")),)


def _lines(settings: Mapping[str, object]) -> Iterator[str]:
    show = partial(json.dumps, ensure_ascii=False, default=str)
    yield from (f"{key}: {value if isinstance(value, str) else show(value)}" for key, value in settings.items())


def _simulated_gain(run: Run) -> Iterator[str]:
    """Yield what the whole traffic gains packet by packet, where that was simulated."""
    gains = run.rows(GAINS)
    if gains is None:
        return
    for row in np.flatnonzero(gains["job"] == WHOLE).tolist():
        before, after = (float(gains[f"simulated_{when}_ps"][row]) for when in ("before", "after"))
        yield f"Simulated packet by packet: {duration(before)} before, {duration(after)} with it."
