"""`fabrictune diagnose`: which process of a job the others wait for, and which port is behind it."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.options import fail_on_option, hardware_option, json_option, quiet_option
from fabrictune.cli.framework.output import print_lines
from fabrictune.cli.framework.records import output_folder, print_record, with_command
from fabrictune.cli.framework.rules import site_rules

if TYPE_CHECKING:
    from fabrictune.hardware.profile import HardwareProfile
    from fabrictune.scenario.observed import DeviceName
    from fabrictune.studies.hang_report import HangReport

HASH_HELP = "Hash function of the switches, such as crc32; without it all paths that are equal are looked at."


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--fabric", "fabric_file", type=click.Path(path_type=Path), help="Topology file, to name the port.")
@click.option("--hash", "hash_name", metavar="FUNCTION", help=HASH_HELP)
@click.option(
    "--counters",
    type=click.Path(path_type=Path),
    nargs=2,
    metavar="BEFORE AFTER",
    help="Two snapshots of NICs' and switches' counters, as `rdma counters` reads them.",
)
@click.option(
    "--device",
    "devices",
    multiple=True,
    metavar="DEVICE=PORT",
    help="What hosts call a NIC, and what the fabric does: mlx5_0=nic0.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", default=Path("runs/diagnosis"), show_default=True
)
@hardware_option(default=None)
@fail_on_option
@quiet_option
@json_option
def diagnose(
    paths: tuple[Path, ...],
    fabric_file: Path | None,
    hash_name: str | None,
    counters: tuple[Path, Path] | None,
    devices: tuple[str, ...],
    out: Path,
    hardware: "HardwareProfile | None",
    fail_on: str,
    quiet: bool,
    as_json: bool,
) -> int:
    """Say which process of a job that hangs the others wait for, and why.

    PATH is a folder, or files, of what a job left: `ncclras -f json`, NCCL Inspector, PyTorch's flight recorder, logs
    with NCCL_DEBUG=INFO or of the watchdog, stacks of `py-spy dump`. What is of no known format is counted. The sources
    are joined, and what does not agree is said.

    The folder of a job of our own, of `train operate --run` or `train run --out`, stands for the pages of its ranks on
    this machine, looked at 2 s apart; also of ranks that are stopped, and of a run that was killed.

    With a fabric, and an NCCL log with the subsystems INIT and NET, the port behind a request that does not complete
    is named; counters tell apart what paths alone do not.

    What a step gains once the process or port is healthy follows from requests like the one that hangs or is slow, or
    from a hardware profile; what the evidence lacks for that is said.

    \b
    Example:
      fabrictune diagnose dumps/
      fabrictune diagnose runs/tiny
      fabrictune diagnose dumps/ logs/ --fabric fabric.json --counters before/ after/ --device mlx5_0=nic0
    """
    from fabrictune.observability.hangs.analysis import diagnose as find_diagnosis
    from fabrictune.observability.hangs.job import join_evidence
    from fabrictune.observability.hangs.reading import Found, read_evidence
    from fabrictune.studies.counterfactual import find_counterfactual
    from fabrictune.studies.hang_report import HangReport, make_hang_record, outcome
    from fabrictune.studies.own_jobs import find_own_job, read_own_job

    started, place = time.perf_counter(), output_folder(out)
    names = _devices(devices)
    own = [found_job for path in paths if (found_job := find_own_job(path)) is not None]
    foreign = [path for path in paths if find_own_job(path) is None]
    found = read_evidence(foreign) if foreign else Found(evidence=(), log=None, num_files=0, notes=())
    job = join_evidence((*map(read_own_job, own), *found.evidence))
    diagnosis = find_diagnosis(job)
    healthy = find_counterfactual(diagnosis, job, hardware) if diagnosis else None
    report = HangReport(job=job, diagnosis=diagnosis, notes=found.notes, why_no_port="no --fabric", healthy=healthy)
    if fabric_file is not None:
        report = _with_ports(report, found.log, fabric_file, hash_name, counters, names)
    sources = [str(path) for path in paths]
    record = with_command(make_hang_record(report, sources=sources, started=started, rules=site_rules()))
    directory = record.write(place)
    return print_record(
        record,
        directory,
        lambda: outcome(report),
        lambda: print_lines(_lines(report)),
        as_json=as_json,
        quiet=quiet,
        fail_on=fail_on,
    )


def _devices(texts: Sequence[str]) -> "list[DeviceName]":
    """Return the names of devices; raises InputError for one that is no pair."""
    from fabrictune.foundation.errors import InputError, Mistake
    from fabrictune.scenario.observed import DeviceName

    mistakes = [
        Mistake(where="fabrictune diagnose: --device", found=repr(text), allowed="DEVICE=PORT: mlx5_0=nic0")
        for text in texts
        if text.count("=") != 1 or not all(text.split("="))
    ]
    if mistakes:
        raise InputError(*mistakes)
    return [DeviceName(device=device, port=port) for device, port in (text.split("=") for text in texts)]


def _with_ports(
    report: "HangReport",
    log: Any,
    fabric_file: Path,
    hash_name: str | None,
    counters: tuple[Path, Path] | None,
    devices: "Sequence[DeviceName]",
) -> "HangReport":
    """Return the report with the ports of the queue pairs that hang, or with the reason why there are none."""
    from dataclasses import replace

    from fabrictune.observability.hangs.queue_pairs import find_hung_queue_pairs
    from fabrictune.rdma_bench.counters.differences import compare_snapshots
    from fabrictune.rdma_bench.counters.snapshots import read_snapshot
    from fabrictune.studies.hung_ports import find_hung_ports
    from fabrictune.topology.hashing import HashSpec
    from fabrictune.topology.importers import import_fabric

    fabric = import_fabric([fabric_file])
    comparison = compare_snapshots(*map(read_snapshot, counters)) if counters else None
    if report.diagnosis is None:
        return replace(report, why_no_port="no request that hangs")
    if log is None:
        return replace(report, why_no_port="no NCCL log with connections (NCCL_DEBUG_SUBSYS=INIT,NET)")
    pairs = find_hung_queue_pairs(report.diagnosis, report.job, log)
    if not pairs.hung:
        return replace(report, pairs=pairs, why_no_port="no connection between hosts of this request in the NCCL log")
    function: Any = hash_name
    spec = HashSpec(function=function) if function else None
    ports = find_hung_ports(fabric, pairs.hung, pairs.others, devices=devices, hash_spec=spec, comparison=comparison)
    return replace(report, pairs=pairs, ports=ports)


def _lines(report: "HangReport") -> list[str]:
    from fabrictune.foundation.wording import count
    from fabrictune.studies.hang_report import all_notes

    job = report.job
    sources = ", ".join(f"{source} ({count(number, 'file')})" for source, number in job.sources.items())
    head = [f"{len(job.processes):,} processes, {count(len(job.groups), 'group')}; {sources}"]
    if report.diagnosis is None:
        head.append("nothing stands still in this evidence; a job that hangs may leave more: stacks, dumps, RAS")
    return [*head, *(f"note: {note}" for note in all_notes(report))]
