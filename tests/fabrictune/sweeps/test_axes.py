"""What an axis takes: lists, ranges of quantities and of numbers, in the words of the scenario's file."""

from typing import Any

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.sweeps.axes import SweepAxis


@pytest.mark.parametrize(
    ("ends", "steps", "levels"),
    [
        ({"low": "5 Mbps", "high": "500 Mbps", "scale": "log"}, 3, ("5 Mbps", "50 Mbps", "500 Mbps")),
        ({"low": "100 KB", "high": "1 MB"}, 4, ("100 KB", "400 KB", "700 KB", "1 MB")),
        ({"low": "1 us", "high": "2 us"}, 4, ("1 us", "1.333 us", "1.667 us", "2 us")),
        ({"low": "50 %", "high": "98 %"}, 4, ("50 %", "66 %", "82 %", "98 %")),
        ({"low": "0.1 %", "high": "2.5 %", "scale": "log"}, 3, ("0.1 %", "0.5 %", "2.5 %")),
        ({"low": 1, "high": 10}, 4, (1, 4, 7, 10)),
        ({"low": 0.5, "high": 1}, 3, (0.5, 0.75, 1)),
        ({"low": 1, "high": 2}, 5, (1, 2)),
    ],
)
def test_a_range_is_divided_into_values_that_a_file_would_have(
    ends: dict[str, Any], steps: int, levels: tuple[Any, ...]
) -> None:
    """Equal ratios or differences, four figures, whole nanoseconds; the last has no whole number between its ends."""
    assert SweepAxis(key="k", steps=steps, **ends).levels() == levels


def test_a_list_is_shared_out_evenly() -> None:
    """A share in [0, 1/3) is the first of three, and 1 still the last."""
    axis = SweepAxis(key="k", values=("a", "b", "c"))
    assert [axis.at(share) for share in (0, 0.33, 0.34, 0.67, 1)] == ["a", "a", "b", "c", "c"]


def test_quantities_have_an_order_and_names_have_not() -> None:
    """100 KB is less than 1 MB although "1 MB" sorts first."""
    sizes, names = SweepAxis(key="k", values=("1 MB", "100 KB")), SweepAxis(key="k", values=("web", "hadoop"))
    assert sizes.has_order
    assert sizes.position("1 MB") == 1e6
    assert not names.has_order
    assert names.position("hadoop") == 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "without values"),
        ({"values": (1, 2), "low": 1, "high": 2}, "two kinds"),
        ({"values": (1,)}, "two different values or more"),
        ({"values": (1, 2, 1)}, "two different values or more"),
        ({"low": "1 KB", "high": "1 us"}, "two numbers, rates, sizes, durations or percentages"),
        ({"low": 5, "high": 5}, "low below high"),
        ({"low": 0, "high": 5, "scale": "log"}, "above 0 for a logarithmic scale"),
        ({"low": 0, "high": 5, "steps": 1}, "2 or more"),
    ],
)
def test_what_is_no_axis_is_refused(settings: dict[str, Any], words: str) -> None:
    """Each with what would do."""
    with pytest.raises(InputError, match=words):
        SweepAxis(key="k", **settings)
