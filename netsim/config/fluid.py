"""Configuration of the fluid engine: the packet engine's, and how much of a run is replayed in packets."""

from dataclasses import dataclass
from typing import Literal

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.settings import require, setting


@dataclass(frozen=True, kw_only=True)
class FluidConfig(PacketConfig):
    """All settings of a run at max-min shares; those that only packets know have an effect in audits, or none."""

    skip: Literal["exact", "bounded", "fluid", "off"] = setting("off", "this engine has no packets to skip")
    audits_fraction: float = setting(
        0.0, "share of the packets that are replayed one by one under the law, for an interval of every transfer"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.audits_fraction <= 1, "audits", f"{self.audits_fraction}", "0 to 1")
        if self.skip != "off":
            raise InputError(
                Mistake(
                    where="skip",
                    found=self.skip,
                    allowed="off: this engine has no packets to skip",
                    next_step="leave it out, or take `engine: {name: packet, skip: ...}`",
                )
            )
