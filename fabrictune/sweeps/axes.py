"""Axes of a sweep: a key of the scenario, and the values it takes, written as in the scenario's file.

An axis is a list of values, or a range from `low` to `high`, linear or logarithmic. A value drawn from a range of
quantities is rounded to four figures, so that what a table shows is exactly what ran.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from fabrictune.foundation.errors import InputError, Mistake, UnitError
from fabrictune.foundation.settings.quantities import DURATION, PERCENTAGE, RATE, SIZE, Quantity
from fabrictune.foundation.units import PS_PER_NS

NUM_FIGURES = 4
QUANTITIES = (RATE, SIZE, PERCENTAGE, DURATION)


@dataclass(frozen=True, kw_only=True)
class SweepAxis:
    """One key, and what it is varied over."""

    key: str = field(metadata={"help": "key path in the scenario, as `engine.ecn.kmin`"})
    values: tuple[Any, ...] = field(default=(), metadata={"help": "the values themselves"})
    low: Any = field(default=None, metadata={"help": "lower end of a range, with its unit"})
    high: Any = field(default=None, metadata={"help": "upper end"})
    scale: Literal["linear", "log"] = field(default="linear", metadata={"help": "how a range is divided"})
    steps: int | None = field(default=None, metadata={"help": "values of a range that a grid takes, ends included"})

    def __post_init__(self) -> None:
        is_range = self.low is not None or self.high is not None
        if is_range == bool(self.values):
            raise InputError(
                Mistake(
                    where="key",
                    found=f"{self.key} without values, or with two kinds",
                    allowed="values, or low and high",
                )
            )
        if not is_range:
            self._check_values()
        else:
            self._check_range()

    def _check_values(self) -> None:
        texts = [repr(value) for value in self.values]
        if len(texts) < 2 or len(set(texts)) < len(texts):
            raise InputError(Mistake(where="values", found=", ".join(texts), allowed="two different values or more"))

    def _check_range(self) -> None:
        low, high = self._ends()
        if not low < high or (self.scale == "log" and low <= 0):
            allowed = "low below high" + (", and above 0 for a logarithmic scale" if self.scale == "log" else "")
            raise InputError(Mistake(where="low", found=f"{self.low} to {self.high}", allowed=allowed))
        if self.steps is not None and self.steps < 2:
            raise InputError(Mistake(where="steps", found=str(self.steps), allowed="2 or more"))

    @property
    def is_range(self) -> bool:
        """Whether the axis has ends rather than values."""
        return self.low is not None

    def levels(self) -> tuple[Any, ...]:
        """Return the values of a list, or those that divide a range into `steps`; raises InputError without these."""
        if not self.is_range:
            return self.values
        if self.steps is None:
            raise InputError(
                Mistake(
                    where=f"vary: {self.key}", found="a range without steps in a grid", next_step="add the key 'steps'"
                )
            )
        shares = [step / (self.steps - 1) for step in range(self.steps)]
        return tuple(dict.fromkeys(self.at(share) for share in shares))

    def at(self, share: float) -> Any:
        """Return the value that lies `share` (0 to 1) of the way along the axis."""
        if not self.is_range:
            return self.values[min(int(share * len(self.values)), len(self.values) - 1)]
        low, high = self._ends()
        value = low * (high / low) ** share if self.scale == "log" else low + (high - low) * share
        if share in (0, 1):
            return self.high if share else self.low
        quantity = _quantity(self.low)
        rounded = float(f"{value:.{NUM_FIGURES}g}")
        if quantity is not None:
            return quantity.show(_whole(rounded, quantity))
        return round(rounded) if isinstance(self.low, int) and isinstance(self.high, int) else rounded

    @property
    def has_order(self) -> bool:
        """Whether the values are numbers or quantities of one kind, of which one can be more than another."""
        return self.is_range or _numbers(self.values) is not None

    def position(self, value: Any) -> float:
        """Return a number that orders the axis's values: the quantity, or the place in a list without order."""
        if self.has_order:
            return _number(value, _quantity(self.low if self.is_range else self.values[0]))
        return float([repr(own) for own in self.values].index(repr(value)))

    def _ends(self) -> tuple[float, float]:
        """Return both ends as numbers; raises InputError where they are not of one kind."""
        numbers = _numbers((self.low, self.high))
        if numbers is None:
            allowed = "two numbers, rates, sizes, durations or percentages"
            raise InputError(Mistake(where="low", found=f"{self.low!r} to {self.high!r}", allowed=allowed))
        return numbers[0], numbers[1]


def _numbers(values: Sequence[Any]) -> list[float] | None:
    """Return values as numbers, None where they are not quantities of one kind."""
    try:
        quantity = _quantity(values[0])
        return [_number(value, quantity) for value in values]
    except (UnitError, TypeError):
        return None


def _quantity(value: Any) -> Quantity | None:
    """Return what a text with a unit is; None for a plain number. Raises UnitError for any other text."""
    if not isinstance(value, str):
        return None
    for quantity in QUANTITIES[:-1]:
        try:
            quantity.parse(value)
        except UnitError:
            continue
        return quantity
    QUANTITIES[-1].parse(value)
    return QUANTITIES[-1]


def _number(value: Any, quantity: Quantity | None) -> float:
    if quantity is not None:
        return float(quantity.parse(str(value)))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(value)
    return float(value)


def _whole(value: float, quantity: Quantity) -> float:
    """Return the nearest value that a key takes: whole bits a second, bytes or nanoseconds, and any percentage."""
    if quantity is PERCENTAGE:
        return value
    unit = PS_PER_NS if quantity is DURATION else 1
    return max(round(value / unit), 1) * unit
