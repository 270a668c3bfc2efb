"""What goes wrong with a measurement ends it with one message, what was measured is kept, and nothing stays behind."""

import json
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from fabrictune.foundation.errors import InputError, UnavailableError
from fabrictune.rdma_bench.measurement.pair import PortChoice, WorkerPair
from fabrictune.rdma_bench.measurement.timers import TimerPlan, measure_timers
from fabrictune.rdma_bench.measurement.workers import RdmaWorker, remote_worker
from fabrictune.rdma_bench.soft_roce.machine import VirtualMachine
from fabrictune.rdma_bench.soft_roce.workers import SENDER, SPARE_PORT, TOKEN, running_workers, soft_roce_pair
from fabrictune.rdma_bench.verbs.channel import ChannelError
from fabrictune.rdma_bench.verbs.endpoint import ConnectionSpec
from tests.patience import patience

pytestmark = pytest.mark.real

QUICK_THEN_LONG = TimerPlan(exponents=(14, 18), retries=(6,), by_command=True)  # 0.5 s, then 7.5 s


@pytest.fixture(scope="module")
def spare(machine: VirtualMachine) -> Iterator[str]:
    """Give the place of a third worker."""
    with running_workers(machine, SPARE_PORT) as (place,):
        yield place


def queue_pairs(machine: VirtualMachine) -> int:
    """Return how many queue pairs processes hold; the kernel's own are not counted."""
    listed = json.loads(machine.run("rdma -j resource show qp"))
    return sum("pid" in row for row in listed)


def test_a_port_that_is_down_is_named(pair: WorkerPair) -> None:
    """`rxe_down` stands on an interface that was never brought up."""
    with pytest.raises(UnavailableError) as caught:
        pair.sender.ask("open", role="sender", device="rxe_down")
    (mistake,) = caught.value.mistakes
    assert (mistake.where, mistake.found) == (f"{pair.sender.name}: rxe_down port 1", "the port is DOWN")


def test_a_gid_index_out_of_range_lists_those_in_use(pair: WorkerPair) -> None:
    """Index 0 is the interface's own IPv6 address, 1 its IPv4 address; there are no others."""
    with pytest.raises(InputError) as caught:
        pair.sender.ask("open", role="sender", device="rxe_a", gid_index=9)
    (mistake,) = caught.value.mistakes
    assert mistake.found == "no GID of index 9"
    assert "1 (RoCE v2, 10.77.0.1)" in mistake.allowed


def test_a_device_that_does_not_exist_is_guessed(pair: WorkerPair) -> None:
    """The nearest of those there are."""
    with pytest.raises(InputError) as caught:
        pair.sender.ask("open", role="sender", device="rxe_A")
    assert caught.value.mistakes[0].nearest == "rxe_a"


def test_two_measurements_on_one_port_do_not_meet(pair: WorkerPair, machine: VirtualMachine, spare: str) -> None:
    """The second is refused as long as the first has the port, and not after."""
    with remote_worker(spare, (machine.share / TOKEN).read_text()) as other:
        with pair.connected(ConnectionSpec()), pytest.raises(UnavailableError) as caught:
            other.ask("open", role="sender", device="rxe_a")
        assert caught.value.mistakes[0].found == "another measurement uses it as its sender"
        assert other.ask("open", role="sender", device="rxe_a")["device"] == "rxe_a"


def test_a_stranger_cannot_drive_a_worker(spare: str) -> None:
    """Another token is refused by both ends before any request."""
    with pytest.raises(ChannelError), remote_worker(spare, "x" * 32):
        pass


def test_a_request_that_is_wrong_is_refused_and_the_worker_goes_on(pair: WorkerPair) -> None:
    """Unknown requests, keys and values come back as mistakes, all of them."""
    with pytest.raises(InputError):
        pair.sender.ask("shell")
    with pytest.raises(InputError) as caught:
        pair.sender.ask("open", role="sender", devise="rxe_a", port="one")
    assert [mistake.nearest or mistake.allowed for mistake in caught.value.mistakes] == ["device", "a whole number"]
    assert pair.sender.ask("describe")["diagnosis"]["problem"] is None


def test_a_run_stopped_by_ctrl_c_keeps_its_trials(
    machine: VirtualMachine, places: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first trial is kept, the second given up in its middle; the path is healed and no queue pair stays."""
    num_begun = 0

    def begin_and_interrupt_the_second(worker: RdmaWorker, request: str, **arguments: Any) -> None:
        nonlocal num_begun
        begin(worker, request, **arguments)
        num_begun += request == "trial"
        if request == "trial" and num_begun == 2:
            signal.raise_signal(signal.SIGINT)

    begin = RdmaWorker.begin
    with soft_roce_pair(machine, *places) as pair, monkeypatch.context() as patch:
        patch.setattr(RdmaWorker, "begin", begin_and_interrupt_the_second)
        measured = measure_timers(pair, QUICK_THEN_LONG)
    assert (len(measured.trials), measured.stopped) == (1, "Ctrl-C")
    with soft_roce_pair(machine, *places) as pair, pair.connected(ConnectionSpec()):
        assert pair.sender.ask("trial", limit_s=patience(10))["status"] == 0
    assert queue_pairs(machine) == 0


def test_a_peer_that_vanishes_ends_the_run_with_what_there_is(
    machine: VirtualMachine, places: tuple[str, str], spare: str
) -> None:
    """Its process is killed before the second trial: one trial, why there is no more, and nothing is held."""

    def kill_the_peer(_fraction: float, _note: str = "", /) -> None:
        machine.run(f"pkill -9 -f '[v]erbs.worker --listen .*:{SPARE_PORT}'")

    with soft_roce_pair(machine, places[0], spare) as pair:
        measured = measure_timers(pair, QUICK_THEN_LONG, kill_the_peer)
    assert len(measured.trials) == 1
    assert measured.stopped.startswith(f"{spare}: it is gone")
    assert queue_pairs(machine) == 0


def test_a_run_that_cannot_begin_is_an_error(machine: VirtualMachine, places: tuple[str, str]) -> None:
    """With no trial there is nothing to keep."""
    with soft_roce_pair(machine, *places) as pair, pytest.raises(UnavailableError):
        measure_timers(
            WorkerPair(
                sender=pair.sender,
                receiver=pair.receiver,
                sender_place=SENDER,
                receiver_place=PortChoice(device="rxe_down"),
            ),
            QUICK_THEN_LONG,
        )
