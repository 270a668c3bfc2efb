"""Figures of nodes that are compared with those of their peers: what each is, and which way is better."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fabrictune.foundation.units import PS_PER_NS, format_bytes_per_s, format_duration, format_flops_per_s, format_rate


@dataclass(frozen=True, kw_only=True)
class FigureKind:
    """One figure."""

    label: str
    show: Callable[[float], str]
    is_less_better: bool = False
    next_step: str


FIGURES: Mapping[str, FigureKind] = {
    "product_flops_per_s": FigureKind(
        label="matrix products",
        show=format_flops_per_s,
        next_step="look for another process, a lower clock or heat (turbostat), then test the node again",
    ),
    "gpu_product_flops_per_s": FigureKind(
        label="matrix products of its slowest GPU",
        show=format_flops_per_s,
        next_step="look at the GPU's clock, power limit and temperature (nvidia-smi -q -d PERFORMANCE)",
    ),
    "copy_bytes_per_s": FigureKind(
        label="copies in memory",
        show=format_bytes_per_s,
        next_step="look for a missing memory module, another process, or memory of the other socket (numastat)",
    ),
    "gpu_copy_bytes_per_s": FigureKind(
        label="copies in the memory of its slowest GPU",
        show=format_bytes_per_s,
        next_step="look at the GPU's memory clock and its remapped rows (nvidia-smi -q)",
    ),
    "write_bytes_per_s": FigureKind(
        label="writes to disk",
        show=format_bytes_per_s,
        next_step="look at the device's health and what else writes to it (smartctl, iostat)",
    ),
    "loopback_bps": FigureKind(
        label="TCP on the loopback device",
        show=format_rate,
        next_step="look for a traffic shaper on lo (tc -s qdisc show dev lo) and for busy processors",
    ),
    "loopback_round_trip_ns": FigureKind(
        label="a round trip on the loopback device",
        show=lambda value: format_duration(value * PS_PER_NS),
        is_less_better=True,
        next_step="look for a traffic shaper on lo (tc -s qdisc show dev lo) and for busy processors",
    ),
    "adapter_bps": FigureKind(
        label="its slowest pair of RDMA adapters",
        show=format_rate,
        next_step="compare the PCIe speed and width of its adapters with those of another node (lspci -vv)",
    ),
    "all_reduce_bps": FigureKind(
        label="all-reduce with its neighbours",
        show=format_rate,
        next_step="look at the counters of its NICs (fabrictune rdma counters) and at its cable",
    ),
}
