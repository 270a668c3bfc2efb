"""Configuration of adaptive routing and switching (ARS), by the names of SONiC's tables.

A port has two loads: what it has sent, as a share of its rate, and the bytes that wait for it. Both are averages over
samples. Each is put into one of some bands between its min and max, and a port's quality is the mean band by weights;
the lowest is the best. A switch asks for the best port of a group of equal next hops anew for each packet, or for a
flow that was idle. A group keeps no more than `max_flows` flows apart: those with one hash share port and idle time.

Source: SONiC, "Local ARS HLD" (ARS_PROFILE, ARS_NEXTHOP_GROUP); Open Compute Project, SAI, "Adaptive Routing and
Switching" and saiars.h. Decision 0061 has what they leave open.
"""

from dataclasses import dataclass
from typing import Literal

from fabrictune.netsim.config.settings import LONGEST_WAIT_NS, MAX_BUFFER_BYTES, require, setting

MAX_FLOWS = 2**20
MAX_LOAD_WEIGHT = 255
MAX_LOAD_EXPONENT = 8
MAX_BANDS = 64


@dataclass(frozen=True, kw_only=True)
class ArsConfig:
    """ARS of all switches; the defaults are SONiC's and SAI's where they have one."""

    assign_mode: Literal["per_flowlet_quality", "per_packet"] = setting(
        "per_flowlet_quality", "when a flow may change its port: after `flowlet_idle_time` without a packet, or always"
    )
    flowlet_idle_time_ns: int = setting(256_000, "per_flowlet_quality: silence that ends a flowlet")
    max_flows: int = setting(512, "per_flowlet_quality: flows that a group of next hops keeps apart, by hash")
    sampling_interval_ns: int = setting(16_000, "from one sample of the loads to the next")
    past_load_weight: int = setting(16, "weight of what a port has sent; 0: none")
    past_load_min_fraction: float = setting(0.0, "share of the rate up to which it counts as nothing")
    past_load_max_fraction: float = setting(1.0, "share of the rate from which it is in the last band")
    future_load_weight: int = setting(16, "weight of what waits for a port; 0: none")
    future_load_min_bytes: int = setting(
        0, "queue up to which it counts as nothing, on the fastest ports of the fabric"
    )
    future_load_max_bytes: int = setting(250_000, "queue from which it is in the last band")
    load_exponent: int = setting(2, "an average moves by 1 part in 2**load_exponent towards its sample")
    load_current: bool = setting(False, "whether an average falls to a lower sample at once")
    quantization_bands: int = setting(8, "bands of a load")

    def __post_init__(self) -> None:
        bounds = {
            "flowlet_idle_time": (self.flowlet_idle_time_ns, 1, LONGEST_WAIT_NS, " ns"),
            "sampling_interval": (self.sampling_interval_ns, 1, LONGEST_WAIT_NS, " ns"),
            "max_flows": (self.max_flows, 1, MAX_FLOWS, ""),
            "past_load_weight": (self.past_load_weight, 0, MAX_LOAD_WEIGHT, ""),
            "future_load_weight": (self.future_load_weight, 0, MAX_LOAD_WEIGHT, ""),
            "load_exponent": (self.load_exponent, 0, MAX_LOAD_EXPONENT, ""),
            "quantization_bands": (self.quantization_bands, 2, MAX_BANDS, ""),
        }
        for name, (value, least, most, unit) in bounds.items():
            require(least <= value <= most, f"path_choice.ars.{name}", f"{value}{unit}", f"{least} to {most}{unit}")
        has_weight = self.past_load_weight + self.future_load_weight > 0
        require(has_weight, "path_choice.ars.past_load_weight", "0, as future_load_weight", "one of them above 0")
        self._check_range("past_load", self.past_load_min_fraction, self.past_load_max_fraction, 1.0)
        self._check_range("future_load", self.future_load_min_bytes, self.future_load_max_bytes, MAX_BUFFER_BYTES)

    def _check_range(self, load: str, least: float, most: float, limit: float) -> None:
        is_right = 0 <= least < most <= limit
        require(is_right, f"path_choice.ars.{load}_max", f"{most}", f"above {load}_min, {least}, up to {limit}")
