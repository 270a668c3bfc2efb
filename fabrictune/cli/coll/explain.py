"""`fabrictune coll explain`: the job in an NCCL log, what looks wrong, and its results beside a drafted model."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.coll.job_lines import job_lines
from fabrictune.cli.coll.options import operation_option
from fabrictune.cli.coll.sizes import all_sizes_option, print_measurements
from fabrictune.cli.coll.verdict_lines import verdict_lines
from fabrictune.cli.framework.findings import conclude, judged_json, print_findings
from fabrictune.cli.framework.options import fail_on_option, json_option, quiet_option
from fabrictune.cli.framework.output import print_json, print_lines
from fabrictune.cli.framework.progress import progress_bar
from fabrictune.cli.framework.rules import site_rules
from fabrictune.foundation.units import parse_link_rate_bps

if TYPE_CHECKING:
    from fabrictune.collectives.measurement.files import MeasurementFiles
    from fabrictune.collectives.nccl.job_summary import JobSummary
    from fabrictune.validate.log_explanation import LogExplanation

_HEAD_BYTES = 2**20  # of a file, read to tell a log from results
_IS_LOG = (b" NCCL INFO ", b" NCCL WARN ")
_HAS_RESULTS = b"busbw"


@click.command()
@click.argument("files", metavar="LOG... [RESULTS]", nargs=-1, required=True, type=click.Path(path_type=Path))
@operation_option
@click.option("--nic-rate", metavar="RATE", help="Rate of a NIC, where the log does not say it.")
@click.option(
    "--topology",
    "topology_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Topology of the hosts (NCCL_TOPO_DUMP_FILE), or - for standard input.",
)
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Output file of the drafted scenario.")
@all_sizes_option
@fail_on_option
@quiet_option
@json_option
def explain(
    files: tuple[Path, ...],
    operation: str | None,
    nic_rate: str | None,
    topology_file: Path | None,
    out: Path | None,
    all_sizes: bool,
    fail_on: str,
    quiet: bool,
    as_json: bool,
) -> int:
    """Say what an NCCL log shows of its job: network, NICs of each GPU, channels, GPUDirect, and what looks wrong.

    Give the logs of all hosts together, with NCCL_DEBUG=INFO; NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH,TUNING logs most.
    RESULTS are nccl-tests' text or JSON, or lines of NCCL Inspector; results among the log's lines are found there.
    They are put beside a model of the job on a drafted fabric, and the verdict is given for every usual NIC rate.

    \b
    Example:
      fabrictune coll explain nccl.*.log
      fabrictune coll explain nccl.log all_reduce.txt --nic-rate "400 Gbps" --out drafted.yaml
    """
    from fabrictune.collectives.measurement.files import ImportHints, read_measurements
    from fabrictune.collectives.nccl.topology_xml import read_topology
    from fabrictune.foundation.errors import InputError
    from fabrictune.foundation.flows import UNKNOWN
    from fabrictune.foundation.output_files import check_output_file
    from fabrictune.validate.drafted_scenario import DraftHints
    from fabrictune.validate.log_explanation import explain_nccl_log

    if out is not None:
        check_output_file(out)
    logs, results = _sorted(files)
    rate_bps = parse_link_rate_bps(nic_rate, where="--nic-rate") if nic_rate else UNKNOWN
    measured, unread = None, ""
    if results:
        try:
            measured = read_measurements(results, ImportHints(name=operation))
        except InputError as error:  # results that nobody named may be none, or need a word of the user's
            if results not in logs:
                raise
            unread = "; ".join(f"{one.found}; next: {one.next_step}" for one in error.mistakes)
    with progress_bar("modelling", is_quiet=quiet or as_json) as progress:
        explained = explain_nccl_log(
            logs,
            measured,
            DraftHints(rate_bps=rate_bps),
            topology=read_topology(topology_file) if topology_file else None,
            rules=site_rules(),
            progress=progress,
        )
    if out is not None:
        _write_draft(explained, out)
    if as_json:
        print_json({**_values(explained), "unread_results": unread, **judged_json(explained)})
        return conclude(fail_on, explained)
    if not quiet:
        print_lines(job_lines(explained.summary, explained.timers))
        _show_results(explained, measured, all_sizes=all_sizes)
        print_lines([f"results in {results} not read: {unread}"] if unread else [])
        _show_draft(explained, out, is_used=measured is not None)
        print_lines([""])
    print_findings(explained)
    return conclude(fail_on, explained)


def _sorted(files: Sequence[Path]) -> tuple[list[Path], Path | None]:
    """Return the logs, and the file of results: one of its own, or the log that has some among its lines.

    Raises InputError for several files of results.
    """
    from fabrictune.foundation.errors import InputError, Mistake
    from fabrictune.foundation.foreign_files import read_head

    heads = {path: read_head(path, _HEAD_BYTES) for path in files}
    logs = [path for path, head in heads.items() if any(text in head for text in _IS_LOG)]
    others = [path for path in heads if path not in logs]
    if not logs:
        return others, None
    if len(others) > 1:
        found = f"{len(others)} files that are no logs of NCCL: {', '.join(map(str, others))}"
        raise InputError(Mistake(where="RESULTS", found=found, allowed="one file of results beside the logs"))
    return logs, next((path for path in (*others, *logs) if path in others or _HAS_RESULTS in heads[path]), None)


def _write_draft(explained: "LogExplanation", out: Path) -> None:
    from fabrictune.foundation.errors import InputError, Mistake
    from fabrictune.foundation.output_files import replaced_file

    if explained.draft is None:
        raise InputError(Mistake(where="--out", found=f"no scenario can be drafted: {explained.no_draft}"))
    with replaced_file(out) as half:
        half.write_text(explained.draft.text)


def _show_results(explained: "LogExplanation", measured: "MeasurementFiles | None", *, all_sizes: bool) -> None:
    from fabrictune.collectives.measurement.measurements import to_table
    from fabrictune.foundation.run_tables.rows import to_rows

    if measured is None or explained.compared is None:
        return
    print_lines([""])
    print_measurements(to_rows(to_table(measured.rows)), measured.rows, all_sizes=all_sizes)
    tables = explained.compared.tables
    print_lines(verdict_lines(to_rows(tables.get("verdict_rates", {}))))


def _show_draft(explained: "LogExplanation", out: Path | None, *, is_used: bool) -> None:
    """Print where the draft is, and its assumptions where something rests on it."""
    draft = explained.draft
    if draft is None:
        print_lines([f"no scenario drafted: {explained.no_draft}"])
        return
    print_lines([f"drafted scenario: {out}" if out else "--out FILE writes a drafted scenario of this job"])
    if out or is_used:
        print_lines(f"assumed: {text}" for text in draft.assumptions)


def _values(explained: "LogExplanation") -> Mapping[str, Any]:
    from fabrictune.foundation.run_tables.rows import tables_to_rows

    draft, timers = explained.draft, explained.timers
    return {
        "job": _job(explained.summary),
        "timers": {
            "networks": list(timers.networks),
            "possible": [asdict(one.spec) for one in timers.predictions],
            "assumptions": list(timers.assumptions),
        },
        "draft": None if draft is None else asdict(draft),
        "no_draft": explained.no_draft,
        "compared": None if explained.compared is None else tables_to_rows(explained.compared.tables),
    }


def _job(summary: "JobSummary") -> Mapping[str, Any]:
    """Return the summary as JSON values, each number under a name that says what it counts."""
    return {
        **asdict(summary),
        "gpus_of_host": [{"host": host, "num_gpus": number} for host, number in summary.gpus_of_host.items()],
        "inside_hosts": [{"transport": name, "num_channels": number} for name, number in summary.inside_hosts.items()],
        "tree_roots": " ".join(map(str, summary.tree_roots)),
        "ring_orders": [" ".join(map(str, order)) for order in summary.ring_orders],
    }
