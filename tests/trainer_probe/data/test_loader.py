"""Loaders as processes: what they deliver, and that nobody waits for one that is gone."""

import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import InputError, LoaderError, TokenFileError
from fabrictune.trainer_probe.data import wire
from fabrictune.trainer_probe.data.batches import Batches, BatchSpec
from fabrictune.trainer_probe.data.loader import Loader, LoaderProcess
from fabrictune.trainer_probe.data.service import Loop, Service
from fabrictune.trainer_probe.data.token_file import HEADER_BYTES
from tests.patience import patience
from tests.trainer_probe.data.conftest import MakeFile


def service_of(path: Path, *, num_workers: int = 1, first_place: int = 0) -> Service:
    """Two replicas of 3 samples of 4 ids and the one after; two slots."""
    batches = BatchSpec(path=str(path), sequence_length=4, batch_size=6, vocabulary_size=1000, num_replicas=2, seed=9)
    return Service(batches=batches, replicas=(0, 1), num_workers=num_workers, first_place=first_place, num_slots=2)


def expected(service: Service, step: int, replica: int) -> IntArray:
    """Return the rows that a replica should get, read without a loader."""
    rows_RC = np.empty((3, 5), dtype=np.uint16)
    Batches(service.batches).read(service.first_place + 6 * step, replica, rows_RC)
    return rows_RC.astype(np.int64)


@contextmanager
def program(module: str, *arguments: str) -> Iterator[tuple["subprocess.Popen[str]", list[str]]]:
    """Run a module of this folder; gives the process and the words of its first line."""
    command = [sys.executable, "-m", f"tests.trainer_probe.data.{module}", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().split()
        finally:
            process.kill()


def take(loader: Loader, num_batches: int) -> None:
    for _ in range(num_batches):
        loader.take()


def await_end(process_descriptor: int) -> None:
    """Return when a process that is not our child has ended."""
    ready, _, _ = select.select([process_descriptor], [], [], patience(60))
    os.close(process_descriptor)
    assert ready, "still there"


def test_workers_of_one_loader_get_their_replicas_rows(make_file: MakeFile) -> None:
    """Two workers a replica, as two tensor-parallel ranks would be; more steps than slots, over an epoch's end."""
    service = service_of(make_file(145), num_workers=4)
    with LoaderProcess(service) as owned, ExitStack() as stack:
        workers = [(replica, stack.enter_context(Loader(owned.address, replica))) for replica in (0, 1, 0, 1)]
        for step in range(9):
            for replica, loader in workers:
                assert np.array_equal(loader.take(), expected(service, step, replica))


@pytest.mark.parametrize("num_batches", range(4))
def test_a_loader_ends_when_its_workers_have(num_batches: int, make_file: MakeFile) -> None:
    """By itself (exit code 0, where a killed one has -9), whatever it is doing when they go."""
    with LoaderProcess(service_of(make_file(145), num_workers=2)) as owned:
        with Loader(owned.address, 0) as first, Loader(owned.address, 1) as second:
            for _ in range(num_batches):
                take(first, 1)
                take(second, 1)
        assert owned.process.wait(patience(60)) == 0


def test_a_loader_goes_on_at_a_place(make_file: MakeFile) -> None:
    """From place 18 on the first batch is the fourth of a loader that began at 0."""
    path = make_file(145)
    with LoaderProcess(service_of(path, first_place=18)) as owned, Loader(owned.address, 1) as loader:
        assert np.array_equal(loader.take(), expected(service_of(path), 3, 1))


def test_one_loader_reads_once_for_all_its_workers(make_file: MakeFile) -> None:
    """6 samples of 5 ids of 2 bytes are 60 B a batch, whether two workers take them or one."""
    path = make_file(145)
    with LoaderProcess(service_of(path, num_workers=2)) as owned, ExitStack() as stack:
        workers = [stack.enter_context(Loader(owned.address, replica)) for replica in (0, 1)]
        for _ in range(3):
            for loader in workers:
                loader.take()
        assert 3 * 60 <= workers[0].bytes_read <= (3 + 2) * 60  # two slots ahead at most


def test_a_slow_worker_is_not_overtaken(make_file: MakeFile) -> None:
    """With two slots the third batch has no room until the other worker has taken its first; then it comes."""
    service, limit_s = service_of(make_file(145), num_workers=2), patience(1)
    with (
        LoaderProcess(service) as owned,
        Loader(owned.address, 0, timeout_s=limit_s) as fast,
        Loader(owned.address, 0) as slow,
    ):
        fast.take()
        fast.take()
        with pytest.raises(LoaderError) as error:
            fast.take()
        assert str(error.value) == (
            f"loader {owned.address}: no batch within {limit_s:g} s\n"
            "  next: check that the token file's storage answers, and that all workers have connected"
        )
        slow.take()
        assert np.array_equal(fast.take(), expected(service, 2, 0))


def test_a_killed_loader_is_an_error_at_every_worker(make_file: MakeFile) -> None:
    """What was read ahead is still taken or not, but the end comes, and at once."""
    with (
        LoaderProcess(service_of(make_file(145), num_workers=2)) as owned,
        Loader(owned.address, 0) as first,
        Loader(owned.address, 1) as second,
    ):
        first.take()
        owned.process.kill()
        owned.process.wait()
        for loader in (first, second):
            with pytest.raises(LoaderError) as error:
                take(loader, 4)  # two slots, and what was announced before
            assert str(error.value) == (
                f"loader {owned.address}: has ended before its workers\n"
                "  next: find what ended the process: a lack of memory, a truncated token file, or a signal"
            )


def test_a_killed_loader_leaves_no_memory_behind(make_file: MakeFile) -> None:
    """The memory has no name, and is gone from this process too when the worker has closed."""
    named = set(os.listdir("/dev/shm"))  # noqa: PTH208  # names alone
    maps = Path("/proc/self/maps")
    with LoaderProcess(service_of(make_file(145))) as owned, Loader(owned.address, 0) as loader:
        loader.take()
        owned.process.kill()
        owned.process.wait()
        assert set(os.listdir("/dev/shm")) == named  # noqa: PTH208
        assert "fabrictune-batches" in maps.read_text()
    assert "fabrictune-batches" not in maps.read_text()


def test_a_killed_worker_holds_nobody_back(make_file: MakeFile) -> None:
    """It never takes its second batch, and the other goes on beyond the two slots."""
    service = service_of(make_file(145), num_workers=2)
    with LoaderProcess(service) as owned, Loader(owned.address, 0) as loader:
        with program("taking", owned.address, "1") as (worker, words):
            assert words == [str(expected(service, 0, 1)[0, 0])]
            worker.send_signal(signal.SIGKILL)
        for step in range(6):
            assert np.array_equal(loader.take(), expected(service, step, 0))


def test_a_loader_whose_owner_and_worker_are_killed_ends(make_file: MakeFile) -> None:
    """Nobody could end it any more; a second worker that was to come never did."""
    with program("owning", service_of(make_file(145), num_workers=2).to_json()) as (owner, (_, process)):
        descriptor = os.pidfd_open(int(process))
        owner.kill()
    await_end(descriptor)


def test_a_worker_outlives_the_owner(make_file: MakeFile) -> None:
    """Ranks end at different moments, also the one that started the loader."""
    service = service_of(make_file(145), num_workers=2)
    with program("owning", service.to_json()) as (owner, (address, process)):
        descriptor = os.pidfd_open(int(process))
        with Loader(address, 1) as loader:
            owner.kill()
            for step in range(6):
                assert np.array_equal(loader.take(), expected(service, step, 1))
    await_end(descriptor)


def test_every_worker_hears_what_is_wrong_with_the_file(make_file: MakeFile) -> None:
    """Before the first batch, in the same words."""
    path = make_file(145)
    path.write_bytes(path.read_bytes()[:-1])
    with LoaderProcess(service_of(path, num_workers=2)) as owned:
        messages = []
        for replica in (0, 1):
            with pytest.raises(TokenFileError, match="cut short") as error:
                Loader(owned.address, replica)
            messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_a_file_cut_short_under_a_loader_is_an_error(make_file: MakeFile) -> None:
    """A map of what is no longer there ends the process (SIGBUS) that touches it; its workers are told, and go on."""
    path = make_file(145)
    with LoaderProcess(service_of(path)) as owned, Loader(owned.address, 0) as loader:
        take(loader, 1)
        os.truncate(path, 0)
        with pytest.raises(LoaderError, match="has ended before its workers"):
            take(loader, 6)
    assert owned.process.returncode == -signal.SIGBUS


def test_a_damaged_id_is_an_error_when_its_batch_is_read(make_file: MakeFile) -> None:
    """All its ids are of one block."""
    path = make_file(145)
    content = bytearray(path.read_bytes())
    content[HEADER_BYTES + 2 * 77 : HEADER_BYTES + 2 * 78] = b"\xff\xff"
    path.write_bytes(content)
    with (
        LoaderProcess(service_of(path)) as owned,
        pytest.raises(TokenFileError, match="ids 0 to 144 with another checksum"),
        Loader(owned.address, 0) as loader,
    ):
        take(loader, 6)


def test_an_address_without_a_loader_is_an_error() -> None:
    """After a time in which one could have started."""
    with pytest.raises(LoaderError) as error:
        Loader("fabrictune-nobody", 0, timeout_s=0.1)
    assert str(error.value) == "loader fabrictune-nobody: does not answer within 0.1 s\n  next: start it first"


def test_a_loader_of_another_user_is_left_alone(make_file: MakeFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who takes the address first could hand out any memory as batches."""
    with LoaderProcess(service_of(make_file(145))) as owned:
        with monkeypatch.context() as patch:
            patch.setattr(wire, "belongs_to_this_user", lambda _: False)
            with pytest.raises(LoaderError) as error:
                Loader(owned.address, 0)
        assert str(error.value) == f"loader {owned.address}: belongs to another user\n  next: start it first"


def test_a_worker_of_another_user_gets_nothing(make_file: MakeFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connection is closed, and the worker that is expected is still expected."""
    is_ours = iter([False, True])
    monkeypatch.setattr(wire, "belongs_to_this_user", lambda _: next(is_ours))
    owner, owners_end = os.pipe()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener, ThreadPoolExecutor(1) as threads:
        listener.bind(str(make_file(145).with_name("listener")))
        listener.listen()
        loop = threads.submit(Loop(listener, owner, service_of(make_file(145))).run)
        with connected(listener) as stranger:
            assert stranger.recv(100) == b""
        with connected(listener) as worker:
            assert b"num_slots" in worker.recv(1000)
        loop.result(patience(60))
    os.close(owner)
    os.close(owners_end)


@contextmanager
def connected(listener: socket.socket) -> Iterator[socket.socket]:
    """Give a connection."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.settimeout(patience(60))
        connection.connect(listener.getsockname())
        yield connection


def test_an_address_is_taken_once(make_file: MakeFile) -> None:
    """Two jobs of one name on a machine would read each other's batches."""
    service = service_of(make_file(145))
    with LoaderProcess(service) as owned, Loader(owned.address, 0), pytest.raises(LoaderError) as error:
        LoaderProcess(service, owned.address)
    assert str(error.value) == (
        f"loader {owned.address}: cannot be started: Address already in use\n"
        "  next: end the job that has this name, or choose another"
    )


def test_all_mistakes_of_a_service_are_said_at_once(make_file: MakeFile) -> None:
    """Before any process is started."""
    spec = service_of(make_file(145)).batches
    with pytest.raises(InputError) as error:
        Service(batches=spec, replicas=(0,), num_workers=0, num_slots=0)
    assert str(error.value) == (
        "loader.num_workers: 0\n  allowed: 1 or more\nloader.num_slots: 0\n  allowed: 1 or more"
    )
