"""Answers about a job's network and its prediction: which change gains most, and where more stops to matter."""

from collections.abc import Iterator

import numpy as np

from fabrictune.foundation.units import format_duration, format_number, format_rate
from fabrictune.reports.answers.answer import Answer, change, outcome, spread
from fabrictune.reports.blocks import plural
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

ENDS = ("", "_low", "_high")
VARIANTS = select(
    *("network_variants", "family", "value", "step_ps", "step_low_ps", "step_high_ps", "is_base"),
    *("change_fraction", "change_low_fraction", "change_high_fraction"),
)
KNEES = select("network_knees", "family", "amount", "most", "unit")
CHANGES = select("step_changes", "change", "step_ps", *(f"gain_fraction{end}" for end in ENDS))
BEYOND = -1.0  # in place of an amount beyond all that was tried


def network_answer(run: Run) -> Answer | None:
    """Return the variant with the shortest step, and from where on more of each thing does not matter."""
    variants = run.rows(VARIANTS)
    if variants is None:
        return None
    best = int(np.argmin(variants["step_ps"]))
    step = spread((float(variants[f"step{end}_ps"][best]) for end in ENDS), format_duration, level="90 %")
    name = f"{variants['family'][best]} {variants['value'][best]}".strip()
    changed = spread((float(variants[f"change{end}_fraction"][best]) for end in ENDS), change, level="90 %")
    count = plural(len(variants["family"]) - 1, "variant")
    sentences = [
        f"None of {count} is faster than the job as it is: {step}."
        if variants["is_base"][best]
        else f"Fastest of {count}: {name}, {step}, {changed} against the job as it is."
        + (" Its interval reaches 0, so it may be chance." if variants["change_high_fraction"][best] >= 0 else ""),
        *_knees(run),
    ]
    return Answer(sentence=" ".join(sentences))


def prediction_answer(run: Run) -> Answer | None:
    """Return how long a step is expected to take, and the change that gains most."""
    figures, changes = outcome(run), run.rows(CHANGES)
    sentences = []
    if "step_ps" in figures:
        ends = (figures.get(f"step{end}_ps", figures["step_ps"]) for end in ENDS)
        sentences.append(f"A step is expected to take {spread(ends, format_duration, level='90 %')}.")
    if changes is not None:
        best = int(np.argmax(changes["gain_fraction"]))
        gain = spread((float(changes[f"gain_fraction{end}"][best]) for end in ENDS), change, level="90 %")
        sentences.append(
            f"Of {plural(len(changes['change']), 'change')} most gains: {changes['change'][best]}, {gain}."
        )
    return Answer(sentence=" ".join(sentences)) if sentences else None


def _knees(run: Run) -> Iterator[str]:
    knees = run.rows(KNEES)
    columns = () if knees is None else (knees[name].tolist() for name in KNEES.columns)
    for family, amount, most, unit in zip(*columns, strict=True):
        if amount == BEYOND:
            yield f"{family}: matters up to {_amount(most, unit)}, the most that was tried."
        else:
            yield f"{family}: from {_amount(amount, unit)} on, more of it gains under 1 %."


def _amount(amount: float, unit: str) -> str:
    return format_rate(amount) if unit in ("bps", "bit/s") else f"{format_number(amount)} {unit}".strip()
