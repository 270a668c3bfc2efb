"""N equal flows, each on one of M equal links by an ideal hash: what collisions cost, exactly.

The loads of the links are multinomial. Given their sum they are independent Poisson variables, so the chance that no
link has more than k flows is a coefficient of the M-th power of a Poisson series cut off at k: M-fold convolution of
positive numbers, exact to rounding even where the chance is 1e-30. The rest follows from it, and from the binomial load
of one link.

A link of capacity c, in flows, gives each of its n flows the share min(1, c / n). No link holds back another.

Source: Feller, "An introduction to probability theory", vol. 1, II.5 and IX (occupancy); the Poisson form is classical.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from foundation.errors import InputError, Mistake

MAX_FLOWS = 4096  # above, convolutions take minutes
NEGLIGIBLE = 1e-15


@dataclass(frozen=True, kw_only=True)
class UniformHashing:
    """N flows over M links of a capacity given in flows."""

    num_flows: int
    num_links: int
    capacity_flows: float = 1.0

    def __post_init__(self) -> None:
        mistakes = [
            Mistake(where=where, found=str(value), allowed=allowed)
            for where, value, allowed, is_met in (
                ("num_flows", self.num_flows, f"1 to {MAX_FLOWS}", 1 <= self.num_flows <= MAX_FLOWS),
                ("num_links", self.num_links, "1 or more", self.num_links >= 1),
                ("capacity_flows", self.capacity_flows, "above zero", self.capacity_flows > 0),
            )
            if not is_met
        ]
        if mistakes:
            raise InputError(*mistakes)

    @property
    def no_overload_probability(self) -> float:
        """Chance that no link has more flows than its capacity; with capacity 1 the birthday problem's."""
        return self.at_most_probability(math.floor(self.capacity_flows + 1e-9))

    def at_most_probability(self, most: int) -> float:
        """Return the chance that every link has `most` flows at most."""
        mean = self.num_flows / self.num_links
        cut = _poisson(mean, min(most, self.num_flows))
        all_links = _convolution_power(cut, self.num_links, self.num_flows + 1)
        whole = _poisson(float(self.num_flows), self.num_flows)[-1]
        return min(1.0, float(all_links[self.num_flows] / whole)) if len(all_links) > self.num_flows else 0.0

    @cached_property
    def max_load_probability(self) -> NDArray[np.float64]:
        """Chance that the most loaded link has 0, 1, ... N flows; shape (N + 1,)."""
        at_most = np.ones(self.num_flows + 1)
        at_most[0] = 0.0
        for most in range(1, self.num_flows + 1):
            at_most[most] = self.at_most_probability(most)
            if at_most[most] > 1 - NEGLIGIBLE:
                break
        probability: NDArray[np.float64] = np.maximum(np.diff(at_most, prepend=0.0), 0.0)
        return probability

    @property
    def expected_max_load(self) -> float:
        """Flows of the most loaded link, on average."""
        return float(self.max_load_probability @ np.arange(self.num_flows + 1))

    def max_load_quantile(self, probability: float) -> int:
        """Return the load that the most loaded link exceeds with no more than one minus this probability."""
        return int(np.searchsorted(np.cumsum(self.max_load_probability), probability - NEGLIGIBLE))

    @property
    def slowest_fraction(self) -> float:
        """Share that the flows of the most loaded link get, on average."""
        load = np.maximum(np.arange(self.num_flows + 1), 1)
        return float(self.max_load_probability @ np.minimum(1.0, self.capacity_flows / load))

    @property
    def expected_used_links(self) -> float:
        """Links that carry a flow, on average: M (1 - (1 - 1/M)^N)."""
        return float(self.num_links * (1 - (1 - 1 / self.num_links) ** self.num_flows))

    @property
    def alone_probability(self) -> float:
        """Chance that a flow shares its link with none: (1 - 1/M)^(N - 1)."""
        return float((1 - 1 / self.num_links) ** (self.num_flows - 1))

    @property
    def crowded_fraction(self) -> float:
        """Share of the flows that meet on overloaded links, on average."""
        load = np.arange(self.num_flows + 1)
        is_over = load > self.capacity_flows + 1e-9
        return float(self.num_links / self.num_flows * (self.load_probability @ (load * is_over)))

    @property
    def throughput_fraction(self) -> float:
        """Share of all that is asked for: M E[min(load, capacity)] / N."""
        carried = np.minimum(np.arange(self.num_flows + 1), self.capacity_flows)
        return float(self.num_links / self.num_flows * (self.load_probability @ carried))

    @cached_property
    def load_probability(self) -> NDArray[np.float64]:
        """Chance that a given link has 0, 1, ... N flows (binomial); shape (N + 1,)."""
        if self.num_links == 1:
            return np.array([0.0] * self.num_flows + [1.0])
        n, log_hit, log_miss = self.num_flows, -math.log(self.num_links), math.log1p(-1 / self.num_links)
        return np.array(
            [
                math.exp(
                    _log_factorial(n) - _log_factorial(k) - _log_factorial(n - k) + k * log_hit + (n - k) * log_miss
                )
                for k in range(n + 1)
            ]
        )


def _log_factorial(number: int) -> float:
    return math.lgamma(number + 1)


def _poisson(mean: float, most: int) -> NDArray[np.float64]:
    """Return the chances of 0 to `most` for a Poisson variable."""
    return np.array([math.exp(k * math.log(mean) - mean - _log_factorial(k)) for k in range(most + 1)])


def _convolution_power(series: NDArray[np.float64], power: int, length: int) -> NDArray[np.float64]:
    """Return the first `length` coefficients of a series' power, by repeated squaring."""
    result = np.ones(1)
    while power:
        if power & 1:
            result = np.convolve(result, series)[:length]
        series = np.convolve(series, series)[:length]
        power >>= 1
    return result
