"""Laws of a sweep: which form each is, and whose numbers it ran with."""

from pathlib import Path
from typing import Any

from fabrictune.foundation.records import RunRecord
from fabrictune.sweeps.laws import laws_of
from fabrictune.sweeps.points import Point, Task
from fabrictune.sweeps.results import Measured


def measured(law: object, described: dict[str, Any], *, failure: str = "") -> Measured:
    """Return a point whose file has `law`, and whose run says what ran."""
    tree: dict[str, Any] = {"law": law}
    run = {"law": {"parameters": {}, "derived": {}, **described}, **({"failure": failure} if failure else {})}
    task = Task(id="x", tree=tree, folder=Path(), values={}, seed=0, keep_tables=False, trust_code=False)
    return Measured(point=Point(values=(), tasks=(task,)), runs=(RunRecord(kind="sweep point", run=run),))


def test_a_law_says_its_form_and_where_its_numbers_are_from() -> None:
    """DCQCN with a set CNP interval: what follows the link is shown with its value, the rest is the law's own."""
    described = {
        "name": "dcqcn",
        "variant": "the paper's of 2015",
        "parameters": {"additive_increase_bps": 400e6, "g": 0.5},
        "derived": {"additive_increase_bps": "in proportion to the link"},
    }
    law = {"name": "dcqcn", "parameters": {"g": 0.5}}
    assert laws_of([measured(law, described)]) == [
        {
            "law": "dcqcn",
            "form": "the paper's of 2015",
            "parameters": "set: g; fitted to the link: additive_increase 400 Mbps; others at the law's own defaults",
        }
    ]


def test_the_papers_own_numbers_are_said() -> None:
    """`defaults: paper` leaves nothing to the link."""
    (row,) = laws_of([measured({"name": "swift", "defaults": "paper"}, {"name": "swift"})])
    assert (row["form"], row["parameters"]) == ("", "all at the paper's own defaults")


def test_each_law_is_one_row_and_points_without_one_have_none() -> None:
    """Two points with one law are one row; no control, and a run that failed, are none."""
    points = [
        measured("swift", {"name": "swift"}),
        measured("swift", {"name": "swift"}),
        measured("none", {"name": "none"}),
        measured("hpcc", {"name": "hpcc"}, failure="it could not be"),
    ]
    assert [row["law"] for row in laws_of(points)] == ["swift"]
