"""Who had the processors."""

import os
from pathlib import Path

import numpy as np
import pytest

from fabrictune.validate import machine_share as module
from fabrictune.validate.machine_share import machine_share, processor_times


def test_what_is_busy_and_not_our_own_is_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten seconds of two processors: 12 s busy, of them 8 own, leave 4 of 20; 1 s stolen is 5 %."""
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    share = machine_share(np.array([100.0, 50.0, 3.0]), np.array([110.0, 62.0, 4.0]), own_s=8.0)
    assert (share.others_fraction, share.steal_fraction, share.num_processors) == (0.2, 0.05, 2)


def test_idle_time_waits_and_guests_are_not_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """user nice system idle iowait irq softirq steal guest guest_nice: guests are in user already."""
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 10 50 9000 80 3 2 7 60 0\ncpu0 1 1\n", encoding="ascii")
    monkeypatch.setattr(module, "_STAT", stat)
    times, ticks = processor_times(), os.sysconf("SC_CLK_TCK")
    assert times is not None
    assert times[1:].tolist() == [165 / ticks, 7 / ticks]
    stat.write_text("what is this\n", encoding="ascii")
    assert processor_times() is None
