"""Calibration: all series fitted at once, for the parameters that they share and a line for each further segment.

The first segment of a series has its latencies and the last its rate; a segment in between has a line of its own. What
the times do not tell apart is held at the base profile's value. A value that its interval calls negative is refused.

Shapes: E points, P columns of the design.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fabrictune.collectives.nccl.tuning.duration import LATENCY_UNSURE
from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.units import PS_PER_NS, format_bytes, format_duration
from fabrictune.validate.fit.least_squares import LinearFit, dependent_columns, fit_linear, neighbours
from fabrictune.validate.fit.segments import Segment, find_segments
from fabrictune.validate.fit.series import Series
from fabrictune.validate.fit.terms import PARAMETERS, Terms

# Held first where times do not tell parameters apart: what is known best of other sources, and matters least.
HELD_FIRST = (
    *("nvlink.latency", "network.message", "wire.latency", "network.latency"),
    *("wire.rate", "nvlink.collective", "network.rate"),
)
_MOST_NAMED = 4
CONSTANTS = "constants"  # column of what a program takes beside latencies, by its own model
CONSTANTS_UNSURE = LATENCY_UNSURE
_SURE_MARGINS = 2.5  # of a 90 % interval: chance is further off once in ten thousand fits
_LEAST_PART = 0.1  # of a time: lines are off by so much at single sizes of published curves


@dataclass(frozen=True, kw_only=True)
class Modelled:
    """A series, its segments and its terms."""

    series: Series
    terms: Terms
    segments: tuple[Segment, ...]


@dataclass(frozen=True, kw_only=True)
class Known:
    """A value of the base profile, and half of its 90 % interval over it."""

    value: float
    uncertainty_fraction: float


@dataclass(frozen=True, kw_only=True)
class Line:
    """Time of a segment: `intercept_ns` and that of each byte, from the smallest of its sizes."""

    from_bytes: int
    intercept_ns: float
    byte_ns: float


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A parameter's value and 90 % interval, in nanoseconds or nanoseconds a byte; what it was held at, if it was."""

    name: str
    value: float
    low: float
    high: float
    num_points: int  # whose time it has a part in
    least_bytes: int
    most_bytes: int
    share: float  # largest part of a time that latencies have, of a latency; that the byte has, of a rate
    is_held: bool = False
    aliases: tuple[str, ...] = ()  # parameters of which only a sum with this one shows

    @property
    def relative_margin(self) -> float:
        """Half of the interval over the value."""
        return (self.high - self.low) / 2 / self.value if self.value > 0 else np.inf


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What was fitted."""

    estimates: tuple[Estimate, ...]
    correlations: Mapping[tuple[str, str], float]
    modelled: tuple[Modelled, ...]
    lines: tuple[tuple[Line, ...], ...]  # of each series, by segment
    spread: float  # of relative errors
    autocorrelation: float
    num_points: int
    num_free: int
    notes: tuple[str, ...] = ()

    def time_ns(self, number: int, size_bytes: float) -> float:
        """Return the time of a size in a series, by the line of the segment in which it lies."""
        lines = self.lines[number]
        line = next((line for line in reversed(lines) if size_bytes >= line.from_bytes), lines[0])
        return line.intercept_ns + line.byte_ns * size_bytes


@dataclass(kw_only=True)
class _Design:
    """Rows and columns of the fit; a column is a parameter's, or one of a segment alone: `slope 0.1`."""

    modelled: Sequence[Modelled]
    columns: dict[str, FloatArray] = field(default_factory=dict)
    held: dict[str, float] = field(default_factory=dict)
    time_E: FloatArray = field(init=False)
    size_E: FloatArray = field(init=False)
    segment_E: list[tuple[int, int]] = field(init=False)

    def __post_init__(self) -> None:
        self.time_E = np.concatenate([one.series.time_ns for one in self.modelled])
        self.size_E = np.concatenate([one.series.size_bytes for one in self.modelled]).astype(np.float64)
        self.segment_E = [
            (number, order)
            for number, one in enumerate(self.modelled)
            for order, segment in enumerate(one.segments)
            for _ in range(len(segment))
        ]
        for number, one in enumerate(self.modelled):
            for order in range(len(one.segments)):
                self._add_segment(number, order, one.terms, is_last=order == len(one.segments) - 1)

        if CONSTANTS in self.columns:
            self.held[CONSTANTS] = 1.0

    def _add_segment(self, number: int, order: int, terms: Terms, *, is_last: bool) -> None:
        is_in_E = np.array([segment == (number, order) for segment in self.segment_E], np.float64)
        parts: list[tuple[str, FloatArray]] = []
        if order == 0 and terms.latency:
            parts += [(name, count * is_in_E) for name, count in terms.latency.items()]
            parts += [(CONSTANTS, terms.constant_ns * is_in_E)] if terms.constant_ns else []
        else:
            parts.append((f"intercept {number}.{order}", is_in_E))
        if is_last:
            parts += [(name, count * is_in_E * self.size_E) for name, count in terms.bytes.items()]
        else:
            parts.append((f"slope {number}.{order}", is_in_E * self.size_E))
        for name, part_E in parts:
            self.columns[name] = self.columns.get(name, np.zeros(len(self.size_E))) + part_E

    @property
    def free(self) -> list[str]:
        return [name for name in self.columns if name not in self.held]

    def fit(self) -> LinearFit:
        """Return the fit of the columns that are not held, to what the others leave of the times."""
        held_E = sum((self.held[name] * self.columns[name] for name in self.held), np.zeros(len(self.time_E)))
        return fit_linear(self._matrix(), self.time_E - held_E, neighbours(self.segment_E))

    def dependent(self) -> list[list[str]]:
        names = self.free
        return [[names[column] for column in group] for group in dependent_columns(self._matrix(), self.time_E)]

    def _matrix(self) -> FloatArray:
        return np.stack([self.columns[name] for name in self.free], axis=1)


def model_series(series: Series, terms: Terms) -> Modelled:
    """Return a series with its segments."""
    return Modelled(series=series, terms=terms, segments=tuple(find_segments(series.size_bytes, series.time_ns)))


def calibrate(modelled: Sequence[Modelled], base: Mapping[str, Known]) -> Calibration:
    """Return the fit of all series; `base` has the values of all PARAMETERS, at which those are held that
    the times do not determine; its uncertainty is part of the others' intervals.

    Raises InputError for too few points or sizes, and for values that the times make negative.
    """
    try:
        return _calibrate(modelled, base)
    except InputError:
        whole = [replace(one, segments=(Segment(first=0, end=len(one.series)),)) for one in modelled]
        return _calibrate(whole, base)


def _calibrate(modelled: Sequence[Modelled], base: Mapping[str, Known]) -> Calibration:
    design = _Design(modelled=modelled)
    base = {**base, CONSTANTS: Known(value=1.0, uncertainty_fraction=CONSTANTS_UNSURE)}
    _refuse_too_few(design)
    aliases = _hold_dependent(design, base)
    summed = {name for held, group in aliases.items() for name in (held, *group)}
    if CONSTANTS in design.held:
        summed |= {name for one in modelled if one.terms.constant_ns for name in one.terms.latency}
    fit = _fit_with_signs(design, base, summed)
    return Calibration(
        estimates=tuple(_estimates(design, fit, aliases, base)),
        correlations=_correlations(design, fit),
        modelled=tuple(modelled),
        lines=tuple(tuple(_lines(design, fit, number)) for number in range(len(modelled))),
        spread=fit.spread,
        autocorrelation=fit.autocorrelation,
        num_points=len(design.time_E),
        num_free=fit.num_free,
    )


def _refuse_too_few(design: _Design) -> None:
    """Raise InputError for one size alone, and for fewer points than parameters."""
    names = [name for name in design.columns if name in PARAMETERS]
    where = ", ".join(dict.fromkeys(str(path) for one in design.modelled for path in one.series.sources))
    num_points, sizes = len(design.time_E), np.unique(design.size_E)
    if len(sizes) == 1:
        found = f"one size only, {format_bytes(sizes[0])}"
        next_step = "measure from 8 B to 1 GB (-b 8 -e 1G -f 2): a latency and a rate are told apart by sizes"
        raise InputError(Mistake(where=where, found=found, allowed="two sizes or more", next_step=next_step))
    if num_points < len(names):
        found = f"{num_points} points, for {len(names)} parameters: {', '.join(names)}"
        raise InputError(
            Mistake(where=where, found=found, allowed="a point or more for each", next_step="measure more sizes")
        )


def _hold_dependent(design: _Design, base: Mapping[str, Known]) -> dict[str, tuple[str, ...]]:
    """Hold columns until the others can be told apart; return for each parameter held those it stands with."""
    aliases: dict[str, tuple[str, ...]] = {}
    while groups := design.dependent():
        group = groups[0]
        own = [name for name in group if name not in PARAMETERS]
        if own:
            design.held[own[-1]] = 0.0
            continue
        name = next(name for name in HELD_FIRST if name in group)
        aliases[name] = tuple(other for other in group if other != name)
        design.held[name] = base[name].value
    if not any(name in PARAMETERS for name in design.free):
        raise InputError(_none_left(design))
    return aliases


def _fit_with_signs(design: _Design, base: Mapping[str, Known], aliased: Collection[str]) -> LinearFit:
    """Return the fit in which no time falls with the size, and no parameter is negative; raises InputError.

    One that stands with a value held at the base's, or with constants, is held, too: those may be what is wrong.
    """
    while design.free:
        fit = design.fit()
        names = design.free
        falling = [name for name, value in zip(names, fit.value_P, strict=True) if name[:5] == "slope" and value < 0]
        if falling:
            design.held |= dict.fromkeys(falling, 0.0)
            continue
        negative = [row for row, name in enumerate(names) if name in PARAMETERS and fit.value_P[row] <= 0]
        if not negative:
            return fit
        worst = min(negative, key=lambda row: fit.value_P[row] + fit.margin_P[row])
        if names[worst] not in aliased and _is_surely_negative(design, names[worst], fit, worst):
            raise InputError(_negative(design, names[worst], fit, worst))
        design.held[names[worst]] = base[names[worst]].value
    raise InputError(_none_left(design))


def _none_left(design: _Design) -> Mistake:
    where = ", ".join(dict.fromkeys(str(path) for one in design.modelled for path in one.series.sources))
    names = ", ".join(name for name in design.columns if name in PARAMETERS)
    next_step = "add a run of another operation, of other numbers of ranks, or of more sizes"
    return Mistake(where=where, found=f"times that determine none of {names}", next_step=next_step)


def _is_surely_negative(design: _Design, name: str, fit: LinearFit, row: int) -> bool:
    """Return whether neither chance nor the small errors that any line leaves can have made a value negative."""
    part = float((design.columns[name] * -fit.value_P[row] / design.time_E).max())
    return bool(fit.value_P[row] + _SURE_MARGINS * fit.margin_P[row] < 0) and part > _LEAST_PART


def _negative(design: _Design, name: str, fit: LinearFit, row: int) -> Mistake:
    """Return the mistake of times that make a parameter negative, with the sizes that do it most."""
    column_E = design.columns[name]
    part_E = design.columns[name] * abs(fit.value_P[row]) / design.time_E
    sizes = design.size_E[np.argsort(-part_E, kind="stable")[:_MOST_NAMED]]
    one = design.modelled[design.segment_E[int(np.flatnonzero(column_E)[0])][0]]
    shown = ", ".join(format_bytes(size) for size in sorted(set(sizes)))
    value, margin = fit.value_P[row], fit.margin_P[row]
    if PARAMETERS[name].is_rate:
        what = "a negative rate: times that fall as the size grows"
        next_step = f"measure {shown} again, with more iterations (-n 100)"
    else:
        ends = [format_duration(each * PS_PER_NS) for each in (value - margin, value + margin)]
        what = f"a negative latency, {ends[0]} to {ends[1]}: times that grow faster than the size"
        next_step = f"measure {shown} again, or leave out sizes where another protocol or a slower memory begins"
    return Mistake(
        where=", ".join(map(str, one.series.sources)),
        found=f"{one.series.key.label}: {name} comes out as {what}; most by the sizes {shown}",
        allowed="0 or more",
        next_step=next_step,
    )


def _estimates(
    design: _Design, fit: LinearFit, aliases: Mapping[str, tuple[str, ...]], base: Mapping[str, Known]
) -> Iterator[Estimate]:
    margin_of = dict(zip(design.free, _margins(design, fit, base).tolist(), strict=True))
    value_of = dict(zip(design.free, fit.value_P.tolist(), strict=True)) | design.held
    parameters = [name for name in design.columns if name in PARAMETERS]
    latency_E = sum(
        (design.columns[name] * value_of[name] for name in parameters if not PARAMETERS[name].is_rate),
        design.columns.get(CONSTANTS, np.zeros(len(design.time_E))),
    )
    for name in parameters:
        column_E, value, margin = design.columns[name], value_of[name], margin_of.get(name, np.inf)
        rows = np.flatnonzero(column_E)
        part_E = column_E * value if PARAMETERS[name].is_rate else latency_E
        yield Estimate(
            name=name,
            value=value,
            low=max(0.0, value - margin),
            high=value + margin,
            num_points=len(rows),
            least_bytes=int(design.size_E[rows].min()),
            most_bytes=int(design.size_E[rows].max()),
            share=float((part_E[rows] / design.time_E[rows]).max()),
            is_held=name in design.held,
            aliases=_aliases_of(name, aliases),
        )


def _margins(design: _Design, fit: LinearFit, base: Mapping[str, Known]) -> FloatArray:
    """Return half of the 90 % intervals, with what the uncertainty of held parameters adds."""
    square_P = fit.margin_P**2
    for name, value in design.held.items():
        if name in base:
            square_P = square_P + (fit.response_P(design.columns[name] * value * base[name].uncertainty_fraction)) ** 2
    margin_P: FloatArray = np.sqrt(square_P)
    return margin_P


def _aliases_of(name: str, aliases: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the parameters that the times do not tell from this one."""
    groups = [{held, *group} for held, group in aliases.items()]
    return tuple(sorted(set().union(*(group for group in groups if name in group)) - {name}))


def _correlations(design: _Design, fit: LinearFit) -> dict[tuple[str, str], float]:
    names = design.free
    rows = [row for row, name in enumerate(names) if name in PARAMETERS]
    return {
        (names[row], names[other]): float(fit.correlation_PP[row, other])
        for place, row in enumerate(rows)
        for other in rows[place + 1 :]
    }


def _lines(design: _Design, fit: LinearFit, number: int) -> Iterator[Line]:
    """Yield the lines of a series; one that begins between two sizes begins at their geometric mean."""
    one = design.modelled[number]
    value = dict(zip(design.free, fit.value_P.tolist(), strict=True)) | design.held
    sizes = one.series.size_bytes
    for order, segment in enumerate(one.segments):
        is_last = order == len(one.segments) - 1
        own = value.get(f"intercept {number}.{order}", 0.0)
        latencies = one.terms.latency if order == 0 else {}
        own += one.terms.constant_ns if order == 0 and latencies else 0.0
        byte_ns = value.get(f"slope {number}.{order}", 0.0)
        rates = one.terms.bytes if is_last else {}
        first = segment.first
        yield Line(
            from_bytes=round(math.sqrt(sizes[first - 1]) * math.sqrt(sizes[first])) if first else 0,
            intercept_ns=own + sum(count * value[name] for name, count in latencies.items()),
            byte_ns=byte_ns + sum(count * value[name] for name, count in rates.items()),
        )
