"""The clock of a GPU's work on a modelled stream: calls queue work and return at once, and events wait their turn."""

from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from fabrictune.foundation.traces import Operation
from fabrictune.foundation.units import NS_PER_MS
from fabrictune.trainer_probe.clocks import HostClock
from fabrictune.trainer_probe.ledger import Ledger, Request
from fabrictune.trainer_probe.stream_clock import StreamClock, cuda_event


class Gpu:
    """A stream that works behind its host: work begins when that before it is done, and never before it is queued."""

    def __init__(self) -> None:
        self.host_ns, self.stream_ns = 5_000_000, 0

    def queue(self, duration_ns: int) -> None:
        self.stream_ns = max(self.stream_ns, self.host_ns) + duration_ns

    def wait_for(self, moment_ns: int) -> None:
        """Queue a wait of the stream, as torch does for a request of NCCL."""
        self.queue(0)
        self.stream_ns = max(self.stream_ns, moment_ns)


class Event:
    """An event of the modelled stream."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu, self.reached_ns = gpu, -1

    def record(self) -> None:
        self.gpu.queue(0)
        self.reached_ns = self.gpu.stream_ns

    def synchronize(self) -> None:
        self.gpu.host_ns = max(self.gpu.host_ns, self.reached_ns)

    def elapsed_time(self, end_event: "Event") -> float:
        assert self.gpu.host_ns >= max(self.reached_ns, end_event.reached_ns), (
            "an event that is not reached has no time"
        )
        return (end_event.reached_ns - self.reached_ns) / NS_PER_MS


def stream_clock(gpu: Gpu) -> StreamClock:
    return StreamClock(lambda: Event(gpu), lambda: gpu.host_ns)


def a_request(ledger: Ledger[Any]) -> int:
    return ledger.issue(
        Request(operation=Operation.ALL_REDUCE, group=0, num_bytes=8, step=0, axis="dp", policy="dp", tag="sum")
    )


def step_with_exposed_wait(gpu: Gpu, ledger: Ledger[Any]) -> None:
    """Queue 2 ms of work, a request that takes 5 ms from then on, 3 ms of work beside it, and the wait for it."""
    gpu.queue(2_000_000)
    request = a_request(ledger)
    complete_ns = gpu.stream_ns + 5_000_000
    gpu.queue(3_000_000)
    ledger.wait(request, lambda: gpu.wait_for(complete_ns))
    gpu.queue(1_000_000)


def test_a_wait_is_the_time_its_stream_stands_still() -> None:
    """5 ms of communication less 3 ms of work beside it; the host's clock has seen none of it."""
    gpu = Gpu()
    ledger = Ledger(0, ((0, 1),), stream_clock(gpu))
    step_with_exposed_wait(gpu, ledger)
    assert gpu.host_ns == 5_000_000
    assert ledger.exposed_wait_ns() == {"dp": 2_000_000}


def test_the_hosts_clock_sees_no_wait() -> None:
    """What a ledger by the host's clock says of the same step."""
    gpu = Gpu()
    ledger = Ledger(0, ((0, 1),), HostClock(lambda: gpu.host_ns))
    step_with_exposed_wait(gpu, ledger)
    assert ledger.exposed_wait_ns() == {"dp": 0}


def test_a_trace_has_the_streams_times() -> None:
    """2 ms of work before the request, which is complete 7 ms after the beginning; the next follows 1 ms of work."""
    gpu = Gpu()
    ledger = Ledger(0, ((0, 1),), stream_clock(gpu))
    step_with_exposed_wait(gpu, ledger)
    a_request(ledger)
    trace = ledger.trace()
    assert trace.compute_before_ps_N.tolist() == [2_000_000_000, 1_000_000_000]
    assert trace.issue_ps_N.tolist() == [2_000_000_000, 8_000_000_000]
    assert trace.complete_ps_N[0] == 7_000_000_000
    assert trace.exposed_wait_ps_N[0] == 2_000_000_000


def test_waits_of_forgotten_requests_are_in_the_sum() -> None:
    """The ledger of a long run stays short."""
    gpu = Gpu()
    ledger = Ledger(0, ((0, 1),), stream_clock(gpu))
    for _ in range(3):
        step_with_exposed_wait(gpu, ledger)
        ledger.forget()
    assert len(ledger.trace()) == 0
    assert ledger.exposed_wait_ns() == {"dp": 6_000_000}


def test_readings_outlive_a_change_of_base(monkeypatch: pytest.MonkeyPatch) -> None:
    """A base is renewed while readings of the one before it are asked for."""
    monkeypatch.setattr("fabrictune.trainer_probe.stream_clock._MAX_READINGS", 2)
    gpu = Gpu()
    clock = stream_clock(gpu)
    readings = []
    for _ in range(5):
        gpu.queue(1_000_000)
        readings.append(clock.read())
    expected = [5_000_000 + 1_000_000 * place for place in range(1, 6)]
    assert [clock.ns(reading) for reading in readings] == expected
    assert [clock.ns(reading) for reading in readings] == expected


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")
def test_a_gpus_stream_is_timed() -> None:
    """Products that keep a GPU busy for milliseconds, queued in far less."""
    factor = torch.ones(4096, 4096, device="cuda")
    clock = StreamClock(cuda_event)
    before, host_before = clock.read(), HostClock().read()
    for _ in range(50):
        factor = factor @ factor / 4096
    after, host_after = clock.read(), HostClock().read()
    assert clock.ns(after) - clock.ns(before) > host_after - host_before
