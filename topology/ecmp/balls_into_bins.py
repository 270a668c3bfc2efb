"""N equal flows, each on one of M equal links by an ideal hash: what collisions cost, exactly.

The loads of the links are multinomial. Given their sum they are independent Poisson variables of any one mean, so the
chance that no link has more than k flows is that M Poisson variables, each cut off at k, add up to N. The mean is
chosen such that N is what they add up to on average: the chance of the sum is then no small number, a Fourier transform
gives it to rounding, and the rest is a factor known in logarithms. So even 1e-30 keeps its digits. All else follows
from these chances, and from the binomial load of one link.

A link of capacity c, in flows, gives each of its n flows the share min(1, c / n). No link holds back another.

Source: Feller, "An introduction to probability theory and its applications", vol. 1, II.5 (occupancy); the cut-off
Poisson form: B. Levin, "A representation for multinomial cumulative distribution functions", Ann. Statist. 1981.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.errors import InputError, Mistake

MAX_FLOWS = 4096
NEGLIGIBLE = 1e-15
WIDEST_TILT = 60.0  # of the logarithm of a Poisson mean
NUM_HALVINGS = 80


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
        n, m = self.num_flows, self.num_links
        if most >= n or most * m < n:
            return 1.0 if most >= n else 0.0
        count_K, log_factorial_K = np.arange(most + 1), self._log_factorial[: most + 1]
        tilt = _tilt_towards(n / m, log_factorial_K)
        log_weight_K = count_K * tilt - log_factorial_K
        log_total = float(np.logaddexp.reduce(log_weight_K))
        sum_is_n = _sum_probability(np.exp(log_weight_K - log_total), m, n)
        return min(1.0, sum_is_n * math.exp(self._log_factorial[n] - n * (math.log(m) + tilt) + m * log_total))

    @cached_property
    def _log_factorial(self) -> FloatArray:
        """Logarithms of the factorials of 0 to N."""
        return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, self.num_flows + 1)))])

    @cached_property
    def max_load_probability(self) -> FloatArray:
        """Chance that the most loaded link has 0, 1, ... N flows; shape (N + 1,)."""
        at_most = np.ones(self.num_flows + 1)
        at_most[0] = 0.0
        for most in range(1, self.num_flows):
            at_most[most] = self.at_most_probability(most)
            if at_most[most] > 1 - NEGLIGIBLE:
                break
        probability = np.zeros_like(at_most)
        probability[1:] = np.maximum(np.diff(at_most), 0.0)
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
        """Carried share of the offered load: M E[min(load, capacity)] / N."""
        carried = np.minimum(np.arange(self.num_flows + 1), self.capacity_flows)
        return float(self.num_links / self.num_flows * (self.load_probability @ carried))

    @cached_property
    def load_probability(self) -> FloatArray:
        """Chance that a given link has 0, 1, ... N flows (binomial); shape (N + 1,)."""
        if self.num_links == 1:
            return np.array([0.0] * self.num_flows + [1.0])
        load, log_factorial = np.arange(self.num_flows + 1), self._log_factorial
        log_ways = log_factorial[-1] - log_factorial - log_factorial[::-1]
        probability: FloatArray = np.exp(
            log_ways - load * math.log(self.num_links) + load[::-1] * math.log1p(-1 / self.num_links)
        )
        return probability


def _tilt_towards(mean: float, log_factorial_K: FloatArray) -> float:
    """Return the logarithm of the Poisson mean with which a variable cut off after K values has the given mean."""
    count_K = np.arange(len(log_factorial_K))
    low, high = -WIDEST_TILT, WIDEST_TILT
    for _ in range(NUM_HALVINGS):
        tilt = (low + high) / 2
        log_weight_K = count_K * tilt - log_factorial_K
        weight_K = np.exp(log_weight_K - log_weight_K.max())
        low, high = (tilt, high) if weight_K @ count_K < mean * weight_K.sum() else (low, tilt)
    return low


def _sum_probability(probability_K: FloatArray, num_variables: int, total: int) -> float:
    """Return the chance that independent variables, each with these chances of 0 to K - 1, add up to a total."""
    size = 1 << ((len(probability_K) - 1) * num_variables).bit_length()  # no sum wraps round
    return float(np.fft.irfft(np.fft.rfft(probability_K, size) ** num_variables, size)[total])
