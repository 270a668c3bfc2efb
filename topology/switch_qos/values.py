"""Values of SONiC's QoS tables that belong together: what a profile, a scheduler or a watchdog says.

Two profiles that say the same are equal, whatever their names: a value is what a port ends up with. `row` is where it
comes from, and no part of it.

Source: SONiC, doc/Configuration.md; sonic-yang-models (sonic-wred-profile, sonic-scheduler, sonic-buffer-profile,
sonic-buffer-pool, sonic-pfcwd); SAI, saiwred.h and saibuffer.h for defaults.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class WredCurve:
    """What a WRED profile does to green packets; without metering all packets are green."""

    min_bytes: int
    max_bytes: int
    percent: int  # marked or dropped at the maximum
    marks: bool  # what is ECN-capable
    drops: bool  # what is not
    row: str = field(default="", compare=False)


@dataclass(frozen=True, kw_only=True)
class Scheduling:
    """How a queue is served; weight 0: strict priority."""

    weight: int
    row: str = field(default="", compare=False)


@dataclass(frozen=True, kw_only=True)
class BufferProfile:
    """What a priority group or a queue may take of its pool."""

    pool: str
    size_bytes: int
    xoff_bytes: int | None
    xon_bytes: int | None
    xon_offset_bytes: int | None
    dynamic_th: int | None
    static_th_bytes: int | None
    row: str = field(default="", compare=False)

    @property
    def reserve_bytes(self) -> int:
        """What is reserved, without headroom: `size` counts it where it is not less than `xoff`."""
        xoff_bytes = self.xoff_bytes or 0
        return self.size_bytes - xoff_bytes if self.size_bytes >= xoff_bytes else self.size_bytes


@dataclass(frozen=True, kw_only=True)
class DynamicProfile:
    """A lossless priority group whose headroom the switch computes when it runs (the dynamic buffer model)."""

    dynamic_th: int | None
    row: str = field(default="", compare=False)


@dataclass(frozen=True, kw_only=True)
class BufferPool:
    """A pool; a size that is missing is computed when the switch runs."""

    size_bytes: int | None
    xoff_bytes: int | None  # headroom that all priority groups share
    row: str = field(default="", compare=False)


@dataclass(frozen=True, kw_only=True)
class Watchdog:
    """The PFC watchdog of a port."""

    action: str  # drop, forward or alert
    detection_ms: int
    restoration_ms: int | None
    row: str = field(default="", compare=False)


@dataclass(frozen=True, kw_only=True)
class EcmpHash:
    """What a switch hashes of RoCE packets over IPv4; None: its chip's default."""

    algorithm: str | None
    header_fields: tuple[str, ...] | None
    row: str = field(default="", compare=False)  # the field of SWITCH_HASH|GLOBAL that the header fields come from
