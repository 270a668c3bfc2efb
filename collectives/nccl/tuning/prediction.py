"""What NCCL chooses for a collective of a system, and how long it takes, with its interval."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fabrictune.collectives.bounds import bus_factor
from fabrictune.collectives.nccl.tuning.candidates import Candidate
from fabrictune.collectives.nccl.tuning.choice import TUNED, Choice, choose, model_of, shape_for
from fabrictune.collectives.nccl.tuning.constants import LATEST
from fabrictune.collectives.nccl.tuning.duration import Duration, duration_of
from fabrictune.collectives.nccl.tuning.graphs import Graphs
from fabrictune.collectives.nccl.tuning.model import Model
from fabrictune.collectives.nccl.tuning.point_to_point import point_to_point_time, protocol_of
from fabrictune.collectives.nccl.tuning.settings import TunerRule, settings_of
from fabrictune.collectives.nccl.tuning.system import System
from fabrictune.foundation.traces import Operation
from fabrictune.foundation.units import BITS_PER_BYTE, PS_PER_S, PS_PER_US

CLOSE = 1.15  # times the choice's time: a candidate that NCCL might as well have chosen

ASSUMED = (
    "CollNet is absent: it needs SHARP's plug-in and NCCL_COLLNET_ENABLE=1",
    "the fabric carries what the NICs send: no collisions, no other jobs",
    "a process a GPU: one process with 8 GPUs launches them in turn, which takes some 20 us more",
)


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """The time of one collective, with the 90 % interval around it. `choice` is None for point-to-point operations."""

    operation: Operation
    size_bytes: int
    num_ranks: int
    name: str  # algorithm and protocol
    num_channels: int
    choice: Choice | None
    duration: Duration
    low_us: float
    high_us: float

    @property
    def time_ps(self) -> float:
        """Expected time."""
        return self.duration.total_us * PS_PER_US

    @property
    def interval_ps(self) -> tuple[float, float]:
        """Ends of the 90 % interval."""
        return self.low_us * PS_PER_US, self.high_us * PS_PER_US

    @property
    def bus_bandwidth_bps(self) -> float:
        """Bus bandwidth, as nccl-tests counts it."""
        factor = bus_factor(self.operation, self.num_ranks)
        return self.size_bytes * BITS_PER_BYTE * factor / self.time_ps * PS_PER_S


def nccl_model(
    system: System,
    *,
    version: str = LATEST,
    environment: Mapping[str, str] | None = None,
    rules: Sequence[TunerRule] = (),
    graphs: Graphs | None = None,
) -> Model:
    """Return the model of a system with what its network plug-in, the user and a tuner set; raises InputError."""
    settings = settings_of({**system.transport.environment, **(environment or {})}, rules=rules)
    return model_of(system, settings, version, graphs)


def predict(model: Model, operation: Operation, size_bytes: int) -> Prediction:
    """Return choice, time and interval of one collective of a buffer (nccl-tests' size); raises InputError."""
    if operation not in TUNED:
        return _point_to_point(model, operation, size_bytes)
    choice = choose(model, operation, size_bytes)
    duration = duration_of(model, operation, choice.algorithm, choice.protocol, choice.shape, size_bytes)
    others = [_time_of(model, operation, one.candidate, size_bytes) for one in choice.close(CLOSE)]
    low, high = _interval(duration, others)
    return Prediction(
        operation=operation,
        size_bytes=size_bytes,
        num_ranks=model.system.num_ranks,
        name=choice.name,
        num_channels=choice.shape.num_channels,
        choice=choice,
        duration=duration,
        low_us=low,
        high_us=high,
    )


def _point_to_point(model: Model, operation: Operation, size_bytes: int) -> Prediction:
    duration = point_to_point_time(model, operation, size_bytes)
    low, high = _interval(duration, [])
    return Prediction(
        operation=operation,
        size_bytes=size_bytes,
        num_ranks=model.system.num_ranks,
        name=f"point-to-point {protocol_of(model, operation, size_bytes)}",
        num_channels=model.num_channels,
        choice=None,
        duration=duration,
        low_us=low,
        high_us=high,
    )


def _time_of(model: Model, operation: Operation, candidate: Candidate, size_bytes: int) -> float:
    """Return the time that a candidate would take, in us."""
    shape = shape_for(model, operation, candidate, size_bytes)
    duration = duration_of(model, operation, candidate.algorithm, candidate.protocol, shape, size_bytes)
    return duration.total_us


def _interval(duration: Duration, others: Sequence[float]) -> tuple[float, float]:
    """Return the ends of the interval: the terms' own, and the times of candidates that may have been chosen."""
    low, high = duration.interval_us
    return min(low, *others, low), max(high, *others, high)
