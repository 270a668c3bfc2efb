"""Each means of disturbing a job does what it says, shown on simple processes and files."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from fabrictune.foundation.errors import TokenFileError
from fabrictune.trainer_probe.data.token_file import TokenFile
from tests.chaos import clock, damage, network, small_disk, tensors
from tests.chaos.clock import JumpingClock
from tests.chaos.damage import newest_checkpoint
from tests.chaos.data_shard import ID_BYTES, write_shard
from tests.chaos.network import HUB, Network
from tests.chaos.processes import MARK, end_all, is_alive, marked, send, wait_for_none
from tests.chaos.slow_filesystem import SlowStorage
from tests.chaos.slowness import MEANS, usable_means
from tests.chaos.small_disk import SmallDisk
from tests.patience import patience

TELL_TIME = "import time; input(); print(time.time(), time.monotonic(), flush=True); input()"
WRITE_SLOWLY = "import fsspec; file = fsspec.open('slow://' + {path!r}, 'w').open(); file.write('x'); file.close()"


@pytest.fixture
def mark() -> Iterator[str]:
    name = f"test-{os.getpid()}"
    yield name
    end_all(name)


def start(mark: str, code: str, **environment: str) -> "subprocess.Popen[str]":
    """Start Python with a mark; its standard streams are pipes."""
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, MARK: mark, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_process_is_found_by_its_mark_also_when_its_parent_is_gone(mark: str) -> None:
    """A parent that ends at once leaves a child that waits: one process, and no other is ever signalled."""
    orphan = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])"
    with start(mark, orphan) as parent:
        parent.wait()
        (child,) = marked(mark)
        assert not send(mark, os.getppid(), signal.SIGCONT)
        assert [left.pid for left in wait_for_none(mark, 0)] == [child.pid]
        end_all(mark)
        assert not is_alive(child)


@pytest.mark.skipif(bool(clock.lack()), reason=clock.lack())
def test_the_time_of_day_jumps_and_nothing_else_does(mark: str, tmp_path: Path) -> None:
    """By three hours back in a process that runs; its monotonic clock is the machine's."""
    shifted = JumpingClock(tmp_path)
    with start(mark, TELL_TIME, **shifted.environment()) as process:
        shifted.jump(-3 * 3600)
        before = time.monotonic()
        process.stdin.write("\n")  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]
        told = process.stdout.readline().split()  # type: ignore[union-attr]
        after = time.monotonic()
        assert abs(float(told[0]) - (time.time() - 3 * 3600)) < patience(5)
        assert before <= float(told[1]) <= after
        process.kill()


@pytest.mark.skipif(bool(clock.lack()), reason=clock.lack())
def test_waits_end_in_time_although_the_clock_has_jumped(mark: str, tmp_path: Path) -> None:
    """A wait of 0.05 s lasts that long after a jump of nine hours forward, not nine hours."""
    shifted = JumpingClock(tmp_path)
    shifted.jump(9 * 3600)
    code = "import threading; print(threading.Condition().__enter__() or threading.Event().wait(0.05), flush=True)"
    with start(mark, code, **shifted.environment()) as process:
        assert process.wait(patience(20)) == 0


@pytest.fixture
def two_nodes() -> Iterator[Network]:
    if lack := network.lack():
        pytest.skip(lack)
    made = Network(f"chaos-test-{os.getpid()}", ("a", "b"))
    yield made
    made.close()


def can_reach(nodes: Network, start: str, end: str) -> bool:
    """Return whether one namespace can connect to a port of another; nobody listens, so it is refused at once."""
    code = f"import socket; socket.create_connection(({nodes.address(end)!r}, 9), {patience(0.5)})"
    done = subprocess.run([*nodes.entered(start), sys.executable, "-c", code], capture_output=True, text=True)
    return "ConnectionRefusedError" in done.stderr


def test_a_cut_link_parts_two_nodes_and_nobody_else(two_nodes: Network) -> None:
    """Both still reach the driver, and each other once it is mended."""
    assert can_reach(two_nodes, "a", "b")
    two_nodes.cut("a", "b")
    assert not can_reach(two_nodes, "a", "b")
    assert can_reach(two_nodes, "a", HUB)
    assert can_reach(two_nodes, "b", HUB)
    two_nodes.mend("a", "b")
    assert can_reach(two_nodes, "b", "a")


def test_a_node_that_is_cut_off_reaches_nobody(two_nodes: Network) -> None:
    """Neither the driver; its namespaces are gone afterwards."""
    two_nodes.cut_off("b")
    assert not can_reach(two_nodes, "b", HUB)
    assert can_reach(two_nodes, "a", HUB)
    two_nodes.close()
    assert not list(Path("/run/netns").glob(f"chaos-test-{os.getpid()}-*"))


def test_a_slow_storage_delays_a_write_by_what_its_file_says(mark: str, tmp_path: Path) -> None:
    """By 0.5 s, and not at all before."""
    storage = SlowStorage(tmp_path)
    code = WRITE_SLOWLY.format(path=str(tmp_path / "file"))
    timed = f"import time, fsspec; began = time.monotonic(); {code}; print(time.monotonic() - began)"
    elapsed_s = []
    for delay_s in (0.0, 0.5):
        storage.set_delay(delay_s)
        with start(mark, timed, **storage.environment()) as process:
            elapsed_s.append(float(process.communicate()[0]))
    assert elapsed_s[1] >= 0.5
    assert (tmp_path / "file").read_text() == "x"


@pytest.mark.skipif(bool(small_disk.lack()), reason=small_disk.lack())
def test_a_full_disk_refuses_a_write_until_it_is_freed(tmp_path: Path) -> None:
    """A disk of 1 MiB."""
    disk = SmallDisk(tmp_path / "disk", 2**20)
    try:
        disk.fill()
        with pytest.raises(OSError, match="No space left"):
            (disk.place / "file").write_bytes(bytes(2**16))
        disk.free()
        (disk.place / "file").write_bytes(bytes(2**16))
    finally:
        disk.close()
    assert not os.path.ismount(disk.place)


@pytest.mark.parametrize("means", [name for name in usable_means() if name != "neighbours"])
def test_a_slow_process_gets_less_of_a_processor_and_goes_on(means: str, mark: str) -> None:
    """It counts for a second of its own processor time, which takes longer than a second and ends."""
    code = "import time\ninput()\nwhile time.process_time() < 0.5: pass\nprint(time.monotonic(), flush=True)"
    with start(mark, code) as process, MEANS[means](process.pid, mark):
        began = time.monotonic()
        process.stdin.write("\n")  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]
        assert float(process.stdout.readline()) - began > 0.6  # type: ignore[union-attr]


def test_damage_keeps_or_cuts_a_file(tmp_path: Path) -> None:
    """A flipped byte is one bit of it; a torn file is shorter."""
    path = tmp_path / "file"
    before = bytes(range(200))
    path.write_bytes(before)
    damage.flip_byte(path, random.Random(1))
    changed = [(old ^ new).bit_count() for old, new in zip(before, path.read_bytes(), strict=True)]
    assert sum(changed) == 1
    damage.tear(path, random.Random(1))
    assert path.stat().st_size < 200


def test_the_newest_checkpoint_is_the_highest_complete_one(tmp_path: Path) -> None:
    """Of steps 5, 10 (of generations 1 and 2) and 15, which has no manifest."""
    for name, is_complete in (("step-00000005.g1", 1), ("step-00000010.g1", 1), ("step-00000010.g2", 1)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").write_text("{}" * is_complete)
    (tmp_path / "step-00000015.g2").mkdir()
    newest = newest_checkpoint(tmp_path)
    assert newest is not None
    assert (newest.name, damage.step_of(newest)) == ("step-00000010.g2", 10)
    (tmp_path / "step-00000015.g2" / "rank-00000.safetensors").touch()
    assert newest_checkpoint(tmp_path, is_memory=True) is None
    (tmp_path / "step-00000015.g2" / "rank-00000.json").touch()
    assert damage.step_of(newest_checkpoint(tmp_path, is_memory=True) or tmp_path) == 15


def test_a_digest_is_of_all_tensors_and_not_of_their_files(tmp_path: Path) -> None:
    """The same two tensors in one file and in two have one digest; another value has another."""
    one, two = np.arange(4.0), np.ones((2, 3), np.float32)
    for name in ("together", "apart", "other"):
        (tmp_path / name).mkdir()
    save_file({"x": one, "y": two}, tmp_path / "together" / "0.safetensors")
    save_file({"y": two}, tmp_path / "apart" / "rank0.safetensors")
    save_file({"x": one}, tmp_path / "apart" / "rank1.safetensors", metadata={"generation": "2"})
    save_file({"x": one, "y": 2 * two}, tmp_path / "other" / "0.safetensors")
    assert tensors.digest(tmp_path / "together") == tensors.digest(tmp_path / "apart")
    assert tensors.digest(tmp_path / "together") != tensors.digest(tmp_path / "other")


def test_a_damaged_shard_has_ids_that_were_not_written(tmp_path: Path) -> None:
    """Its checksum says so in both cases; ids beyond the vocabulary also without it."""
    path = tmp_path / "tokens"
    for harm in (damage.flip_shard, lambda place: damage.put_foreign_id(place, ID_BYTES)):
        write_shard(path)
        TokenFile.open(path).verify()
        harm(path)
        with pytest.raises(TokenFileError):
            TokenFile.open(path).verify()
