"""The packet engine, compiled; fabrictune.netsim.packet is its face."""

import enum
from collections.abc import Mapping, Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

MAX_IDS: int

MAX_PACKETS: int

BYTES_PER_PACKET: int

BYTES_PER_PORT: int

BYTES_PER_QUEUE_PAIR: int

BYTES_PER_SELECTIVE_PAIR: int

BYTES_PER_TRACKED_PACKET: int

BYTES_PER_CREDITED_PAIR: int

BYTES_PER_GRANT_PACER: int

BYTES_PER_ENDPOINT: int

BYTES_PER_NIC_BUFFER: int

BYTES_PER_ROUND_TRIPS: int

BYTES_PER_RECEIVE_QUEUE: int

BYTES_PER_TRANSFER: int

BYTES_PER_RANDOM_STREAM: int

BYTES_PER_PORT_HEALTH: int

BYTES_PER_FLOWLET: int

BYTES_PER_PORT_SAMPLE: int

BYTES_PER_FLOW_SAMPLE: int

BYTES_PER_CAPTURED_PACKET: int

BYTES_PER_PRIORITY: int

BYTES_PER_WATCHDOG: int

BYTES_PER_TELEMETRY: int

SKIP_BYTES_PER_PORT: int

SKIP_BYTES_PER_PAIR: int

SKIP_BYTES_PER_PACKET: int

SKIP_BYTES_PER_LOGGED: int

SKIP_BYTES_PER_VALUE: int

class LawFaultError(RuntimeError):
    pass

def law_layout() -> dict[str, int]: ...

MIN_RATE_BPS: float

MIN_CWND_BYTES: float

class Law:
    def __init__(
        self, *, handlers: Mapping[str, int], params: int, uses_telemetry: bool, reads_marks: bool
    ) -> None: ...

class MeanRate:
    @property
    def mean(self) -> float: ...
    @property
    def deviation(self) -> float: ...
    @property
    def decline(self) -> float: ...
    @property
    def window_ps(self) -> float: ...
    @property
    def num_windows(self) -> int: ...
    @property
    def is_stationary(self) -> bool: ...

def estimate_mean_rate(
    rates: Sequence[float], in_flight: Sequence[float], lengths_ps: Sequence[float], num: int
) -> MeanRate: ...
def half_width_packets(rate: MeanRate, span_ps: float) -> float: ...

class Fluid:
    def __init__(
        self,
        *,
        path: NDArray[numpy.uint32],
        path_stride: int,
        port_rate_bps: NDArray[numpy.int64],
        port_delay_ps: NDArray[numpy.int64],
        mtu_bytes: int,
        wire_overhead_bytes: int,
        ack_bytes: int,
        ack_every_packets: int,
        nvlink_rate_bps: int,
        time_limit_ps: int,
        num_transfers: int,
        most_uncrowded: int,
    ) -> None: ...
    def add_transfers(self, arrays: Mapping[str, Any]) -> None: ...
    def start(self, alone: tuple[float, float], held: tuple[float, float]) -> None: ...
    def advance(self, num_events: int) -> bool: ...
    @property
    def now_ps(self) -> int: ...
    @property
    def num_events(self) -> int: ...
    @property
    def finished_bytes(self) -> int: ...
    def transfer_column_names(self) -> list[str]: ...
    def transfer_column(self, name: str, begin: int, end: int) -> NDArray[numpy.int64]: ...

BYTES_PER_FLUID_TRANSFER: int

class Outcome(enum.Enum):
    RUNNING = 0

    FINISHED = 1

    STALLED = 2

    TIME_LIMIT = 3

class Simulation:
    def __init__(self, *, settings: Mapping[str, Any], law: Law, arrays: Mapping[str, Any]) -> None: ...
    def add_transfers(self, arrays: Mapping[str, Any]) -> None: ...
    def start(self) -> None: ...
    def advance(self, num_events: int) -> Outcome: ...
    @property
    def now_ps(self) -> int: ...
    @property
    def acknowledged_bytes(self) -> int: ...
    @property
    def num_captured(self) -> int: ...
    @property
    def has_all_samples(self) -> bool: ...
    def settle(self) -> None: ...
    @property
    def num_events(self) -> int: ...
    @property
    def num_skipped_events(self) -> int: ...
    @property
    def not_skipped(self) -> list[str]: ...
    @property
    def num_parts(self) -> int: ...
    @property
    def not_cut(self) -> str: ...
    @property
    def part_of_port(self) -> list[int]: ...
    @property
    def peak_packets(self) -> int: ...
    def packet_counts(self) -> dict[str, int]: ...
    def skip_counts(self) -> dict[str, int]: ...
    def transfer_columns(self) -> dict[str, NDArray[numpy.int64]]: ...
    def transfer_column_names(self) -> list[str]: ...
    def transfer_column(self, name: str, begin: int, end: int) -> NDArray[numpy.int64]: ...
    def port_columns(self) -> dict[str, NDArray[numpy.int64]]: ...
    def port_sample_columns(self) -> dict[str, NDArray[numpy.int64]]: ...
    def flow_sample_columns(self) -> dict[str, NDArray[numpy.int64]]: ...
    def capture_columns(self) -> dict[str, NDArray[numpy.int64]]: ...
    def message_columns(self) -> dict[str, NDArray[numpy.int64]]: ...
    def queue_columns(self) -> dict[str, NDArray[numpy.int64]]: ...
    def waiting_columns(self) -> dict[str, NDArray[numpy.int64]]: ...
    def hold_columns(self) -> dict[str, NDArray[numpy.int64]]: ...
    def input_columns(self) -> dict[str, NDArray[numpy.int64]]: ...
    def fault_drop_columns(self) -> dict[str, NDArray[numpy.int64]]: ...
    def milestone_columns(self) -> dict[str, NDArray[numpy.int64]]: ...
    def failure_columns(self) -> dict[str, NDArray[numpy.int64]]: ...
    def flow_records(self) -> bytes: ...
