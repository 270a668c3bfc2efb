"""Settings of NVLink, the network, hosts, stragglers and fixed costs of a step in a hardware profile."""

from dataclasses import dataclass, field

from fabrictune.hardware.checks import above_zero, not_negative, raise_for


@dataclass(frozen=True, kw_only=True)
class NvlinkSpec:
    """NVLink between the GPUs of a host. Raises InputError."""

    rate_bps: float = field(metadata={"help": "data sheet's rate out of a GPU, one direction"})
    collective_bytes_per_s: float = field(metadata={"help": "bus bandwidth that a large collective reaches"})
    latency_ps: int = field(metadata={"help": "time of a collective of no bytes"})
    compute_share_fraction: float = field(metadata={"help": "share of the GPU that a running collective takes"})

    def __post_init__(self) -> None:
        zero = ("latency_ps", "compute_share_fraction")
        raise_for([*above_zero(self, besides=zero), *not_negative(self, *zero)])


@dataclass(frozen=True, kw_only=True)
class NetworkSpec:
    """Network between hosts, as one GPU has it. Raises InputError."""

    nic_rate_bps: float = field(metadata={"help": "rate out of a GPU to other hosts"})
    achieved_fraction: float = field(metadata={"help": "share of the NIC's rate that large messages reach"})
    latency_ps: int = field(metadata={"help": "time of a step of a ring, or of a message, beside its bytes"})
    message_ps: int = field(metadata={"help": "time of a message at its sender, beside its bytes"})
    synchronisation_ps: int = field(metadata={"help": "time that a host waits at a blocking send or receive"})

    def __post_init__(self) -> None:
        zero = ("latency_ps", "message_ps", "synchronisation_ps")
        raise_for([*above_zero(self, besides=zero), *not_negative(self, *zero)])


@dataclass(frozen=True, kw_only=True)
class HostSpec:
    """A host. Raises InputError."""

    num_gpus: int = field(metadata={"help": "GPUs joined by NVLink"})
    num_sockets: int = field(default=2, metadata={"help": "sockets of CPUs"})
    cpu: str = field(default="", metadata={"help": "model of the CPU"})
    issue_ps: int = field(metadata={"help": "time in which a process issues an operation to its GPU"})

    def __post_init__(self) -> None:
        raise_for([*above_zero(self, besides=("issue_ps",)), *not_negative(self, "issue_ps")])


@dataclass(frozen=True, kw_only=True)
class StragglerSpec:
    """Hosts that compute slower than the others. Raises InputError."""

    hosts_fraction: float = field(default=0.0, metadata={"help": "share of hosts that are slow"})
    slowdown_fraction: float = field(default=0.0, metadata={"help": "time that a slow host adds to its work"})

    def __post_init__(self) -> None:
        raise_for(not_negative(self, "hosts_fraction", "slowdown_fraction"))


@dataclass(frozen=True, kw_only=True)
class FixedSpec:
    """Costs of a step that no operation has. Raises InputError."""

    step_ps: int = field(default=0, metadata={"help": "time of a step beside its work"})

    def __post_init__(self) -> None:
        raise_for(not_negative(self, "step_ps"))
