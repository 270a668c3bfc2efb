"""Pages, read while a real other process writes them, is stopped in the middle of it, or is gone."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.trainer_probe.operation import pages
from fabrictune.trainer_probe.operation.observations import message_group, message_ranks
from fabrictune.trainer_probe.operation.pages import MAX_ERROR_BYTES, MAX_GROUPS, RankPage, read_page

# Every field of a record follows from the number of requests, so that a torn one would show.
WRITER = """
import sys
from pathlib import Path
from fabrictune.trainer_probe.operation.pages import RankPage
page = RankPage.create(Path(sys.argv[1]))
for group in range(1, 20):
    page.issue(group, "first", 0)
print("ready", flush=True)
while True:
    number = page.issue(0, "", 3)
    page.wait(number, 2 * number, str(number) * 9)
"""


@contextmanager
def writer(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that writes a page as fast as it can."""
    with subprocess.Popen(
        [sys.executable, "-P", "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


def check_whole(path: Path) -> int:
    """Assert that all fields of a reading are of one moment; returns the number of its changes."""
    page = read_page(path)
    num_requests = page.issued.get(0, 0)
    assert page.sent_bytes == 3 * num_requests
    if page.waits_for is not None:
        group, request = page.waits_for
        assert request == 2 * group
        assert page.tag == (str(group) * 9)[:64]
        assert num_requests - group in (1, 2)  # the wait is for the last request, or the next one has been issued
    return page.num_changes


def test_a_page_shows_what_its_rank_wrote(tmp_path: Path) -> None:
    """Counts go on per group, a wait has the request's number and tag, and is over when it is done."""
    page = RankPage.create(tmp_path / "page")
    page.section("first step")
    page.step(17)
    assert [page.issue(group, "tp.sum", 100) for group in (0, 2, 2)] == [0, 0, 1]
    page.wait(2, 1, "tp.sum")
    found = read_page(tmp_path / "page")
    assert (found.pid, found.section, found.step) == (os.getpid(), "first step", 17)
    assert (found.issued, found.sent_bytes, found.waits_for, found.tag) == ({0: 1, 2: 2}, 300, (2, 1), "tp.sum")
    page.done_waiting()
    assert (read_page(tmp_path / "page").waits_for, read_page(tmp_path / "page").tag) == (None, "")
    page.wait_for_service("loader")
    assert (read_page(tmp_path / "page").waits_for, read_page(tmp_path / "page").tag) == (None, "loader")


def test_a_page_shows_each_groups_last_request_and_up_to_which_they_are_complete(tmp_path: Path) -> None:
    """Requests 0 to 2 of a group were issued, 1 and then 0 waited for: they are complete up to 1, and 2 is the last."""
    page = RankPage.create(tmp_path / "page")
    for num_bytes in (100, 200, 2**50):
        page.issue(3, "dp", num_bytes, operation=1)
    page.wait(3, 1, "dp")
    page.complete(3, 1)
    page.complete(3, 0)
    page.complete(7, 0)  # of a group that the page had no room for
    found = read_page(tmp_path / "page")
    assert (found.issued, found.completed, found.last) == ({3: 3}, {3: 2}, {3: (1, 2**50)})
    assert found.waits_for is None


def test_every_write_is_a_change(tmp_path: Path) -> None:
    """Two readings with one number are of a rank that has done nothing between."""
    page = RankPage.create(tmp_path / "page")
    before = read_page(tmp_path / "page").num_changes
    assert read_page(tmp_path / "page").num_changes == before
    page.step(0)
    page.done_waiting()
    assert read_page(tmp_path / "page").num_changes == before + 2


def test_readings_of_a_busy_writer_are_whole(tmp_path: Path) -> None:
    """500 readings while another process writes without a pause: no field of one is of another moment."""
    with writer(tmp_path / "page"):
        numbers = [check_whole(tmp_path / "page") for _ in range(500)]
    assert numbers == sorted(numbers)


def test_a_writer_stopped_at_any_moment_can_be_read(tmp_path: Path) -> None:
    """40 SIGSTOPs, each wherever it hits: the reading is whole, and stays as it is."""
    path = tmp_path / "page"
    with writer(path) as process:
        for _ in range(40):
            process.send_signal(signal.SIGSTOP)
            while (Path("/proc") / str(process.pid) / "stat").read_text().rsplit(")", 1)[1].split()[0] != "T":
                time.sleep(0)
            number = check_whole(path)
            assert check_whole(path) == number
            process.send_signal(signal.SIGCONT)
            while check_whole(path) == number:
                time.sleep(0)
        process.kill()
        process.wait()
        check_whole(path)


def test_a_torn_record_is_not_read(tmp_path: Path) -> None:
    """Each byte of the newer record damaged in turn: the older one is read."""
    path = tmp_path / "page"
    page = RankPage.create(path)
    page.issue(4, "x", 1)
    page.step(1)
    page.step(2)
    content = path.read_bytes()
    number = read_page(path).num_changes
    begin = pages._RECORDS_AT + (number & 1) * pages._RECORD_BYTES
    for place in range(begin, begin + (pages._COUNTS + pages._GROUP_WORDS) * 8):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x40]) + content[place + 1 :])
        assert (read_page(path).step, read_page(path).num_changes) == (1, number - 1)


@pytest.mark.parametrize("content", [b"", b"fabrictune page2", b"x" * 100_000, b"fabrictune page2" + b"\xff" * 30_000])
def test_other_files_are_no_pages(tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Foreign, cut short and damaged ones are named."""
    monkeypatch.setattr(pages, "_MAX_READS", 3)
    (tmp_path / "page").write_bytes(content)
    with pytest.raises(InputError, match=r"page: (not a page of a rank|damaged: no record of it is whole)"):
        read_page(tmp_path / "page")


def test_groups_beyond_the_room_are_counted_together(tmp_path: Path) -> None:
    """500 groups have a count each; the requests of the others are not lost."""
    page = RankPage.create(tmp_path / "page")
    numbers = [page.issue(group, "", 1) for group in range(MAX_GROUPS + 3)]
    assert numbers == [0] * MAX_GROUPS + [-1] * 3
    found = read_page(tmp_path / "page")
    assert found.issued == dict.fromkeys(range(MAX_GROUPS), 1)
    assert (found.num_uncounted, found.sent_bytes) == (3, MAX_GROUPS + 3)


def test_an_error_is_one_line_without_secrets(tmp_path: Path) -> None:
    """It goes to the driver, to logs and to people; what is too long is cut."""
    page = RankPage.create(tmp_path / "page")
    page.fail("InputError: s3://bucket:\n  AWS_SECRET_ACCESS_KEY=abcdef refused\x1b[31m")
    found = read_page(tmp_path / "page")
    assert found.section == "failed"
    assert found.error == r"InputError: s3://bucket: AWS_SECRET_ACCESS_KEY=(redacted) refused\x1b[31m"
    page.fail("E: " + "y" * 10**6)
    assert len(read_page(tmp_path / "page").error) == MAX_ERROR_BYTES


def test_a_signal_in_the_middle_of_a_write_writes_too(tmp_path: Path) -> None:
    """A handler that interrupts a write of its own process does not wait for it; the page stays whole."""
    page = RankPage.create(tmp_path / "page")
    calls = 0

    def interrupt(number: int, frame: object) -> None:
        nonlocal calls
        calls += 1
        page.step(calls)

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        for number in range(2000):
            if number % 20 == 0:
                os.kill(os.getpid(), signal.SIGUSR1)
            page.issue(0, "", 1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    found = read_page(tmp_path / "page")
    assert (found.issued, found.step) == ({0: 2000}, 100)


def test_a_folder_without_room_is_said(tmp_path: Path) -> None:
    """Before the training, and not by a signal in the middle of it."""
    with pytest.raises(InputError, match="cannot be written"):
        RankPage.create(tmp_path / "missing" / "page")


def test_a_new_page_takes_the_place_of_an_old_one(tmp_path: Path) -> None:
    """A page of an earlier process of the same name is replaced whole."""
    RankPage.create(tmp_path / "page").step(5)
    RankPage.create(tmp_path / "page")
    assert read_page(tmp_path / "page").step == -1
    assert [path.name for path in tmp_path.iterdir()] == ["page"]


def test_messages_are_counted_by_pair() -> None:
    """The number of a pair is none of a group's, and says who sends."""
    numbers = {message_group(sender, receiver, 4): (sender, receiver) for sender in range(4) for receiver in range(4)}
    assert len(numbers) == 16
    assert max(numbers) < 0
    assert all(message_ranks(number, 4) == ranks for number, ranks in numbers.items())


def test_a_request_costs_little(tmp_path: Path) -> None:
    """Issue, wait and its end: three writes in less than 5 us of processor time, the best of five rounds, on a quiet
    machine; ten times that is allowed where others share the processor.
    """
    page = RankPage.create(tmp_path / "page")
    for group in range(12):
        page.issue(group, "", 0)

    def round_ns() -> float:
        began_ns = time.thread_time_ns()
        for _ in range(2000):
            page.wait(3, page.issue(3, "dp.gradients", 1 << 20), "dp.gradients")
            page.done_waiting()
        return (time.thread_time_ns() - began_ns) / 2000

    assert min(round_ns() for _ in range(5)) < 50_000
