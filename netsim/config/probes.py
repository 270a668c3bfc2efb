"""Configuration of probes: samples over time, which change no result."""

from dataclasses import dataclass
from typing import Literal

from fabrictune.netsim.config.settings import LONGEST_WAIT_NS, MAX_PORTS, require, setting


@dataclass(frozen=True, kw_only=True)
class ProbeConfig:
    """Samples of ports (queue, pauses, bytes sent) and of queue pairs (rate, window, round trip) over time."""

    interval_ns: int | None = setting(None, "time between samples; none are taken without it")
    ports: Literal["all", "busiest"] = setting("busiest", "which ports: all, or those on most paths")
    num_busiest: int = setting(32, "how many ports count as the busiest")
    all_flows: bool = setting(False, "whether all queue pairs are sampled")
    flows: tuple[int, ...] = setting((), "queue pairs that are sampled, by row")

    def __post_init__(self) -> None:
        is_right = self.interval_ns is None or 1 <= self.interval_ns <= LONGEST_WAIT_NS
        require(is_right, "probe.interval", f"{self.interval_ns} ns", f"1 to {LONGEST_WAIT_NS} ns")
        is_right = 1 <= self.num_busiest <= MAX_PORTS
        require(is_right, "probe.num_busiest", f"{self.num_busiest}", f"1 to {MAX_PORTS}")
        require(min(self.flows, default=0) >= 0, "probe.flows", f"{self.flows}", "rows, 0 or more")
