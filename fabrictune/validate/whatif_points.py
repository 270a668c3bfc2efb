"""Variants of a job's network, one thing changed at a time, and where more of it stops to matter.

A *family* changes one thing over some values. Of each variant the step, its interval, its ratio to the job as it is,
and what it is waited for by axis. Families whose values have an order, from scarce to ample, have a *knee*: the least
value from which on every step is within 1 % of that of the most ample one tried.

Shapes: V values of a family from scarce to ample, D draws (seeds, or profiles), each of which asks the same question.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.units import format_rate

NIC_RATE, OVERSUBSCRIPTION, TORS, RAILS = "NIC rate", "oversubscription", "ToRs a set", "NICs a host"
MATTERS = 0.01  # of the step


@dataclass(frozen=True, kw_only=True)
class WhatIfPoint:
    """A variant of one family, or the job as it is."""

    family: str
    value: str
    amount: float  # where the family has an order: more of it is another network; 0 elsewhere
    step_ps: float
    step_low_ps: float
    step_high_ps: float
    change_fraction: float  # of the step against the job as it is
    change_low_fraction: float
    change_high_fraction: float
    is_base: bool
    shares: Mapping[str, float] = field(default_factory=dict)  # of the step, by axis of the job


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A variant without a result."""

    family: str
    value: str
    reason: str
    is_unfinished: bool = False  # it ran, and transfers never completed


@dataclass(frozen=True, kw_only=True)
class Knee:
    """Where a family stops to matter, with its interval; infinite where it matters as far as was tried."""

    family: str
    amount: float
    low: float
    high: float
    most: float  # that was tried
    is_tried_value: bool  # not one between two of them


def knee_amount(amount_V: FloatArray, ratio_V: FloatArray, *, is_between: bool) -> float:
    """Return the least amount from which on each ratio to the most ample step is at most 1 + MATTERS.

    `ratio_V` ends with 1. Between two amounts the excess is a straight line in the amount's logarithm. Where the least
    that was tried is enough, that one; infinite where only the most ample is, so that more may still matter.
    """
    is_enough_V = ratio_V <= 1 + MATTERS
    first = len(is_enough_V) - int(np.argmin(is_enough_V[::-1])) if not is_enough_V.all() else 0
    if first == len(ratio_V) - 1:
        return math.inf
    if first == 0 or not is_between:
        return float(amount_V[first])
    before, after = ratio_V[first - 1] - 1, ratio_V[first] - 1
    part = (before - MATTERS) / (before - after)
    return float(amount_V[first - 1] * (amount_V[first] / amount_V[first - 1]) ** part)


def spread_of_seeds(base: float, knees: Sequence[float]) -> tuple[float, float]:
    """Return the least and the most of the knees of single seeds, and of that of their means."""
    return min(base, *knees), max(base, *knees)


def spread_of_sources(base: float, knees: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return an interval from knees with each source at either end of its own: roots of the sums of squares of logs."""
    if not math.isfinite(base):
        return min(base, *(knee for pair in knees for knee in pair)), base
    low = math.hypot(*(max(0.0, math.log(base / min(pair))) for pair in knees if math.isfinite(min(pair))))
    if any(math.isinf(max(pair)) for pair in knees):
        return base * math.exp(-low), math.inf
    return base * math.exp(-low), base * math.exp(math.hypot(*(max(0.0, math.log(max(pair) / base)) for pair in knees)))


def unit_of(family: str) -> str:
    """Return the unit of a family's amounts, "" for numbers without one and quantities of a key."""
    return {NIC_RATE: "bit/s", OVERSUBSCRIPTION: "up over down"}.get(family, "")


def amount_text(family: str, amount: float) -> str:
    """Return an amount as the family's values are written."""
    if family == NIC_RATE:
        return format_rate(float(f"{amount:.3g}"))
    return f"{1 / amount:g}:1" if family == OVERSUBSCRIPTION else f"{amount:g}"
