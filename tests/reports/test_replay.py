"""The section of replayed steps: a row a step with each axis' exposed communication, and the critical path's shares."""

from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.reports.blocks import Table
from fabrictune.reports.record_view import open_run
from fabrictune.reports.replay import replay_section

US = 1_000_000  # picoseconds


def replay_record(*, bound_ps: int) -> RunRecord:
    """Return the record of one step of 100 us: 60 of work, then 40 of tp, and nothing of dp."""
    step = {"step": 3, "begin_ps": 0, "duration_ps": 100 * US, "work_ps": 60 * US, "exposed_ps": 40 * US}
    exposed = {"step": 3, "max_exposed_ps": 0, "rank": 0, "lower_bound_ps": bound_ps}
    piece = {"step": 3, "operation": "", "tag": "", "rank": 1, "transfers": 0, "port": -1}
    return RunRecord(
        kind="sim run",
        run={"name": "replay"},
        tables={
            "replayed_steps": to_columns(
                "replayed_steps", [{**step, "work_alone_ps": bound_ps, "lower_bound_ps": bound_ps}]
            ),
            "exposed_communication": to_columns(
                "exposed_communication",
                [{**exposed, "axis": "dp", "exposed_ps": 0}, {**exposed, "axis": "tp", "exposed_ps": 40 * US}],
            ),
            "critical_path": to_columns(
                "critical_path",
                [
                    {**piece, "axis": "work", "begin_ps": 0, "duration_ps": 60 * US},
                    {**piece, "axis": "tp", "begin_ps": 60 * US, "duration_ps": 40 * US},
                ],
            ),
        },
    )


def tables_of(record: RunRecord) -> list[Table]:
    """Return the tables of the section on a record."""
    section = replay_section([open_run(record, "r")])
    assert section is not None
    return [block for block in section.blocks if isinstance(block, Table)]


def test_a_step_has_its_time_its_waits_and_its_bound() -> None:
    """Axes in order of their names; the path is 60 % work, all of it on rank 1."""
    steps, path = tables_of(replay_record(bound_ps=80 * US))
    assert steps.headings == ("Step", "Time", "Work", "Exposed dp", "Exposed tp", "Without network", "Lower bound")
    assert [[cell.text for cell in row] for row in steps.rows] == [
        ["3", "100 us", "60 us", "0", "40 us", "80 us", "80 us"]
    ]
    assert [[cell.text for cell in row] for row in path.rows] == [
        ["work", "60 us", "60 %"],
        ["tp", "40 us", "40 %"],
        ["work on rank 1", "60 us", "60 %"],
    ]


def test_a_bound_that_was_not_computed_is_missing() -> None:
    """It is -1 in the record, and no time on the page."""
    steps, _ = tables_of(replay_record(bound_ps=-1))
    assert [cell.text for cell in steps.rows[0]][-2:] == ["–", "–"]  # noqa: RUF001


def test_runs_without_a_replay_have_no_section() -> None:
    """Most runs replay nothing."""
    assert replay_section([open_run(RunRecord(kind="sim run", run={}, tables={}), "r")]) is None
