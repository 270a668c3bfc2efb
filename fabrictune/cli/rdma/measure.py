"""`fabrictune rdma timers measure`: when an adapter's queue pairs really give up, and when a flap's stall ends."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.options import INTERRUPTED, fail_on_option, json_option, quiet_option, read_duration
from fabrictune.cli.framework.output import print_table
from fabrictune.cli.framework.progress import progress_bar
from fabrictune.cli.framework.records import output_folder, print_record, with_command
from fabrictune.cli.framework.rules import site_rules
from fabrictune.cli.rdma.pair import opened_pair, pair_options
from fabrictune.cli.rdma.predict import shown
from fabrictune.foundation.errors import InputError
from fabrictune.foundation.run_tables.rows import to_rows
from fabrictune.foundation.units import PS_PER_NS, PS_PER_S

if TYPE_CHECKING:
    from fabrictune.foundation.records import RunRecord
    from fabrictune.rdma_bench.measurement.timers import MeasuredTimers

STATUS_NAMES = {-1: "none came", 0: "resumed", 12: "retries exceeded", 13: "receiver not ready"}


def _read_flaps(context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> tuple[int, ...]:
    """Return nanoseconds; raises UnitError."""
    return tuple((read_duration(context, option, text) or 0) // PS_PER_NS for text in texts)


@click.command()
@click.option(
    "--timeout",
    "exponents",
    type=click.IntRange(1, 31),
    multiple=True,
    default=(14, 16, 18),
    show_default=True,
    metavar="T",
    help="Timeout exponent (NCCL_IB_TIMEOUT); repeatable.",
)
@click.option(
    "--retries",
    type=click.IntRange(0, 7),
    multiple=True,
    default=(2, 5),
    show_default=True,
    metavar="R",
    help="Retry count (NCCL_IB_RETRY_CNT); repeatable.",
)
@click.option("--repeat", "num_repetitions", type=click.IntRange(1, 1000), default=1, show_default=True)
@click.option(
    "--flap",
    "flaps_ns",
    callback=_read_flaps,
    multiple=True,
    metavar="DURATION",
    help="Duration of the outage; repeatable.  [default: permanent]",
)
@click.option(
    "--traffic",
    type=click.Choice(["idle", "continuous"]),
    default="idle",
    show_default=True,
    help="One request on the dead path, or several in flight at link down.",
)
@click.option("--by-command", is_flag=True, help="Cut the path by the receiver worker's command (needed for flaps).")
@click.option("--cut-command", default="", metavar="WORDS", help="Command that cuts the path, for local workers.")
@click.option("--heal-command", default="", metavar="WORDS", help="Command that restores the path.")
@click.option("--limit", "limit_ps", callback=read_duration, metavar="DURATION", help="Time limit of one trial.")
@click.option(
    "--against", default="ibta", show_default=True, metavar="NAME|FILE", help="Adapter profile to compare with."
)
@click.option("--profile", type=click.Path(path_type=Path), metavar="FILE", help="Output file of the fitted profile.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", default=Path("runs/timers"), show_default=True)
@pair_options
@fail_on_option
@quiet_option
@json_option
@click.pass_context
def measure(
    context: click.Context,
    /,
    flaps_ns: tuple[int, ...],
    by_command: bool,
    cut_command: str,
    heal_command: str,
    limit_ps: int | None,
    against: str,
    profile: Path | None,
    out: Path,
    fail_on: str,
    quiet: bool,
    as_json: bool,
    **settings: Any,
) -> int:
    """Measure on RDMA devices when a dead path is noticed, and fit a profile of their timers to it.

    Each trial connects a queue pair with one timeout and one retry count, lets its path die, and waits for the error.
    Without commands the peer's queue pair falls silent, which harms nobody else. On one port of this host, between two
    hosts whose workers were started with `rdma serve`, or in a virtual machine (--soft-roce). Stopped by Ctrl-C or by
    an end that vanishes, it keeps what it has.

    \b
    Example:
      fabrictune rdma timers measure --soft-roce --timeout 14 --timeout 16 --profile runs/soft-roce.json
      fabrictune rdma timers measure --device mlx5_0 --retries 1 --retries 7 --profile my-nic.json
      fabrictune rdma timers measure --sender a:18700 --receiver b:18700 --token-file token --by-command --flap 2s
    """
    from fabrictune.foundation.output_files import check_output_file
    from fabrictune.rdma_bench.measurement.stop_reason import CTRL_C
    from fabrictune.rdma_bench.measurement.timer_record import make_timer_record
    from fabrictune.rdma_bench.measurement.timers import TimerPlan, measure_timers
    from fabrictune.rdma_bench.timers.profile_files import find_profile
    from fabrictune.rdma_bench.timers.trials import FOR_GOOD

    place_of_record = output_folder(out)
    if profile:
        check_output_file(profile)
    started, known = time.perf_counter(), find_profile(against, where="--against")
    plan = TimerPlan(
        **{name: settings.pop(name) for name in ("exponents", "retries", "num_repetitions", "traffic")},
        cuts_ns=flaps_ns or (FOR_GOOD,),
        by_command=by_command or bool(cut_command) or (settings["soft_roce"] and bool(flaps_ns)),
        limit_s=None if limit_ps is None else limit_ps / PS_PER_S,
    )
    with (
        progress_bar("measuring", is_quiet=quiet or as_json) as progress,
        opened_pair(context, settings, cut=cut_command, heal=heal_command) as (pair, place),
    ):
        measured = measure_timers(pair, plan, progress)
    record = with_command(make_timer_record(measured, plan, known, place=place, started=started, rules=site_rules()))
    directory = record.write(place_of_record)
    fitted = _fit(measured, record, profile)

    def values() -> dict[str, Any]:
        trials = to_rows(record.tables["trials"])
        return {"is_partial": record.run["is_partial"], "profile": fitted, "trials": trials}

    code = print_record(
        record,
        directory,
        values,
        lambda: _print(record, known.name),
        places=[f"profile: {fitted}"] if fitted else [],
        as_json=as_json,
        quiet=quiet,
        fail_on=fail_on,
    )
    return INTERRUPTED if measured.stopped == CTRL_C else code


def _fit(measured: "MeasuredTimers", record: "RunRecord", path: Path | None) -> str | None:
    """Write the fitted profile where one was asked for; raises InputError where the trials do not determine it."""
    from fabrictune.rdma_bench.measurement.timer_fit import fit_timers
    from fabrictune.rdma_bench.timers.profile_files import write_profile

    if path is None:
        return None
    try:
        fit = fit_timers(measured.trials)
    except InputError:
        if measured.stopped:  # what there is stays in the record
            return None
        raise
    source = f"{record.run['command']}: {len(measured.trials)} trials"
    return str(write_profile(fit.profile(name=path.stem, source=source, device=measured.device), path))


def _print(record: "RunRecord", model: str) -> None:
    headings = ("timeout", "retries", "path down", "ended", "after", f"by {model}")
    rows = [
        (
            str(row["timeout"]),
            str(row["retries"]),
            "for good" if row["cut_ns"] < 0 else shown(row["cut_ns"]),
            STATUS_NAMES.get(row["status"], f"status {row['status']}"),
            shown(row["after_ns"]),
            "never" if row["model_ns"] < 0 else shown(row["model_ns"]),
        )
        for row in to_rows(record.tables["trials"])
    ]
    print_table(headings, rows)
