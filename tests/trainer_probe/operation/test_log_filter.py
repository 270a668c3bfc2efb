"""The filter of ranks' output."""

import time

import pytest

from fabrictune.trainer_probe.operation.log_filter import (
    MAX_LINE_LETTERS,
    MAX_LINES,
    MAX_OF_SHAPE,
    NUM_LAST,
    LogFilter,
)
from tests.patience import patience


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "NVRM: Xid (PCI:0000:c1:00): 79, pid=1234, GPU has fallen off the bus.",
        "[1] NCCL WARN Timeout waiting for connection",
        "step 7 loss nan",
        "mlx5_core 0000:5e:00.0: Link down",
        "Out of memory: Killed process 4242 (python)",
        "OSError: [Errno 28] No space left on device",
        "fabrictune.foundation.errors.CheckpointError: step-00000010.g1: damaged",
    ],
)
def test_lines_that_matter_go_on(line: str) -> None:
    """They name their source, and no word of them is lost."""
    log = LogFilter()
    log.add(line, "rank 3")
    assert log.take_matches() == ((f"rank 3: {line}",), 0)
    assert log.take_matches() == ((), 0)


@pytest.mark.parametrize("line", ["step 7 loss 2.31", "information about nanoseconds", "", "   "])
def test_other_lines_stay(line: str) -> None:
    """Words within words are none."""
    log = LogFilter()
    log.add(line)
    assert log.take_matches() == ((), 0)


def test_a_users_keyword_is_no_pattern() -> None:
    """Its letters are meant, whatever they mean in a pattern."""
    log = LogFilter(["a.*c"])
    for line in ("abc", "see a.*c", "spike"):
        log.add(line)
    assert log.take_matches() == (("see a.*c",), 0)


def test_a_line_that_repeats_does_not_push_others_out() -> None:
    """A thousand of one shape: three go on, and so does the one behind them; the rest is counted."""
    log = LogFilter()
    for attempt in range(1000):
        log.add(f"error: attempt {attempt} at 0x{attempt:x}")
    log.add("fatal: the cause")
    lines, num_dropped = log.take_matches()
    assert len(lines) == MAX_OF_SHAPE + 1
    assert lines[-1] == "fatal: the cause"
    assert num_dropped == 1000 - MAX_OF_SHAPE


def test_everything_is_bounded() -> None:
    """Lines, their length, and the ring; each new shape beyond the limit is counted."""
    log = LogFilter()
    words = [f"{first}{second}" for first in "abcdefghij" for second in "abcdefghij"]
    for word in words:
        log.add(f"error {word} " + "y" * 100_000)
    lines, num_dropped = log.take_matches()
    assert (len(lines), num_dropped) == (MAX_LINES, len(words) - MAX_LINES)
    assert max(map(len, lines)) < MAX_LINE_LETTERS + 40
    assert len(log.last_lines()) == NUM_LAST
    assert lines[0].endswith("... (100,009 letters)")


def test_secrets_and_controls_do_not_pass() -> None:
    """Neither to the driver nor into the ring."""
    log = LogFilter()
    log.add("error: redis://me:hunter2@store refused \x1b[2J")
    assert log.take_matches()[0] == (r"error: redis://me:(redacted)@store refused \x1b[2J",)
    assert log.last_lines() == (r"error: redis://me:(redacted)@store refused \x1b[2J",)


def test_a_flood_is_taken_in_time() -> None:
    """10,000 lines of 4 kB take less than five seconds."""
    log, line, limit_s = LogFilter(), "error " + "password " * 450, patience(5)
    began_s = time.process_time()
    for _ in range(10_000):
        log.add(line)
    assert time.process_time() - began_s < limit_s
