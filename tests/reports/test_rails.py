"""Rails side by side: the slow one is named, and what a run does not know is left out."""

import numpy as np
import pytest

from fabrictune.reports.rails import MAX_RAILS, Rail, draw_rails, rails_of, rails_section
from fabrictune.reports.record_view import Run, open_run
from tests.reports.conftest import RecordMaker, two_tor_fabric

RAIL_OF_NIC = np.array([0, 1, 0, 1])


@pytest.fixture
def two_rails(make_record: RecordMaker) -> Run:
    """Return the run of two flows, each on a rail of its own: NICs 0 and 2 on rail 0, 1 and 3 on rail 1."""
    fabric = two_tor_fabric()
    rail = np.where(fabric["nic"] >= 0, RAIL_OF_NIC[fabric["nic"]], -1)
    return open_run(make_record(tables={"fabric": {**fabric, "rail": rail}}), "run")


def make_rail(number: int, p99_ps: float) -> Rail:
    """Return a rail by its p99."""
    return Rail(
        number=number,
        num_nics=1,
        mean_load=np.nan,
        highest_load=np.nan,
        num_transfers=1,
        sent_bytes=1,
        num_across=0,
        completions_ps=(p99_ps, p99_ps, p99_ps),
    )


def test_each_rail_has_what_its_nics_sent(two_rails: Run) -> None:
    """NIC 0 sends a megabyte in 100 us and NIC 1 one in 200 us; in 200 us 100 Gbps carry 2.5 MB, so 1 MB is 40 %."""
    first, second = rails_of(two_rails)
    assert (first.number, first.num_nics, first.num_transfers, first.sent_bytes) == (0, 2, 1, 1_000_000)
    assert (first.completions_ps, second.completions_ps) == ((1e8, 1e8, 1e8), (2e8, 2e8, 2e8))
    assert (first.mean_load, first.highest_load) == pytest.approx((0.2, 0.4)), "NIC 2 sends nothing"
    assert (first.num_across, second.num_across) == (0, 0)


def test_the_slowest_rail_is_named(two_rails: Run) -> None:
    """Its 200 us are 1.33 times the median of both, 150 us."""
    section = rails_section([two_rails])
    assert section is not None
    (figure,) = section.blocks
    assert figure.caption.startswith("run: rail 1 is the slowest, its p99 1.33 times that of the median rail. Bars:")
    assert "rail 1: p50 FCT 200 us, p99 FCT 200 us, Max FCT 200 us" in figure.drawing  # type: ignore[union-attr]


def test_rails_that_are_alike_name_none() -> None:
    """Up to a tenth above the median is chance; loads that a run did not count have no bars and no columns."""
    figure = draw_rails("run", [make_rail(number, 100 + number) for number in range(8)], 200)
    assert figure.caption == (
        "run: p99 of all 8 rails within 10 % of the median rail's. Circles: p50, p99 and max FCT of what they sent."
    )
    assert figure.table is not None
    assert figure.table.headings == ("Rail", "NICs", "Sent", "Transfers", "p50 FCT", "p99 FCT", "Max FCT")


def test_a_rail_that_never_finished_is_the_slowest() -> None:
    """It has no circle, and its row says never."""
    rails = [make_rail(0, 100), make_rail(1, np.inf), make_rail(2, 100)]
    figure = draw_rails("run", rails, 200)
    assert figure.caption.startswith("run: rail 1 has transfers that never finished. Circles:")
    assert figure.table is not None
    assert figure.table.rows[1][-1].text == "never"


def test_many_rails_are_bounded() -> None:
    """Of a thousand the first are drawn and in the numbers, which count the others."""
    figure = draw_rails("run", [make_rail(number, 100) for number in range(1000)], 200)
    assert figure.drawing.count("<circle") == 3 * MAX_RAILS
    assert figure.table is not None
    assert len(figure.table.rows) == MAX_RAILS
    assert figure.table.left_out == "968 rails more in table “fabric” of the record."


def test_a_fabric_of_one_rail_has_none_to_compare(make_record: RecordMaker) -> None:
    """Nor has a run in which nothing was sent."""
    assert rails_section([open_run(make_record(), "run")]) is None
    assert rails_section([open_run(make_record(tables={"transfers": None}), "run")]) is None
