"""`fabrictune rdma flap-job`: a real collective job whose link goes down and comes back."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.options import fail_on_option, json_option, quiet_option
from fabrictune.cli.framework.output import print_lines, print_table
from fabrictune.cli.framework.progress import progress_bar
from fabrictune.cli.framework.records import output_folder, print_record, with_command
from fabrictune.cli.framework.rules import site_rules
from fabrictune.cli.rdma.predict import retransmission_of, shown
from fabrictune.foundation.run_tables.rows import tables_to_rows, to_rows
from fabrictune.foundation.units import PS_PER_NS, parse_duration_ps

if TYPE_CHECKING:
    from fabrictune.foundation.records import RunRecord


def _read_flaps(context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> tuple[int, ...]:
    """Return nanoseconds; raises UnitError."""
    where = f"{context.command_path}: {option.opts[0]}"
    return tuple(parse_duration_ps(text, where=where) // PS_PER_NS for text in texts)


@click.command("flap-job")
@click.option(
    "--flap",
    "flaps_ns",
    callback=_read_flaps,
    multiple=True,
    default=("400 ms", "1 s", "2 s"),
    show_default=True,
    metavar="DURATION",
    help="Duration of the link flap; repeatable.",
)
@click.option(
    "--profile",
    "names",
    multiple=True,
    default=("ibta", "connectx-6"),
    show_default=True,
    metavar="NAME|FILE",
    help="Adapter profile to compare with.",
)
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", default=Path("runs/flap-job"), show_default=True)
@fail_on_option
@quiet_option
@json_option
def flap_job(
    flaps_ns: tuple[int, ...], names: tuple[str, ...], out: Path, fail_on: str, quiet: bool, as_json: bool
) -> int:
    """Run two ranks that all-reduce between network namespaces, take the link down, and see when the job goes on.

    The job talks TCP, which sends again after 0.2, 0.6, 1.4, 3 ... s: it goes on with the first of these after the
    link. What RDMA timers would do, with NCCL's defaults, is predicted beside it. Needs root, iproute2 and torch;
    touches no interface of the machine itself.

    \b
    Example:
      sudo fabrictune rdma flap-job
      sudo fabrictune rdma flap-job --flap 5s --flap 10s --profile soft-roce
    """
    from fabrictune.rdma_bench.timers.prediction import predict_retransmission
    from fabrictune.rdma_bench.timers.profile_files import find_profile
    from fabrictune.validate.flap_job import flap_record, run_flap_job

    started, spec = time.perf_counter(), retransmission_of(None, None, None)
    place = output_folder(out)
    predictions = [predict_retransmission(spec, find_profile(name, where="--profile")) for name in names]
    with progress_bar("flapping", is_quiet=quiet or as_json) as progress:
        results, ended = run_flap_job(flaps_ns, progress=progress)
    record = flap_record(results, ended, predictions, started=started, rules=site_rules())
    directory = with_command(record).write(place)
    return print_record(
        record,
        directory,
        lambda: tables_to_rows(record.tables),
        lambda: _print(record, {one.profile.name: one.basis for one in predictions}),
        as_json=as_json,
        quiet=quiet,
        fail_on=fail_on,
    )


def _print(record: "RunRecord", basis: dict[str, str]) -> None:
    job = record.run["job"]
    print_lines([f"{job['iterations']} all-reduces over TCP, median {shown(job['median_ns'])}"])
    rdma = to_rows(record.tables["rdma"])
    profiles = list(dict.fromkeys(row["profile"] for row in rdma))
    print_table(
        ("link down", "TCP timeout", "retransmits at", "job stalled for", *(f"RDMA by {name}" for name in profiles)),
        [_cells(row, rdma) for row in to_rows(record.tables["flaps"])],
    )
    print_lines(f"RDMA by {name}: {basis[name]}" for name in profiles)


def _cells(flap: dict[str, Any], rdma: list[dict[str, Any]]) -> tuple[str, ...]:
    beside = (row["resumes_ns"] for row in rdma if row["flap_ns"] == flap["flap_ns"])
    return (
        shown(flap["down_ns"]),
        shown(flap["tcp_timeout_ns"]),
        shown(flap["tcp_resumes_ns"]),
        shown(flap["stall_ns"]),
        *(shown(time_ns if time_ns >= 0 else None) for time_ns in beside),
    )
