"""Copies between the memories of real nodes of this machine, each with its own server."""

import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import google_crc32c
import pytest

from fabrictune.trainer_probe.checkpoint.names import CheckpointId, data_file, index_file
from fabrictune.trainer_probe.operation.memory_pull import pull
from fabrictune.trainer_probe.operation.messages import connect
from fabrictune.trainer_probe.operation.node_memory import MemoryRefusedError, NodeMemory
from fabrictune.trainer_probe.operation.peer_copies import PeerCopies
from fabrictune.trainer_probe.operation.transfers import TransferError, ask
from tests.patience import patience

MB = 1 << 20


@contextmanager
def node(
    folder: Path, key: bytes, *, max_bytes: int = 64 * MB, bytes_per_s: float | None = None
) -> Iterator[PeerCopies]:
    copies = PeerCopies(NodeMemory(folder, max_bytes=max_bytes), key, bytes_per_s=bytes_per_s)
    try:
        yield copies
    finally:
        copies.close()


def refusal(copies: PeerCopies, key: bytes, **request: object) -> str:
    """Return why a node refuses a request."""
    with (
        connect(*copies.address, key, timeout_s=patience(10)) as peer,
        pytest.raises(TransferError) as raised,
    ):
        ask(peer, **request)
    return str(raised.value)


def save(folder: Path, step: int, ranks: tuple[int, ...], generation: int = 1, num_bytes: int = 100_000) -> None:
    """Write what ranks save: tensors, and behind them the index."""
    place = folder / str(CheckpointId(step=step, generation=generation))
    place.mkdir(exist_ok=True)
    for rank in ranks:
        (place / data_file(rank)).write_bytes(os.urandom(num_bytes))
        (place / index_file(rank)).write_text(f'{{"rank": {rank}}}')


def contents(folder: Path) -> dict[str, bytes]:
    found = {}
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError, IsADirectoryError):  # renamed since
            found[str(path.relative_to(folder))] = path.read_bytes()
    return found


def await_same(copies: PeerCopies, sent: Path, received: Path) -> None:
    """Wait until one folder has all that another one has."""
    deadline_s = time.monotonic() + patience(20)
    while not contents(sent).items() <= contents(received).items():
        assert time.monotonic() < deadline_s, copies.status
        copies.look()
        time.sleep(0.01)


def test_a_lost_node_restores_from_its_peer(tmp_path: Path, key: bytes) -> None:
    """Two checkpoints go over in the background; the node's memory is gone; a spare takes all its ranks' files back."""
    with node(tmp_path / "b", key) as second:
        with node(tmp_path / "a", key) as first:
            first.send_to(second.address, generation=1, ranks=(0, 1))
            save(tmp_path / "a", 10, (0, 1))
            save(tmp_path / "a", 20, (0, 1))
            await_same(first, tmp_path / "a", tmp_path / "b")
            before = contents(tmp_path / "a")
            first.memory.remove()
        assert not (tmp_path / "a").exists()
        with node(tmp_path / "spare", key) as spare:
            result = pull(spare.memory, key, [second.address], ranks=(0, 1), generation=2)
        assert contents(tmp_path / "spare") == before
        assert [checkpoint.step for checkpoint in result.checkpoints] == [20, 10]
        assert (result.num_files, result.failures) == (8, ())
        assert result.num_bytes == sum(map(len, before.values()))


def test_a_slow_way_finishes_what_it_began_and_says_that_it_is_late(tmp_path: Path, key: bytes) -> None:
    """While step 10 is on its way 20 and 30 are saved, and memory drops 20: 10 arrives late, and then 30 in time."""
    late: list[tuple[int, int, str]] = []
    memory = NodeMemory(tmp_path / "a", max_bytes=64 * MB)
    with node(tmp_path / "b", key) as second:
        first = PeerCopies(memory, key, bytes_per_s=4 * MB, on_late=lambda *found: late.append(found))
        save(tmp_path / "a", 10, (0,), num_bytes=4 * MB)
        first.send_to(second.address, generation=1, ranks=(0,))
        deadline_s = time.monotonic() + patience(20)
        while not list((tmp_path / "b").glob("step-00000010.g1/.*.half")):
            assert time.monotonic() < deadline_s, first.status
        for step in (20, 30):
            save(tmp_path / "a", step, (0,))
        shutil.rmtree(tmp_path / "a" / "step-00000020.g1")
        save(tmp_path / "a", 40, (0,))
        await_same(first, tmp_path / "a", tmp_path / "b")
        first.close()
    assert late == [(1, 10, "")]


def test_a_peer_that_cannot_be_reached_is_said_once_a_checkpoint(tmp_path: Path, key: bytes) -> None:
    """Training goes on; what a lost node would cost is in the journal."""
    late: queue.SimpleQueue[tuple[int, int, str]] = queue.SimpleQueue()
    with node(tmp_path / "b", key) as gone:
        address = gone.address
    first = PeerCopies(NodeMemory(tmp_path / "a", max_bytes=MB), key, on_late=lambda *found: late.put(found))
    first.send_to(address, generation=1, ranks=(0,))
    for step in (10, 20):
        save(tmp_path / "a", step, (0,))
        generation, found, cause = late.get(timeout=patience(20))
        assert (generation, found) == (1, step)
        assert str(address[1]) in cause
    first.close()
    assert late.empty()


def test_only_what_lacks_is_taken_and_only_for_the_ranks(tmp_path: Path, key: bytes) -> None:
    """A node that has its own files takes those of the ranks that have moved to it."""
    with node(tmp_path / "a", key) as first, node(tmp_path / "b", key) as second:
        save(tmp_path / "a", 10, (0,))
        save(tmp_path / "b", 10, (1, 2, 3))
        result = pull(first.memory, key, [second.address], ranks=(0, 1), generation=2)
    assert (result.num_files, [checkpoint.step for checkpoint in result.checkpoints]) == (2, [10])
    assert sorted(contents(tmp_path / "a")) == [
        f"step-00000010.g1/rank-0000{rank}.{kind}" for rank in (0, 1) for kind in ("json", "safetensors")
    ]


def test_a_checkpoint_without_one_ranks_files_is_not_taken(tmp_path: Path, key: bytes) -> None:
    """Rank 1 has saved step 10 but not step 20, and of step 30 there are tensors without an index."""
    with node(tmp_path / "a", key) as first, node(tmp_path / "b", key) as second:
        save(tmp_path / "b", 10, (0, 1))
        save(tmp_path / "b", 20, (0,))
        save(tmp_path / "b", 30, (0, 1))
        (tmp_path / "b" / "step-00000030.g1" / index_file(1)).unlink()
        result = pull(first.memory, key, [second.address], ranks=(0, 1), generation=2)
    assert [checkpoint.step for checkpoint in result.checkpoints] == [10]


def test_a_node_that_is_gone_is_said_and_others_serve(tmp_path: Path, key: bytes) -> None:
    """The first address answers no more."""
    with node(tmp_path / "c", key) as gone:
        address = gone.address
    with node(tmp_path / "a", key) as first, node(tmp_path / "b", key) as second:
        save(tmp_path / "b", 10, (0,))
        result = pull(first.memory, key, [address, second.address], ranks=(0,), generation=2)
    assert result.num_files == 2
    assert [failure.split(":")[0] for failure in result.failures] == ["127.0.0.1"]


def test_damage_on_the_way_is_noticed(tmp_path: Path, key: bytes) -> None:
    """A wrong checksum, fewer bytes, more bytes, none and no checksum: refused, and nothing of it stays."""
    content = os.urandom(5000)
    checksum = google_crc32c.value(content)
    cases: list[list[bytes | dict[str, int]]] = [
        [content, {"checksum": checksum ^ 1}],
        [content[:3000], {"checksum": checksum}],
        [content, content, {"checksum": checksum}],
        [content, {}],
        [{}],
    ]
    with node(tmp_path / "a", key) as first:
        for case in cases:
            with connect(*first.address, key, timeout_s=patience(10)) as peer:
                name = f"step-00000010.g1/{data_file(0)}"
                ask(peer, do="put", name=name, bytes=len(content), generation=1)
                for frame in case:
                    if isinstance(frame, bytes):
                        peer.send_bytes(frame)
                    else:
                        peer.send(frame)
                assert "refused" in peer.receive(patience(10))
        assert contents(tmp_path / "a") == {}


def test_a_sender_killed_in_a_file_leaves_nothing(tmp_path: Path, key: bytes) -> None:
    """Half a file has no name, and goes when its sender does."""
    program = """
import sys
from fabrictune.trainer_probe.operation.messages import connect
from fabrictune.trainer_probe.operation.transfers import ask
peer = connect("127.0.0.1", int(sys.argv[1]), bytes.fromhex(sys.stdin.readline()), timeout_s=30)
ask(peer, do="put", name="step-00000010.g1/rank-00000.safetensors", bytes=1 << 21, generation=1)
peer.send_bytes(bytes(1 << 20))
print("half", flush=True)
sys.stdin.readline()
"""
    with node(tmp_path / "a", key) as first:
        command = [sys.executable, "-P", "-c", program, str(first.address[1])]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as sender:
            assert sender.stdin is not None
            assert sender.stdout is not None
            sender.stdin.write(f"{key.hex()}\n")
            sender.stdin.flush()
            assert sender.stdout.readline() == "half\n"
            sender.send_signal(signal.SIGKILL)
        deadline_s = time.monotonic() + patience(20)
        while contents(tmp_path / "a") or list((tmp_path / "a").iterdir()):
            assert time.monotonic() < deadline_s
            time.sleep(0.01)


def test_an_old_generation_is_refused(tmp_path: Path, key: bytes) -> None:
    """Generation 3 has been ended: its revived processes neither give nor take; generation 4 does both."""
    with node(tmp_path / "a", key) as first:
        save(tmp_path / "a", 10, (0,), generation=3)
        first.end_generation(3)
        for request in ({"do": "put", "bytes": 1}, {"do": "get"}, {"do": "list"}):
            name = f"step-00000020.g3/{data_file(0)}"
            assert "generation 3" in refusal(first, key, name=name, generation=3, **request)
        with connect(*first.address, key, timeout_s=patience(10)) as peer:
            assert len(ask(peer, do="list", generation=4)["files"]) == 2
        with pytest.raises(MemoryRefusedError, match="4 or later"):
            first.memory.path_of(f"step-00000010.g3/{data_file(0)}", 3)
        with pytest.raises(MemoryRefusedError, match="5 or later"):
            first.memory.path_of(f"step-00000010.g5/{data_file(0)}", 4)


def test_a_generation_that_ends_in_a_file_leaves_nothing(tmp_path: Path) -> None:
    """The fence falls while the file arrives: it does not get its name."""
    memory = NodeMemory(tmp_path / "a", max_bytes=MB)

    def arrive() -> None:
        with memory.new_file(f"step-00000010.g1/{data_file(0)}", 3, 1) as half:
            half.write_bytes(b"abc")
            memory.fence = 1

    with pytest.raises(MemoryRefusedError):
        arrive()
    assert contents(tmp_path / "a") == {}


@pytest.mark.parametrize(
    "name",
    [
        "../key",
        "/etc/passwd",
        "step-00000010.g1/../../key",
        "step-00000010.g1/.hidden",
        "x/rank-00000.json",
        "",
        "a" * 999,
    ],
)
def test_names_outside_are_refused(tmp_path: Path, key: bytes, name: str) -> None:
    """Neither written nor read."""
    with node(tmp_path / "a", key) as first:
        for request in ({"do": "put", "bytes": 1}, {"do": "get"}):
            assert "a checkpoint's file" in refusal(first, key, name=name, generation=1, **request)
    assert contents(tmp_path) == {}


def test_memory_is_bounded(tmp_path: Path, key: bytes) -> None:
    """A file beyond the room is refused before its first byte, also while another one is on its way."""
    with node(tmp_path / "b", key, max_bytes=150_000) as second, node(tmp_path / "a", key) as first:
        save(tmp_path / "a", 10, (0, 1))
        first.send_to(second.address, generation=1, ranks=(0, 1))
        deadline_s = time.monotonic() + patience(20)
        while "150,000" not in first.status.failure and "bytes more" not in first.status.failure:
            assert time.monotonic() < deadline_s, first.status
            time.sleep(0.01)
        assert sum(map(len, contents(tmp_path / "b").values())) <= 150_000
    memory = NodeMemory(tmp_path / "c", max_bytes=100)
    with memory.new_file(f"step-00000010.g1/{data_file(0)}", 60, 1) as half:
        half.write_bytes(b"x")
        with pytest.raises(MemoryRefusedError), memory.new_file(f"step-00000010.g1/{data_file(1)}", 60, 1):
            pass


def test_the_rate_is_kept(tmp_path: Path, key: bytes) -> None:
    """4 MB at 8 MB/s take 3/8 s at least: the first chunk goes at once."""
    with node(tmp_path / "b", key) as second, node(tmp_path / "a", key, bytes_per_s=8 * MB) as first:
        save(tmp_path / "a", 10, (0,), num_bytes=4 * MB)
        began_s = time.monotonic()
        first.send_to(second.address, generation=1, ranks=(0,))
        await_same(first, tmp_path / "a", tmp_path / "b")
        assert time.monotonic() - began_s > 0.37


def test_the_folder_is_its_owners_alone(tmp_path: Path) -> None:
    """Mode 0700 whatever the mask, a link is no folder, and another user's is refused."""
    memory = NodeMemory(tmp_path / "a", max_bytes=MB)
    assert memory.folder.stat().st_mode & 0o777 == 0o700
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with pytest.raises(MemoryRefusedError, match="not a folder of this user"):
        NodeMemory(tmp_path / "link", max_bytes=MB)
    if os.geteuid() == 0:
        (tmp_path / "other").mkdir()
        os.chown(tmp_path / "other", 12345, 12345)
        with pytest.raises(MemoryRefusedError, match="not a folder of this user"):
            NodeMemory(tmp_path / "other", max_bytes=MB)


def test_closing_leaves_no_thread(tmp_path: Path, key: bytes) -> None:
    """Serving, sending and answering end."""
    before = set(threading.enumerate())
    with node(tmp_path / "b", key) as second, node(tmp_path / "a", key, bytes_per_s=MB) as first:
        save(tmp_path / "a", 10, (0,), num_bytes=8 * MB)
        first.send_to(second.address, generation=1, ranks=(0,))
        first.look()
    for thread in set(threading.enumerate()) - before:
        thread.join(patience(10))
        assert not thread.is_alive(), thread.name
