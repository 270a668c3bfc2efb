"""Paths are as short as what they draw, and hold every corner of it."""

from fabrictune.reports import svg


def test_a_step_of_a_staircase_is_one_number() -> None:
    """Right, up, right: a slope needs both numbers, and a point drawn where the last one is none."""
    stairs = [(0.0, 0.0), (10.0, 0.0), (10.0, 5.25), (10.0, 5.26), (20.0, 5.26), (30.0, 7.0)]
    assert str(svg.polyline(stairs, "series")) == '<path d="M0 0H10V5.2V5.3H20L30 7" class="series"/>'
    assert 'd="M0 0H10V5.2V5.3H20L30 7Z"' in svg.area(stairs, "shade")


def test_one_point_is_where_it_is() -> None:
    """A curve of one sample has no length, and no mistake."""
    assert svg.polyline([(3.0, 4.0)], "series") == '<path d="M3 4" class="series"/>'
