"""Time of an operation that torch dispatches: a lower bound at best rates, or what a hardware profile expects.

| costs           | product                        | attention              | other                    | launches |
|-----------------|--------------------------------|------------------------|--------------------------|----------|
| `RooflineCosts` | best rate                      | best rate              | bytes at the best rate   | none     |
| `ExpectedCosts` | by shape (`hardware/gemm.py`)  | by kernel, its products| bytes at the usual rate  | each     |

The larger of an operation's arithmetic and its bytes counts. With expected costs a kernel takes a launch besides, and
the GPU waits where the host has not yet issued it.

Source: Williams et al., "Roofline: an insightful visual performance model for multicore architectures", CACM 2009.
Left out: other precisions than half, which take the rates of half; products of a shape that torch does not tell.
"""

from dataclasses import dataclass
from typing import Literal, Protocol, get_args

from fabrictune.foundation.units import PS_PER_S
from fabrictune.hardware.attention import AttentionWork, attention_s
from fabrictune.hardware.gemm import Product, layout_share, product_s
from fabrictune.hardware.profile import HardwareProfile
from fabrictune.trainer_probe.planning.hardware import HardwareSpec

Bound = Literal["products", "attention", "memory", "launch"]
BOUNDS: tuple[Bound, ...] = get_args(Bound)


@dataclass(frozen=True, kw_only=True)
class Work:
    """What an operation does."""

    flops: int  # of products, as papers count them
    bytes: int  # read from and written to memory
    product: Product | None = None
    attention: AttentionWork | None = None
    is_reduction: bool = False  # of entries to fewer, as in a norm


@dataclass(frozen=True, kw_only=True)
class OperationCost:
    """Time of an operation on the GPU, and of the host to issue it."""

    bound: Bound
    work_ps: int
    launch_ps: int = 0
    issue_ps: int = 0


class OperationCosts(Protocol):
    """What operations cost."""

    @property
    def fuses(self) -> bool:
        """Whether operations on entries that follow one another are one kernel."""
        ...

    def cost(self, work: Work) -> OperationCost:
        """Return the cost of an operation."""
        ...


@dataclass(frozen=True)
class RooflineCosts:
    """Times at best rates: no GPU is faster."""

    hardware: HardwareSpec
    fuses = False

    def cost(self, work: Work) -> OperationCost:
        """Return the larger of an operation's products and its bytes."""
        products_ps = round(work.flops / self.hardware.achieved_flops_per_s * PS_PER_S)
        memory_ps = round(work.bytes / self.hardware.memory_bytes_per_s * PS_PER_S)
        if work.flops and products_ps >= memory_ps:
            return OperationCost(bound="products", work_ps=products_ps)
        return OperationCost(bound="memory", work_ps=memory_ps)


@dataclass(frozen=True, kw_only=True)
class ExpectedCosts:
    """Times that a hardware profile expects."""

    profile: HardwareProfile
    fuses: bool = False
    attention_kernel: str | None = None  # by default the newest that the profile has

    def cost(self, work: Work) -> OperationCost:
        """Return the time of an operation's arithmetic or its bytes, with its launch."""
        gpu = self.profile.gpu
        share = gpu.memory.reduced_fraction if work.is_reduction else gpu.memory.achieved_fraction
        memory_s = work.bytes / (gpu.memory.rate_bytes_per_s * share)
        bound, arithmetic_s = self._arithmetic(work)
        if memory_s > arithmetic_s:
            bound = "memory"
        return OperationCost(
            bound=bound,
            work_ps=round(max(arithmetic_s, memory_s) * PS_PER_S),
            launch_ps=gpu.launch_ps,
            issue_ps=self.profile.host.issue_ps,
        )

    def _arithmetic(self, work: Work) -> tuple[Bound, float]:
        gpu = self.profile.gpu
        if work.attention is not None:
            return "attention", attention_s(gpu, work.attention, self.attention_kernel)
        if work.product is not None:
            return "products", product_s(gpu, work.product)
        return "products", work.flops / (gpu.peak_flops_per_s * layout_share(gpu.gemm, "NN"))
