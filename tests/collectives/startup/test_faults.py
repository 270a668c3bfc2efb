"""What goes wrong at start-up, with real servers and real processes: a clear error or recovery, and never a hang."""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from threading import Event

import pytest

from fabrictune.collectives.startup.addresses import StoreAddress
from fabrictune.collectives.startup.groups import GroupPlan, ProcessGroup
from fabrictune.collectives.startup.rendezvous import start
from fabrictune.collectives.startup.servers import Server, start_redis, start_tcp_store
from fabrictune.collectives.startup.store_operations import Steps
from fabrictune.collectives.startup.stores import connect_store
from fabrictune.foundation.errors import StartupError
from fabrictune.foundation.layout import ParallelLayout
from tests.collectives.startup.ranks import running
from tests.patience import patience

LAYOUT = ParallelLayout(tp=2, dp=2)
PLAN = GroupPlan.of_layout(LAYOUT)
Form = Callable[[ProcessGroup], Steps[None]]


def leave_to_torch(group: ProcessGroup) -> Steps[None]:
    """Ask the store for nothing."""
    yield from ()


def begin(
    address: StoreAddress, rank: int, *, attempt: str, timeout_s: float = 0.0, form: Form = leave_to_torch
) -> Callable[[], None]:
    """Return what one rank does: start and end; without a timeout it has one that no test should reach."""
    limit_s = timeout_s or patience(30)

    def target() -> None:
        from fabrictune.collectives.startup.store_runner import perform, within

        deadline_s = time.monotonic() + limit_s
        store = connect_store(address, attempt=attempt, timeout_s=limit_s)
        within(limit_s, lambda: perform(store, start(PLAN, rank, f"process{os.getpid()}", form), deadline_s=deadline_s))

    return target


def test_all_ranks_start(any_server: Server) -> None:
    """Nothing goes wrong: the case that the others differ from."""
    with running([begin(any_server.address, rank, attempt="good") for rank in range(4)]) as ranks:
        assert [rank.outcome() for rank in ranks] == ["done"] * 4


def test_a_rank_that_never_comes_is_named(any_server: Server) -> None:
    """Rank 2 is not started: each of the others says so when its time is over."""
    limit_s = patience(1)
    with running([begin(any_server.address, rank, attempt="gap", timeout_s=limit_s) for rank in (0, 1, 3)]) as ranks:
        for rank in ranks:
            found, next_step = rank.outcome().splitlines()
            waited = float(found.removeprefix("group world: after ").split()[0])
            assert found.endswith("1 of 4 ranks did not arrive: rank 2 (never joined)")
            assert 0.5 * limit_s < waited < 2 * limit_s
            assert next_step == "  next: look at the logs and hosts of these ranks, then start a new attempt"


def test_a_rank_that_comes_to_one_group_and_not_to_the_next_is_named(any_server: Server) -> None:
    """Rank 3 hangs before its data-parallel group; only its one peer there waits, and knows for whom."""

    def stay_away_from_dp(group: ProcessGroup) -> Steps[None]:
        if group.name == "tp1":
            Event().wait()
        yield from ()

    targets = [begin(any_server.address, rank, attempt="stuck", timeout_s=patience(1)) for rank in range(3)]
    targets.append(begin(any_server.address, 3, attempt="stuck", timeout_s=patience(1), form=stay_away_from_dp))
    with running(targets) as ranks:
        assert [rank.outcome() for rank in (ranks[0], ranks[2])] == ["done", "done"]
        found = ranks[1].outcome().splitlines()[0]
        assert found.startswith("group dp1: after ")
        assert found.endswith("1 of 2 ranks did not arrive: rank 3 (joined, but not this group)")


def test_a_slow_rank_is_waited_for(any_server: Server) -> None:
    """Rank 1 begins when all others stand waiting for it, which they tell by the keys that they have written."""
    store = connect_store(any_server.address, attempt="slow", timeout_s=patience(30))
    with running([begin(any_server.address, rank, attempt="slow") for rank in (0, 2, 3)]) as early:
        store.wait([f"world/{rank}/here" for rank in (0, 2, 3)])
        with running([begin(any_server.address, 1, attempt="slow")]) as late:
            assert [rank.outcome() for rank in (*early, *late)] == ["done"] * 4


def test_a_rank_that_joins_twice_is_refused_and_the_job_goes_on(any_server: Server) -> None:
    """Two processes are told to be rank 0; the second one stops at once, and the four others start."""
    store = connect_store(any_server.address, attempt="twin", timeout_s=patience(30))
    with running([begin(any_server.address, 0, attempt="twin")]) as first:
        store.wait(["joined/0"])
        with running([begin(any_server.address, 0, attempt="twin")]) as second:
            (twin,) = second
            assert twin.outcome().startswith(
                f"rank 0: has joined this attempt before, as process{first[0].process.pid};"
            )
        with running([begin(any_server.address, rank, attempt="twin") for rank in (1, 2, 3)]) as others:
            assert [rank.outcome() for rank in (*first, *others)] == ["done"] * 4


def test_keys_of_an_earlier_attempt_do_no_harm(any_server: Server) -> None:
    """The first attempt fails with three ranks' keys left behind; the second needs all four again, and starts."""
    with running(
        [begin(any_server.address, rank, attempt="job/1", timeout_s=patience(0.5)) for rank in (0, 1, 2)]
    ) as ranks:
        assert all("rank 3 (never joined)" in rank.outcome() for rank in ranks)
    with running([begin(any_server.address, rank, attempt="job/2") for rank in range(4)]) as ranks:
        assert [rank.outcome() for rank in ranks] == ["done"] * 4


def test_an_attempt_name_used_again_is_refused(any_server: Server) -> None:
    """Stale keys of the same name would let ranks pass that nobody waits for: the name is the fault, and is said."""
    for _ in range(2):
        with running([begin(any_server.address, rank, attempt="again") for rank in range(4)]) as ranks:
            found = [rank.outcome() for rank in ranks]
    assert all(text.startswith(f"rank {rank}: has joined this attempt before") for rank, text in enumerate(found))
    assert all("each start of the job a new attempt name" in text for text in found)


def test_a_redis_that_is_killed_and_started_again_is_recovered_from(has_redis: None) -> None:
    """All but rank 3 have arrived when the server loses its memory; they write their keys again, and all start."""
    with start_redis() as server:
        address = server.address
        with running([begin(address, rank, attempt="restart") for rank in range(3)]) as early:
            connect_store(address, attempt="restart", timeout_s=patience(30)).wait(
                [f"world/{rank}/here" for rank in range(3)]
            )
            server.kill()
            with (
                start_redis(port=address.port, password=address.password or ""),
                running([begin(address, 3, attempt="restart")]) as late,
            ):
                assert [rank.outcome() for rank in (*early, *late)] == ["done"] * 4


def test_a_redis_that_stays_away_is_said(has_redis: None) -> None:
    """The server is killed for good: its address is named when the timeout is over."""
    with (
        start_redis() as server,
        running([begin(server.address, rank, attempt="away", timeout_s=patience(1)) for rank in range(3)]) as ranks,
    ):
        store = connect_store(server.address, attempt="away", timeout_s=patience(30))
        store.wait([f"world/{rank}/here" for rank in range(3)])
        server.kill()
        for rank in ranks:
            assert rank.outcome().startswith(f"{server.address}: cannot be reached (")


def test_a_tcp_store_that_is_killed_is_said() -> None:
    """It has no memory to come back with: the ranks learn of it at once, not when their time is over."""
    with (
        start_tcp_store() as server,
        running([begin(server.address, rank, attempt="away", timeout_s=patience(60)) for rank in range(3)]) as ranks,
    ):
        store = connect_store(server.address, attempt="away", timeout_s=patience(30))
        store.wait([f"world/{rank}/here" for rank in range(3)])
        server.kill()
        for rank in ranks:
            assert rank.outcome().startswith("store: was lost (")


@pytest.mark.parametrize("kind", ["redis", "tcp"])
def test_a_server_that_stops_answering_is_no_hang(kind: str, request: pytest.FixtureRequest) -> None:
    """A stopped process keeps its connections open and says nothing: the deadline holds all the same."""
    if kind == "redis":
        request.getfixturevalue("has_redis")
    with start_redis() if kind == "redis" else start_tcp_store() as server:
        connected = multiprocessing.get_context("fork").Event()

        def pause(group: ProcessGroup) -> Steps[None]:
            connected.wait()
            yield from ()

        with running(
            [begin(server.address, rank, attempt="mute", timeout_s=patience(3), form=pause) for rank in range(4)]
        ) as ranks:
            connect_store(server.address, attempt="mute", timeout_s=patience(30)).wait(["world/0/go"])
            server.process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, server.process.pid, os.WSTOPPED | os.WNOWAIT)  # a running one stops a moment later
            connected.set()
            outcomes = [rank.outcome() for rank in ranks]
            assert ["answer" in outcome for outcome in outcomes] == [True] * 4, outcomes


def test_a_wrong_password_is_said_at_once(redis_server: Server) -> None:
    """No retrying for a minute with what will never be right; and the password is not repeated."""
    address = replace(redis_server.address, password="wrong-one")
    with pytest.raises(StartupError) as error:
        connect_store(address, attempt="closed", timeout_s=60)
    assert str(error.value) == (
        f"{address}: refuses the password given (invalid username-password pair or user is disabled.)\n"
        "  next: set FABRICTUNE_STORE_PASSWORD to the server's password (requirepass, or the user's in its ACL)"
    )
    with pytest.raises(StartupError, match="refuses a client without password"):
        connect_store(replace(address, password=None), attempt="closed", timeout_s=60)


def test_no_server_at_all_is_said_when_the_time_is_over(has_redis: None) -> None:
    """A port on which nothing listens any more."""
    with start_redis() as server:
        address = server.address
    with pytest.raises(StartupError, match="cannot be reached"):
        connect_store(address, attempt="nobody", timeout_s=0.2)
    with pytest.raises(StartupError, match="cannot be reached"):
        connect_store(replace(address, scheme="tcp"), attempt="nobody", timeout_s=0.2)
