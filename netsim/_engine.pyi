"""The compiled packet engine (sources in netsim/engine)."""

from collections.abc import Mapping
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_IDS: int
MAX_PACKETS: int
BYTES_PER_PACKET: int
BYTES_PER_PORT: int
BYTES_PER_QUEUE_PAIR: int
BYTES_PER_ENDPOINT: int
BYTES_PER_NIC_BUFFER: int
BYTES_PER_RECEIVE_QUEUE: int
BYTES_PER_ROUND_TRIPS: int
BYTES_PER_SELECTIVE_PAIR: int
BYTES_PER_TRACKED_PACKET: int
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

MIN_RATE_BPS: float
MIN_CWND_BYTES: float

def law_layout() -> dict[str, int]: ...

class LawFaultError(RuntimeError): ...

class Outcome(Enum):
    RUNNING = 0
    FINISHED = 1
    STALLED = 2
    TIME_LIMIT = 3

class Settings:
    mtu_bytes: int
    wire_overhead_bytes: int
    ack_bytes: int
    pause_frame_bytes: int
    ack_every_packets: int
    marking: tuple[int, int, float]
    is_pfc_enabled: bool
    cnp_interval_ps: int
    cnp_delay_ps: int
    endpoint_delay_ps: int
    endpoint_jitter_ps: int
    endpoint_key: int
    window_packets: int
    num_receives: int
    replenish_ps: int
    rnr_wait_ps: int
    rnr_retries: int
    rnr_retries_are_limited: bool
    nvlink_rate_bps: int
    time_limit_ps: int
    probe_interval_ps: int
    max_samples: int
    capture_at: int
    capture_port: int
    max_captured: int
    random_key: int
    fault_key: int
    force_full: bool
    full_frame_bytes: int
    acknowledgement_priority: int
    cnp_priority: int
    pause_quanta: int
    is_pause_refreshed: bool
    pause_patience_ps: int
    watchdog_detect_ps: int
    watchdog_restore_ps: int
    watchdog_drops: bool
    path_rule: int
    flowlet_gap_ps: int
    queue_step_bytes: int
    queue_levels: int
    is_tie_random: bool
    control_has_choice: bool
    path_choice_key: int
    def __init__(self) -> None: ...

class Law:
    def __init__(self, *, handlers: Mapping[str, int], params: int, uses_telemetry: bool) -> None: ...

class Simulation:
    def __init__(
        self,
        *,
        settings: Settings,
        law: Law,
        arrays: Mapping[str, NDArray[Any]],
        path_stride: int,
        flow_bytes: int,
    ) -> None: ...
    def advance(self, num_events: int) -> Outcome: ...
    @property
    def now_ps(self) -> int: ...
    @property
    def acknowledged_bytes(self) -> int: ...
    @property
    def num_captured(self) -> int: ...
    @property
    def has_all_samples(self) -> bool: ...
    @property
    def num_events(self) -> int: ...
    @property
    def peak_packets(self) -> int: ...
    def packet_counts(self) -> dict[str, int]: ...
    def transfer_columns(self) -> dict[str, NDArray[np.int64]]: ...
    def port_columns(self) -> dict[str, NDArray[np.int64]]: ...
    def port_sample_columns(self) -> dict[str, NDArray[np.int64]]: ...
    def flow_sample_columns(self) -> dict[str, NDArray[np.int64]]: ...
    def capture_columns(self) -> dict[str, NDArray[np.int64]]: ...
    def message_columns(self) -> dict[str, NDArray[np.int64]]: ...
    def queue_columns(self) -> dict[str, NDArray[np.int64]]: ...
    def waiting_columns(self) -> dict[str, NDArray[np.int64]]: ...
    def hold_columns(self) -> dict[str, NDArray[np.int64]]: ...
    def fault_drop_columns(self) -> dict[str, NDArray[np.int64]]: ...
    def milestone_columns(self) -> dict[str, NDArray[np.int64]]: ...
    def failure_columns(self) -> dict[str, NDArray[np.int64]]: ...
    def flow_records(self, flow_bytes: int) -> bytes: ...
