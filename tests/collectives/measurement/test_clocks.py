"""Clocks: an offset from questions and answers, and a real exchange on one clock, where it must be zero."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fabrictune.foundation.layout import ParallelLayout
from fabrictune.trainer_probe.launcher.processes import launch

torch = pytest.importorskip("torch")

from fabrictune.collectives.measurement.clocks import (  # noqa: E402
    ClockOffset,
    find_offset,
    host_number,
    measure_offset,
    on_clock_of_rank_0,
)

if TYPE_CHECKING:
    from fabrictune.collectives.startup.process_groups import Member


def test_the_soonest_answer_counts() -> None:
    """Asked at 100 and answered at 110 with 1,005: rank 0's clock is 900 ahead, give or take 5."""
    assert find_offset([0, 100], [40, 110], [930, 1005]) == ClockOffset(at_ns=105, offset_ns=900, error_ns=6)


@given(st.integers(-(10**6), 10**6), st.lists(st.tuples(*[st.integers(0, 1000)] * 2), min_size=1, max_size=5))
def test_the_true_offset_is_within_the_error(true_ns: int, ways: list[tuple[int, int]]) -> None:
    """However differently long the two ways of a question are."""
    asked = [1000 * number for number in range(len(ways))]
    told = [begin + there + true_ns for begin, (there, _) in zip(asked, ways, strict=True)]
    answered = [begin + there + back for begin, (there, back) in zip(asked, ways, strict=True)]
    found = find_offset(asked, answered, told)
    assert abs(found.offset_ns - true_ns) <= found.error_ns


def test_a_clock_that_drifts_is_followed() -> None:
    """900 ahead at 0 and 920 ahead at 1,000: half way, 910; the error is that of the worse question."""
    before, after = (
        ClockOffset(at_ns=0, offset_ns=900, error_ns=5),
        ClockOffset(at_ns=1000, offset_ns=920, error_ns=9),
    )
    stamps, error_ns = on_clock_of_rank_0(np.array([0, 500, 1000]), before, after)
    assert stamps.tolist() == [900, 1410, 1920]
    assert error_ns == 9


def test_one_clock_changes_nothing() -> None:
    """Ranks of rank 0's host have no offset at any time."""
    stamps, error_ns = on_clock_of_rank_0(np.array([7, 8]), ClockOffset(at_ns=1), ClockOffset(at_ns=9))
    assert (stamps.tolist(), error_ns) == ([7, 8], 0)


def measure_as_two_hosts(member: "Member") -> Mapping[str, NDArray[Any]]:
    offset = measure_offset([0, 1], torch.device("cpu"))
    return {"found": np.array([offset.offset_ns, offset.error_ns, host_number()])}


def test_one_clock_has_no_offset() -> None:
    """Two real processes that are told they are on two hosts: what they find is zero to within its error."""
    first, second = (row["found"].tolist() for row in launch(ParallelLayout(dp=2), measure_as_two_hosts))
    assert first[:2] == [0, 0]
    assert second[1] > 0
    assert abs(second[0]) <= second[1]
    assert first[2] == second[2]
