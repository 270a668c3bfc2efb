"""Configuration files of a scenario's switches: what changes are printed against. They change no run."""

from dataclasses import dataclass, field
from pathlib import Path

from fabrictune.netsim.config.settings import require


@dataclass(frozen=True, kw_only=True)
class SwitchFiles:
    """Files that `topo import --with-qos` has read."""

    files: tuple[Path, ...] = field(metadata={"help": "configurations of SONiC switches, one a switch or ASIC"})
    dscp: int | None = field(
        default=None, metadata={"help": "DSCP of the data; by default the lowest lossless queue's"}
    )
    cnp_dscp: int = field(default=48, metadata={"help": "DSCP of congestion notifications"})

    def __post_init__(self) -> None:
        require(bool(self.files), "files", "none", "one file at least")
        require(self.dscp is None or 0 <= self.dscp <= 63, "dscp", f"{self.dscp}", "0 to 63")
        require(0 <= self.cnp_dscp <= 63, "cnp_dscp", f"{self.cnp_dscp}", "0 to 63")
