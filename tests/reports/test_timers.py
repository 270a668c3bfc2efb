"""Timers on the page: what each account says of a flap."""

import numpy as np
import pytest

from fabrictune.foundation.errors import RecordError
from fabrictune.reports.blocks import Table
from fabrictune.reports.page import build_page
from fabrictune.reports.record_view import open_run
from fabrictune.reports.timers import MAX_ROWS, timers_section
from tests.reports.conftest import RecordMaker

S = 1e9
TIMES = {"gives_up": (59.8 * S, 59.8 * S, -1.0), "stall": (-1.0, 1.783 * S, 1.9 * S)}


def timer_table(count: int = 1) -> dict[str, np.ndarray]:
    """Return rows of one adapter: measured never to give up, and to have stalled where the model says it does not."""
    accounts = ("", "simulated_", "measured_")
    return {
        "profile": np.array(["connectx-6"] * count, object),
        "confidence": np.array(["documented"] * count, object),
        "timeout": np.full(count, 20),
        "retries": np.full(count, 7),
        "flap_ns": np.full(count, S),
        **{
            f"{account}{what}_ns": np.full(count, times[number])
            for what, times in TIMES.items()
            for number, account in enumerate(accounts)
        },
    }


def cells(table: object) -> list[list[str]]:
    """Return what stands in a table."""
    assert isinstance(table, Table)
    return [[str(cell.text) for cell in row] for row in table.rows]


def test_model_engine_and_device_stand_side_by_side(make_record: RecordMaker) -> None:
    """What never came, or was not tried, is a dash; a model says where its profile is from."""
    section = timers_section([open_run(make_record(tables={"timers": timer_table()}), "one")])
    assert section is not None
    assert cells(section.blocks[0]) == [
        ["connectx-6", "documented", "20", "7", "59.8 s", "59.8 s", "\u2013", "1 s", "\u2013", "1.783 s", "1.9 s"]
    ]


def test_flaps_of_a_job_stand_beside_tcps_next_retransmission(make_record: RecordMaker) -> None:
    """In a table of their own."""
    flaps = {"down_ns": np.array([10**9]), "tcp_resumes_ns": np.array([1.4 * S]), "stall_ns": np.array([1_450_000_000])}
    section = timers_section([open_run(make_record(tables={"flaps": flaps}), "one")])
    assert section is not None
    assert cells(section.blocks[0]) == [["1 s", "1.4 s", "1.45 s"]]


def test_many_rows_are_cut_and_said_to_be(make_record: RecordMaker) -> None:
    """The page stays readable; the record has them all."""
    section = timers_section([open_run(make_record(tables={"timers": timer_table(MAX_ROWS + 2)}), "one")])
    assert section is not None
    assert len(cells(section.blocks[0])) == MAX_ROWS
    assert section.blocks[0].left_out.startswith("2 rows more")  # type: ignore[union-attr]


def test_a_run_without_timers_has_no_such_section(make_record: RecordMaker) -> None:
    """Neither an empty heading nor an empty table."""
    assert 'id="timers"' not in build_page([make_record()], title="one")
    assert 'id="timers"' in build_page([make_record(tables={"timers": timer_table()})], title="one")


def test_a_table_that_lacks_a_column_is_refused(make_record: RecordMaker) -> None:
    """Half a table would look just as convincing."""
    table = timer_table()
    del table["simulated_stall_ns"]
    with pytest.raises(RecordError, match=r"timers.simulated_stall_ns: the column is missing"):
        build_page([make_record(tables={"timers": table})], title="one")
