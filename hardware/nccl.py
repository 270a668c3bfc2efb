"""Settings of a hardware profile that NCCL's choice and its time depend on: PCIe, NICs, and the network plug-in."""

from dataclasses import dataclass, field

from fabrictune.foundation.errors import Mistake
from fabrictune.hardware.checks import above_zero, not_negative, raise_for


@dataclass(frozen=True, kw_only=True)
class NcclSpec:
    """NCCL's view of a host and its network. Raises InputError."""

    nics_per_host: int | None = field(default=None, metadata={"help": "NICs that NCCL sees; one a GPU if not set"})
    has_nvswitch: bool | None = field(
        default=None, metadata={"help": "whether a switch joins the GPUs; yes if not set"}
    )
    pcie_rate_bps: float | None = field(default=None, metadata={"help": "payload between a NIC and a GPU"})
    transport: str = field(default="InfiniBand", metadata={"help": "name of the network"})
    simple_latency_ps: int | None = field(
        default=None, metadata={"help": "latency of a step that the protocol Simple has more"}
    )
    message_ps: int | None = field(default=None, metadata={"help": "time of a message at its NIC beside its bytes"})
    tuner_latency_ps: int | None = field(default=None, metadata={"help": "latency that the plug-in tells NCCL"})
    payload_fraction: float | None = field(default=None, metadata={"help": "payload of a NIC's rate"})
    environment: tuple[str, ...] = field(
        default=(), metadata={"help": "settings the plug-in makes: NCCL_BUFFSIZE=8388608"}
    )

    def __post_init__(self) -> None:
        zero = ("has_nvswitch", "simple_latency_ps", "message_ps", "tuner_latency_ps")
        set_ones = [name for name in zero if getattr(self, name) is not None]
        wrong = [setting for setting in self.environment if not setting.startswith("NCCL_") or "=" not in setting]
        raise_for(
            [
                *above_zero(self, besides=zero),
                *not_negative(self, *set_ones),
                *(Mistake(where="environment", found=setting, allowed="NCCL_NAME=VALUE") for setting in wrong),
            ]
        )
