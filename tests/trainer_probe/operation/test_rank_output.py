"""What a process of a node prints is taken once, also where an event comes for an end that was drained."""

import os
from pathlib import Path

from fabrictune.trainer_probe.operation.rank_output import RankOutput


def test_an_event_after_the_end_is_passed_over(tmp_path: Path) -> None:
    """A process that has ended is drained; a readiness seen before that finds nothing, and is no error."""
    receiver, sender = os.pipe2(os.O_NONBLOCK)
    lines: list[str] = []
    output = RankOutput(receiver, tmp_path / "rank-0.log", lines.append)
    os.write(sender, b"last words\n")
    os.close(sender)
    output.drain()
    assert output.read() is False
    assert lines == ["last words"]
