"""Time of attention by a fused kernel, which computes the pairs of query and key that its mask leaves.

Forward it makes two products of each pair, the score and the weighted sum of values; backward five, since it computes
the scores anew.

Source: Dao, "FlashAttention-2", 2023, sections 2.3.2 and 4.1, whose rates count the same operations.
Left out: blocks at the edge of a mask, which are computed whole; head dimensions, where a rate is measured at one only.
"""

from dataclasses import dataclass

from fabrictune.hardware.gpu import GpuSpec

_FORWARD_FLOPS = 4  # of a pair and feature: two products
_BACKWARD_OVER_FORWARD = 2.5


@dataclass(frozen=True, kw_only=True)
class AttentionWork:
    """Attention of one kernel."""

    num_heads: int  # of all samples
    head_size: int
    num_queries: int
    num_keys: int
    is_causal: bool
    window: int | None = None  # keys that a query sees, itself included
    is_backward: bool = False

    @property
    def num_pairs(self) -> int:
        """Pairs of query and key of a head that the mask leaves."""
        if not self.is_causal:
            return self.num_queries * self.num_keys
        before = self.num_keys - self.num_queries  # keys before the first query's own
        seen = self.num_queries * before + self.num_queries * (self.num_queries + 1) // 2
        if self.window is None:
            return seen
        unseen = max(self.num_keys - self.window, 0)  # queries that do not see all before them, at most these many
        first = min(unseen, self.num_queries)
        hidden = first * unseen - first * (first - 1) // 2
        return seen - hidden

    @property
    def flops(self) -> float:
        """Floating-point operations that the kernel makes."""
        forward = _FORWARD_FLOPS * self.num_heads * self.head_size * self.num_pairs
        return forward * _BACKWARD_OVER_FORWARD if self.is_backward else forward


def attention_s(gpu: GpuSpec, work: AttentionWork, kernel: str | None = None) -> float:
    """Return the seconds of a kernel's products; without its name, of the newest one that the GPU has rates of."""
    rates = gpu.attention.kernels[kernel] if kernel else next(reversed(gpu.attention.kernels.values()))
    share = rates.backward_fraction if work.is_backward else rates.forward_fraction
    return work.flops / (gpu.peak_flops_per_s * share)
