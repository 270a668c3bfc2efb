"""Bandwidth and latency between two ends, over numbers of queue pairs, sizes and directions.

With pyverbs the workers write themselves: bandwidth is that of Python's loop where the device is faster than it, and a
latency is a whole round trip. With perftest they run its programs; its latency is half a round trip.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import permutations, product
from typing import Literal

from fabrictune.foundation.errors import FabrictuneError, InputError
from fabrictune.foundation.metrics.formulas import percentile
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.time_limits import scaled
from fabrictune.foundation.units import BITS_PER_BYTE, NS_PER_S
from fabrictune.rdma_bench.measurement.pair import PortChoice, WorkerPair
from fabrictune.rdma_bench.measurement.perftest_output import read_bandwidth_bps, read_latency_ns
from fabrictune.rdma_bench.measurement.stop_reason import reason_of
from fabrictune.rdma_bench.measurement.workers import RdmaWorker
from fabrictune.rdma_bench.verbs.endpoint import ConnectionSpec
from fabrictune.rdma_bench.verbs.perftest import PerftestSpec
from fabrictune.rdma_bench.verbs.transfers import TransferSpec

What = Literal["bandwidth", "latency"]
Backend = Literal["pyverbs", "perftest"]

BACKENDS: tuple[Backend, ...] = ("pyverbs", "perftest")
_ANSWER_S = 60.0
_SERVER_LIMIT_S = 120.0
_TRIALS = 3  # of perftest, which may fail to calibrate its clock


@dataclass(frozen=True, kw_only=True)
class TransferPlan:
    """Cases to measure."""

    what: What
    sizes_bytes: tuple[int, ...]
    queue_pairs: tuple[int, ...] = (1,)
    directions: tuple[int, ...] = (1,)  # 1 or 2
    backend: Backend = "pyverbs"
    duration_s: float = 1.0
    num_iterations: int = 1000

    def cases(self) -> Iterator[tuple[int, int, int]]:
        """Yield queue pairs, size and directions of each case."""
        yield from product(self.queue_pairs, self.sizes_bytes, self.directions)

    @property
    def num_cases(self) -> int:
        """Number of cases."""
        return len(self.queue_pairs) * len(self.sizes_bytes) * len(self.directions)


@dataclass(frozen=True, kw_only=True)
class MeasuredTransfer:
    """One case, measured."""

    num_queue_pairs: int
    size_bytes: int
    num_directions: int
    bandwidth_bps: float = 0.0  # of all directions together
    median_ns: float = 0.0
    p99_ns: float = 0.0
    sender: str = ""  # worker
    receiver: str = ""


@dataclass(frozen=True, kw_only=True)
class MeasuredTransfers:
    """All cases, in order."""

    transfers: tuple[MeasuredTransfer, ...]
    stopped: str = ""  # why there are no more


def measure_transfers(pair: WorkerPair, plan: TransferPlan, progress: Progress | None = None) -> MeasuredTransfers:
    """Measure all cases; raises what ended the first one, and returns what there is if a later one fails."""
    done = list[MeasuredTransfer]()
    measure = _MEASURES[plan.what, plan.backend]
    try:
        for num_queue_pairs, size_bytes, num_directions in plan.cases():
            transfer = measure(pair, plan, num_queue_pairs, size_bytes, num_directions)
            done.append(replace(transfer, sender=pair.sender.name, receiver=pair.receiver.name))
            if progress:
                progress(len(done) / plan.num_cases)
    except (FabrictuneError, KeyboardInterrupt) as error:
        if not done:
            raise
        return MeasuredTransfers(transfers=tuple(done), stopped=reason_of(error))
    return MeasuredTransfers(transfers=tuple(done))


def measure_matrix(
    workers: Sequence[tuple[RdmaWorker, PortChoice]], plan: TransferPlan, progress: Progress | None = None
) -> MeasuredTransfers:
    """Measure all cases from each worker to each other one, one pair after another; keeps what there is, as above."""
    done = list[MeasuredTransfer]()
    pairs = [
        WorkerPair(sender=near, receiver=far, sender_place=near_place, receiver_place=far_place)
        for (near, near_place), (far, far_place) in permutations(workers, 2)
    ]
    for number, pair in enumerate(pairs):
        try:
            measured = measure_transfers(pair, plan)
        except (FabrictuneError, KeyboardInterrupt) as error:
            if not done:
                raise
            return MeasuredTransfers(transfers=tuple(done), stopped=reason_of(error))
        done.extend(measured.transfers)
        if measured.stopped:
            return MeasuredTransfers(transfers=tuple(done), stopped=measured.stopped)
        if progress:
            progress((number + 1) / len(pairs))
    return MeasuredTransfers(transfers=tuple(done))


def _bandwidth(
    pair: WorkerPair, plan: TransferPlan, num_queue_pairs: int, size_bytes: int, num_directions: int
) -> MeasuredTransfer:
    spec = asdict(TransferSpec(message_bytes=size_bytes, duration_s=plan.duration_s))
    senders = (pair.sender, pair.receiver)[:num_directions]
    with pair.connected(ConnectionSpec(), num_queue_pairs=num_queue_pairs, buffer_bytes=size_bytes):
        for sender in senders:
            sender.begin("bandwidth", **spec)
        results = [sender.finish(timeout_s=plan.duration_s + _ANSWER_S) for sender in senders]
    return MeasuredTransfer(
        num_queue_pairs=num_queue_pairs,
        size_bytes=size_bytes,
        num_directions=num_directions,
        bandwidth_bps=sum(
            result["num_bytes"] * BITS_PER_BYTE * NS_PER_S / result["duration_ns"]
            for result in results
            if result["num_bytes"]
        ),
    )


def _latency(
    pair: WorkerPair, plan: TransferPlan, num_queue_pairs: int, size_bytes: int, num_directions: int
) -> MeasuredTransfer:
    spec = asdict(TransferSpec(message_bytes=size_bytes, num_iterations=plan.num_iterations))
    with pair.connected(ConnectionSpec(), buffer_bytes=size_bytes):
        after_ns: Sequence[int] = pair.sender.ask("latency", timeout_s=_ANSWER_S, **spec)["after_ns"]
    return MeasuredTransfer(
        num_queue_pairs=num_queue_pairs,
        size_bytes=size_bytes,
        num_directions=num_directions,
        median_ns=percentile(after_ns, 0.5),
        p99_ns=percentile(after_ns, 0.99),
    )


def _perftest(
    pair: WorkerPair, plan: TransferPlan, num_queue_pairs: int, size_bytes: int, num_directions: int
) -> MeasuredTransfer:
    spec = PerftestSpec(
        what=plan.what,
        message_bytes=size_bytes,
        num_queue_pairs=num_queue_pairs,
        num_iterations=plan.num_iterations,
        is_both_ways=num_directions > 1,
        limit_s=scaled(_SERVER_LIMIT_S),
    )
    case = MeasuredTransfer(num_queue_pairs=num_queue_pairs, size_bytes=size_bytes, num_directions=num_directions)
    for trial in range(_TRIALS):
        text, json = _ask_perftest(pair, spec)
        try:
            if plan.what == "bandwidth":
                return replace(case, bandwidth_bps=read_bandwidth_bps(text, json))
            median_ns, p99_ns = read_latency_ns(text, json)
            return replace(case, median_ns=median_ns, p99_ns=p99_ns)
        except InputError:  # its clock could not be calibrated
            if trial == _TRIALS - 1:
                raise
    raise AssertionError("the last trial returns or raises")


def _ask_perftest(pair: WorkerPair, spec: PerftestSpec) -> tuple[str, str]:
    """Run perftest at both ends; returns its text and its JSON at the sender."""
    with pair.placed() as server:
        pair.receiver.begin("perftest", **asdict(spec))
        output = pair.sender.ask("perftest", timeout_s=_SERVER_LIMIT_S, **asdict(replace(spec, server=server)))
        pair.receiver.finish(timeout_s=_SERVER_LIMIT_S)
    return output["text"], output["json"]


_MEASURES: dict[tuple[What, Backend], Callable[[WorkerPair, TransferPlan, int, int, int], MeasuredTransfer]] = {
    ("bandwidth", "pyverbs"): _bandwidth,
    ("latency", "pyverbs"): _latency,
    ("bandwidth", "perftest"): _perftest,
    ("latency", "perftest"): _perftest,
}
