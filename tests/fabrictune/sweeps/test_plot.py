"""The PNG of a sweep."""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.records import RunRecord
from fabrictune.sweeps.plot import draw_front
from tests.fabrictune.sweeps.conftest import SWEEP

Write = Callable[..., Path]
Run = Callable[..., RunRecord]


@pytest.mark.parametrize("objectives", ["{metric: completion_time.max}", "{metric: makespan}, {metric: ecn_marks}"])
def test_it_is_a_picture_and_the_same_each_time(write: Write, run: Run, tmp_path: Path, objectives: str) -> None:
    """7 x 5 inches at 120 dots, of one objective or two."""
    pytest.importorskip("matplotlib")
    text = SWEEP.replace("{metric: completion_time.max}, {metric: ecn_marks}", objectives)
    record = run(write(text))
    pictures = []
    for name in ("one.png", "two.png"):
        draw_front(record, tmp_path / name)
        pictures.append((tmp_path / name).read_bytes())
    assert struct.unpack(">4sII", pictures[0][12:24]) == (b"IHDR", 840, 600)
    assert pictures[0] == pictures[1]


def test_a_place_where_it_cannot_be_written_is_named(write: Write, run: Run, tmp_path: Path) -> None:
    """A folder that is not there."""
    pytest.importorskip("matplotlib")
    with pytest.raises(InputError, match="cannot be written"):
        draw_front(run(write()), tmp_path / "nowhere" / "sweep.png")
