"""Values far from the others, found robustly: the median and the median absolute deviation are not moved by outliers.

A value is an outlier if it is worse than the median of all by more than a share of that median, and by more than
several standard deviations, which the median absolute deviation estimates.

Source: Iglewicz and Hoaglin, "How to Detect and Handle Outliers", ASQC (1993), modified z-score.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median

import numpy as np

from fabrictune.foundation.robust import deviation as deviation_of


@dataclass(frozen=True, kw_only=True)
class Outlier:
    """A value that is worse than the others."""

    name: str
    own: float
    usual: float  # the median of all
    deviations: float  # from it, in standard deviations; infinite where the others do not differ

    @property
    def deviation_fraction(self) -> float:
        """How far it is from the median, as a share of that."""
        return abs(self.own - self.usual) / self.usual

    @property
    def distance(self) -> str:
        """The deviation in words."""
        return f"{self.deviations:.1f} standard deviations" if self.deviations < 1e6 else "the others do not differ"


def find_outliers(
    values: Mapping[str, float], *, deviation: float, spread: float, is_less_better: bool
) -> Iterator[Outlier]:
    """Yield the values that are worse than the median by `deviation` of it and by `spread` standard deviations."""
    usual = median(values.values())
    sigma = deviation_of(np.fromiter(values.values(), np.float64))
    for name, own in values.items():
        worse = own - usual if is_less_better else usual - own
        if worse > deviation * usual and worse > spread * sigma:
            deviations = worse / sigma if sigma else float("inf")
            yield Outlier(name=name, own=own, usual=usual, deviations=deviations)
