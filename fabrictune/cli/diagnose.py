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
    from fabrictune.observability.hangs.reading import Found
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
    with NCCL_DEBUG=INFO or of the watchdog, stacks of `py-spy dump`, `rdma -j resource show qp` as HOST.json. What is
    of no known format is counted. The sources are joined, and what does not agree is said. A folder of `fleet collect`
    stands for its hosts' listings of queue pairs.

    The folder of a job of our own, of `train operate --run` or `train run --out`, stands for the pages of its ranks on
    this machine, looked at 2 s apart, also of ranks that are stopped and of a run that was killed; and for its spans.

    With a fabric, and an NCCL log with the subsystems INIT and NET or listings of queue pairs, the port behind a
    request that does not complete is named; counters tell apart what paths alone do not.

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
    from fabrictune.studies.counterfactual import find_counterfactual
    from fabrictune.studies.hang_report import HangReport, make_hang_record, outcome
    from fabrictune.studies.job_evidence import collect_evidence

    started, place = time.perf_counter(), output_folder(out)
    names = _devices(devices)
    found = collect_evidence(paths)
    job = join_evidence(found.evidence)
    diagnosis = find_diagnosis(job)
    healthy = find_counterfactual(diagnosis, job, hardware) if diagnosis else None
    report = HangReport(job=job, diagnosis=diagnosis, notes=found.notes, why_no_port="no --fabric", healthy=healthy)
    if fabric_file is not None:
        report = _with_ports(report, found, fabric_file, hash_name, counters, names)
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
    found: "Found",
    fabric_file: Path,
    hash_name: str | None,
    counters: tuple[Path, Path] | None,
    devices: "Sequence[DeviceName]",
) -> "HangReport":
    """Return the report with the ports of the queue pairs that hang, or with the reason why there are none."""
    from dataclasses import replace

    from fabrictune.observability.hangs.queue_pairs import find_hung_queue_pairs, find_listed_queue_pairs
    from fabrictune.rdma_bench.counters.differences import compare_snapshots
    from fabrictune.rdma_bench.counters.snapshots import read_snapshot
    from fabrictune.studies.hung_ports import find_hung_ports
    from fabrictune.topology.hashing import HashSpec
    from fabrictune.topology.importers import import_fabric

    fabric = import_fabric([fabric_file])
    comparison = compare_snapshots(*map(read_snapshot, counters)) if counters else None
    if report.diagnosis is None:
        return replace(report, why_no_port="no request that hangs")
    if found.log is None and not found.queue_pairs:
        reason = "no NCCL log with connections (NCCL_DEBUG_SUBSYS=INIT,NET), and no listing of queue pairs"
        return replace(report, why_no_port=reason)
    pairs = find_hung_queue_pairs(report.diagnosis, report.job, found.log) if found.log else None
    if found.queue_pairs and not (pairs and pairs.hung):
        pairs = find_listed_queue_pairs(report.diagnosis, report.job, found.queue_pairs)
    if pairs is None or not pairs.hung:
        reason = "no connection between hosts of this request in the NCCL log or a listing"
        return replace(report, pairs=pairs, why_no_port=reason)
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
