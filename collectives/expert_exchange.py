"""Exchange of tokens with experts: how many tokens each rank of a group sends to each rank and to each host.

The experts are dealt over the n ranks of a group in order, as many to each. Counts are those of a draw, or the expected
ones, which are fractions: `counts_of_draw` counts what `draw_experts` returns, `expected_counts` needs no draw.

Shapes: n ranks of a group, H hosts in its order, T tokens of a rank, K choices.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from fabrictune.collectives.expert_routing import RoutingSpec, reach_probability
from fabrictune.foundation.arrays import IntArray

SCALED_FEATURES = 128  # of a scale in single precision: FP8 as DeepEP and DeepGEMM have it
SCALE_BYTES = 4

TOKEN_BYTES: Mapping[str, Callable[[int], int]] = {  # of a token's features
    "fp8": lambda width: width + SCALE_BYTES * -(-width // SCALED_FEATURES),
    "bf16": lambda width: 2 * width,
    "fp32": lambda width: 4 * width,
}

Counts = NDArray[np.int64] | NDArray[np.object_]  # whole numbers, or Fractions


@dataclass(frozen=True, kw_only=True)
class TokenCounts:
    """Tokens that the ranks of one group send, to themselves and their own hosts too."""

    choices_nn: Counts  # copies for single experts, by sender and receiver
    ranks_nn: Counts  # one copy for each rank that has any of a token's experts
    hosts_nH: Counts  # one copy for each host

    @property
    def num_ranks(self) -> int:
        """n."""
        return len(self.ranks_nn)


def counts_of_draw(expert_nTK: Iterable[IntArray], num_experts: int, host_n: IntArray) -> TokenCounts:
    """Return the counts of each rank's drawn tokens; `host_n` numbers the hosts of the group from 0."""
    n, num_hosts = len(host_n), 1 + int(host_n.max())
    choices_nn, ranks_nn = np.zeros((n, n), np.int64), np.zeros((n, n), np.int64)
    hosts_nH = np.zeros((n, num_hosts), np.int64)
    for sender, expert_TK in enumerate(expert_nTK):
        rank_TK = expert_TK // (num_experts // n)
        choices_nn[sender] = np.bincount(rank_TK.ravel(), minlength=n)
        ranks_nn[sender] = _reached(rank_TK, n)
        hosts_nH[sender] = _reached(host_n[rank_TK], num_hosts)
    return TokenCounts(choices_nn=choices_nn, ranks_nn=ranks_nn, hosts_nH=hosts_nH)


def _reached(place_TK: IntArray, num_places: int) -> IntArray:
    """Return how many tokens go to each place, each counted once."""
    is_reached = np.zeros((len(place_TK), num_places), bool)
    np.put_along_axis(is_reached, place_TK, values=True, axis=1)
    return np.asarray(is_reached.sum(axis=0), np.int64)


def expected_counts(routing: RoutingSpec, num_tokens: int, num_ranks: int, ranks_per_host: int) -> TokenCounts:
    """Return the expected counts of equally popular experts, in exact fractions."""
    of_rank = routing.num_experts // num_ranks
    num_hosts = num_ranks // ranks_per_host
    share = (
        Fraction(routing.num_choices, num_ranks),
        reach_probability(routing, of_rank),
        reach_probability(routing, of_rank * ranks_per_host),
    )
    shape = ((num_ranks, num_ranks), (num_ranks, num_ranks), (num_ranks, num_hosts))
    choices_nn, ranks_nn, hosts_nH = (
        np.full(size, num_tokens * part, object) for size, part in zip(shape, share, strict=True)
    )
    return TokenCounts(choices_nn=choices_nn, ranks_nn=ranks_nn, hosts_nH=hosts_nH)


def bytes_of(counts: Counts, token_bytes: int) -> IntArray:
    """Return the bytes of tokens, of expected ones the nearest whole number."""
    return np.asarray([[round(count * token_bytes) for count in row] for row in counts.tolist()], np.int64)
