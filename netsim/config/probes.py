"""What is sampled over time."""

from dataclasses import dataclass
from typing import Literal

from netsim.config.checking import LONGEST_WAIT_NS, require, setting


@dataclass(frozen=True, kw_only=True)
class ProbeConfig:
    """Samples of queues over time; taking them changes no result."""

    interval_ns: int | None = setting(None, "time between samples; none are taken without it")
    ports: Literal["all", "busiest"] = setting("busiest", "which ports: all, or those on most paths")
    num_busiest: int = setting(32, "how many ports count as the busiest")

    def __post_init__(self) -> None:
        is_right = self.interval_ns is None or 1 <= self.interval_ns <= LONGEST_WAIT_NS
        require(is_right, "probe.interval", f"{self.interval_ns} ns", f"1 to {LONGEST_WAIT_NS} ns")
        require(self.num_busiest >= 1, "probe.num_busiest", f"{self.num_busiest}", "1 or more")
