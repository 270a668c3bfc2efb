"""`fabrictune train decay`: whether steps become longer over a run, and why."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.options import fail_on_option, json_option, out_option, quiet_option
from fabrictune.cli.framework.output import print_lines, print_table
from fabrictune.cli.framework.records import output_folder, print_record, with_command
from fabrictune.cli.framework.rules import site_rules
from fabrictune.foundation.records import notes_of
from fabrictune.foundation.run_tables.rows import tables_to_rows, to_rows
from fabrictune.foundation.units import PS_PER_NS, format_duration

if TYPE_CHECKING:
    from fabrictune.foundation.arrays import FloatArray
    from fabrictune.foundation.records import RunRecord


@click.command()
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "--against",
    "other",
    type=click.Path(path_type=Path),
    metavar="OTHER",
    help="Another run: explain the difference in time to a loss by their spans.",
)
@out_option
@fail_on_option
@quiet_option
@json_option
def decay(run: Path, other: Path | None, out: Path | None, fail_on: str, quiet: bool, as_json: bool) -> int:
    """Show whether the steps of a run become longer, and which part of them grows, on which ranks.

    RUN is the record of `train run`, the folder of `train operate`, or a folder of spans; it may still be running. Of a
    long run, early steps are a sample at an even distance.

    \b
    Example:
      fabrictune train decay runs/tiny
      fabrictune train decay runs/today --against runs/yesterday
    """
    from fabrictune.foundation.span_reader import read_spans
    from fabrictune.observability.decay.analysis import decay_of
    from fabrictune.observability.decay.comparison import compare
    from fabrictune.observability.decay.parts import step_parts
    from fabrictune.observability.decay.record import make_decay_record

    started, rules = time.perf_counter(), site_rules()
    name = run.resolve().name
    place = output_folder(out or Path("runs") / f"{name}-decay")
    spans = read_spans(run)
    found = decay_of(spans)
    comparison = None
    if other is not None:
        comparison = compare(found.parts, step_parts(read_spans(other)), _losses(run), _losses(other))
    record = with_command(
        make_decay_record(
            found,
            comparison,
            name=name,
            other="" if other is None else other.resolve().name,
            num_dropped=int(spans.num_dropped_R.sum()),
            started=started,
            rules=rules,
        )
    )
    directory = record.write(place)

    def values() -> dict[str, Any]:
        return {**record.run["outcome"], **tables_to_rows(record.tables)}

    return print_record(
        record, directory, values, lambda: _print(record), as_json=as_json, quiet=quiet, fail_on=fail_on
    )


def _losses(run: Path) -> "FloatArray":
    """Return the losses of a training run's record, none where there is no record."""
    import numpy as np

    from fabrictune.foundation.errors import RecordError
    from fabrictune.foundation.records import RunRecord

    try:
        table = RunRecord.read(run, tables=("training",)).tables.get("training", {})
    except RecordError:
        return np.zeros(0)
    return np.asarray(table.get("loss", np.zeros(0)), np.float64)


def _print(record: "RunRecord") -> None:
    outcome = record.run["outcome"]
    print_lines(
        [
            f"steps {outcome['first_step']:,} to {outcome['last_step']:,}, {outcome['num_steps']:,} looked at: "
            f"{_time(outcome['first_step_ns'])} at first, {_time(outcome['last_step_ns'])} at the end; trend "
            f"{outcome['growth_fraction']:+.1%}, MFU {outcome['mfu_change_fraction']:+.1%}"
            + ("" if outcome["is_trend"] else " (within the scatter of steps)"),
            "",
        ]
    )
    rows = [
        (row["part"], _time(row["first_ns"]), _time(row["last_ns"]), _change(row["growth_ns"]), row["ranks"] or "all")
        for row in to_rows(record.tables["decay_parts"])
    ]
    print_table(("part of the step", "first tenth", "last tenth", "growth", "ranks"), rows)
    if "comparison" in outcome:
        _print_comparison(record)
    print_lines(["", *(f"note: {note}" for note in notes_of(record))])


def _print_comparison(record: "RunRecord") -> None:
    found = record.run["outcome"]["comparison"]
    target = "the same steps" if found["loss"] is None else f"a loss of {found['loss']:.4f}"
    print_lines(
        [
            "",
            f"to {target}: {found['own_steps']:,} steps in {_time(found['own_ns'])}, the other run "
            f"{found['other_steps']:,} in {_time(found['other_ns'])}",
            "",
        ]
    )
    rows = [
        (row["part"], _time(row["own_ns"]), _time(row["other_ns"]), _change(row["change_ns"]))
        for row in to_rows(record.tables["decay_differences"])
    ]
    print_table(("part", "this run", "other run", "change"), rows)


def _time(time_ns: int) -> str:
    return format_duration(time_ns * PS_PER_NS) if time_ns > 0 else "0" if not time_ns else f"-{_time(-time_ns)}"


def _change(time_ns: int) -> str:
    return _time(time_ns) if time_ns <= 0 else f"+{_time(time_ns)}"
