"""`fabrictune train effective`: where the time of a job that ran went."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.options import fail_on_option, json_option, out_option, quiet_option, read_duration
from fabrictune.cli.framework.output import print_lines, print_table
from fabrictune.cli.framework.records import output_folder, print_record, with_command
from fabrictune.cli.framework.rules import site_rules
from fabrictune.foundation.records import notes_of
from fabrictune.foundation.run_tables.rows import tables_to_rows, to_rows
from fabrictune.foundation.units import PS_PER_NS, format_duration

if TYPE_CHECKING:
    from fabrictune.foundation.records import RunRecord
    from fabrictune.trainer_probe.survival.job_time import JobTime

MAX_OUTAGES = 12  # that are printed, those that cost most


@click.command()
@click.argument("journal", metavar="DIR")
@click.option(
    "--window",
    "window_ps",
    callback=read_duration,
    metavar="DURATION",
    help="Width of the sliding window.  [default: 1 h, or a twentieth of a job shorter than 20 h]",
)
@click.option("--plot", "figure", type=click.Path(path_type=Path), metavar="FILE", help="Figure: .svg, .pdf or .png.")
@out_option
@fail_on_option
@quiet_option
@json_option
def effective(
    journal: str,
    window_ps: int | None,
    figure: Path | None,
    out: Path | None,
    fail_on: str,
    quiet: bool,
    as_json: bool,
) -> int:
    """Show the effective training time of a job, and what the rest of its time went into.

    DIR is the job's folder or journal. Each nanosecond from the first event to the last belongs to one part, so that
    the parts sum to the whole; what the journal does not say is named. A job that still runs is counted up to its last
    event.

    \b
    Example:
      fabrictune train effective runs/job
      fabrictune train effective runs/job --window 10min --plot time.svg
    """
    from fabrictune.foundation.output_files import check_output_file
    from fabrictune.trainer_probe.survival.effective import effective_time
    from fabrictune.trainer_probe.survival.effective_record import make_effective_record

    if figure:
        check_output_file(figure)
    started, name = time.perf_counter(), _name(journal)
    place = output_folder(out or Path("runs") / f"{name}-effective")
    cut = _cut(journal)
    result = effective_time(cut, window_ns=max(1, window_ps // PS_PER_NS) if window_ps else None)
    record = with_command(
        make_effective_record(cut, result, name=name, journal=name, started=started, rules=site_rules())
    )
    directory = record.write(place)
    if figure:
        from fabrictune import plot

        plot.save(plot.effective_time(record), figure)

    def values() -> dict[str, Any]:
        return {**record.run["outcome"], **tables_to_rows(record.tables)}

    return print_record(
        record, directory, values, lambda: _print(record), as_json=as_json, quiet=quiet, fail_on=fail_on
    )


def _name(journal: str) -> str:
    """Return what the job's record is called: its folder, or the last part of a URL without user and password."""
    if journal.endswith("/journal.sqlite"):
        journal = journal.removesuffix("/journal.sqlite")
    return Path(journal.rstrip("/").rpartition("/")[2].partition("?")[0] or "job").stem


def _cut(url: str) -> "JobTime":
    """Return the periods of a journal; raises InputError and RecordError."""
    from fabrictune.foundation.errors import InputError, Mistake
    from fabrictune.trainer_probe.operation.journal import FILE_NAME, open_journal
    from fabrictune.trainer_probe.survival.periods import cut_periods

    place = url
    if "://" not in url and Path(url).is_dir():
        place = str(Path(url) / FILE_NAME)
    if "://" not in url and not Path(place).is_file():
        next_step = "name the folder of a job, or its journal"
        raise InputError(Mistake(where=url, found="no journal of a job", next_step=next_step))
    journal = open_journal(place, is_read_only=True)
    try:
        return cut_periods(journal.read)
    finally:
        journal.close()


def _print(record: "RunRecord") -> None:
    outcome = record.run["outcome"]
    parts = to_rows(record.tables["effective_parts"])
    print_lines(
        [
            f"effective {outcome['effective_fraction']:.2%} of {_time(outcome['total_ns'])}: "
            f"{outcome['num_steps']:,} steps kept, {outcome['num_recomputed']:,} done again, "
            f"{outcome['num_outages']} {'outage' if outcome['num_outages'] == 1 else 'outages'}",
            f"by iterations (steps times their median, {_time(outcome['median_step_ns'])}): "
            f"{outcome['by_iterations_fraction']:.2%}",
            "",
        ]
    )
    rows = [(row["part"], _time(row["duration_ns"]), f"{row['share_fraction']:.2%}") for row in parts]
    print_table(("part", "time", "share"), [row for row, part in zip(rows, parts, strict=True) if part["duration_ns"]])
    outages = sorted(to_rows(record.tables["effective_outages"]), key=lambda row: -row["duration_ns"])
    if outages:
        print_lines([""])
        cells = [
            (str(row["outage"]), row["cause"], row["entity"], _time(row["duration_ns"]), str(row["num_lost_steps"]))
            for row in outages[:MAX_OUTAGES]
        ]
        print_table(("outage", "cause", "laid to", "cost", "steps done again"), cells)
    if len(outages) > MAX_OUTAGES:
        print_lines([f"and {len(outages) - MAX_OUTAGES} more in the record"])
    print_lines([f"not known: {note}" for note in notes_of(record)])


def _time(time_ns: float) -> str:
    return format_duration(time_ns * PS_PER_NS) if time_ns else "0"
