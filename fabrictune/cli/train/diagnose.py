"""`fabrictune train diagnose`: which nodes of a job are bad."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.options import (
    fail_on_option,
    hardware_option,
    json_option,
    out_option,
    quiet_option,
    read_duration,
)
from fabrictune.cli.framework.output import print_json, print_lines, print_table
from fabrictune.cli.framework.progress import progress_bar
from fabrictune.cli.framework.records import output_folder, print_record, with_command
from fabrictune.cli.framework.rules import site_rules
from fabrictune.foundation.records import notes_of
from fabrictune.foundation.run_tables.rows import tables_to_rows
from fabrictune.foundation.units import PS_PER_S, format_duration

if TYPE_CHECKING:
    from fabrictune.diagnostics.diagnosis import Diagnosis
    from fabrictune.diagnostics.plan import DiagnosisPlan
    from fabrictune.foundation.records import RunRecord
    from fabrictune.hardware.profile import HardwareProfile

MAX_RANKS = 64  # processes of this machine


@click.command()
@click.option(
    "--ranks",
    type=click.IntRange(1, MAX_RANKS),
    default=4,
    show_default=True,
    help="Processes of this machine as ranks; a launcher's ranks are taken instead.",
)
@click.option(
    "--ranks-per-host", type=click.IntRange(min=1), default=1, show_default=True, help="Of a launcher, for the plan."
)
@click.option(
    "--ranks-per-tor",
    type=click.IntRange(min=2),
    help="Ranks under one ToR, in order of ranks: neighbours.  [default: all]",
)
@click.option("--only", multiple=True, metavar="TEST", help="Only this test, repeatable; --plan lists them.")
@click.option(
    "--limit",
    "limit_ps",
    callback=read_duration,
    default="10min",
    show_default=True,
    metavar="DURATION",
    help="Time after which no further test begins.",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder on the disk to test.  [default: the system's for temporary files]",
)
@click.option("--plan", "shows_plan", is_flag=True, help="Print the plan with its expected time, and test nothing.")
@hardware_option(default=None)
@out_option
@fail_on_option
@quiet_option
@json_option
def diagnose(
    ranks: int,
    ranks_per_host: int,
    ranks_per_tor: int | None,
    only: tuple[str, ...],
    limit_ps: int,
    folder: Path | None,
    shows_plan: bool,
    hardware: "HardwareProfile | None",
    out: Path | None,
    fail_on: str,
    quiet: bool,
    as_json: bool,
) -> int:
    """Find the bad nodes of a job: each is tested, compared with its peers, and tested together with others.

    Every node test runs in a process of its own with a limit. A group of nodes that fails is halved until the guilty
    node is named. Exit code 1 means that a node is bad, and the findings name it.

    Without a launcher, ranks are processes of this machine over loopback. With torchrun or srun, start a rank a node.

    \b
    Example:
      fabrictune train diagnose --plan
      fabrictune train diagnose --ranks 4
      torchrun --nnodes 64 --nproc-per-node 1 ... -m fabrictune train diagnose --ranks-per-tor 32 --hardware h100
    """
    from fabrictune.collectives.startup.launchers import launched_by
    from fabrictune.diagnostics.plan import TESTS, make_plan
    from fabrictune.diagnostics.record import make_diagnosis_record
    from fabrictune.diagnostics.running import diagnose_as_rank, diagnose_locally
    from fabrictune.foundation.errors import InputError, require_one_of

    for name in only:
        require_one_of(name, TESTS, where="--only", what="test", error=InputError)
    started, launched = time.perf_counter(), launched_by(os.environ)
    num_ranks, per_host = (launched.num_ranks, ranks_per_host) if launched else (ranks, ranks)
    plan = make_plan(num_ranks, per_host, only=only, limit_s=limit_ps / PS_PER_S)
    is_silent = launched is not None and launched.rank > 0
    if shows_plan:
        if as_json:
            print_json({"plan": _plan_values(plan)})
        else:
            _print_plan(plan)
        return 0
    place = None if is_silent else output_folder(out or Path("runs") / "diagnose")
    if not (quiet or as_json or is_silent):
        _print_plan(plan)
    options: dict[str, Any] = {
        "ranks_per_tor": ranks_per_tor or num_ranks,
        "folder": folder,
        "rules": site_rules(),
    }
    with progress_bar("diagnosing", is_quiet=quiet or as_json or is_silent) as progress:
        diagnosis = (
            diagnose_as_rank(launched, plan, progress=progress, **options)
            if launched
            else diagnose_locally(plan, progress=progress, **options)
        )
    if diagnosis is None or place is None:
        return 0
    record = with_command(make_diagnosis_record(diagnosis, started=started, hardware=hardware, rules=site_rules()))
    directory = record.write(place)

    def values() -> dict[str, Any]:
        return {"plan": _plan_values(plan), **record.run["outcome"], **tables_to_rows(record.tables)}

    return print_record(
        record,
        directory,
        values,
        lambda: _print(record, diagnosis),
        as_json=as_json,
        quiet=quiet,
        fail_on=fail_on,
    )


def _plan_values(plan: "DiagnosisPlan") -> dict[str, Any]:
    tests = [{"name": test.name, "meaning": test.meaning, "expected_s": test.expected_s} for test in plan.tests]
    return {"num_ranks": plan.num_ranks, "expected_s": plan.expected_s, "limit_s": plan.limit_s, "tests": tests}


def _print_plan(plan: "DiagnosisPlan") -> None:
    from fabrictune.diagnostics.plan import BISECTION, bisection_s

    per_host = f", {plan.ranks_per_host} a host" if plan.ranks_per_host > 1 else ""
    print_lines([f"plan for {plan.num_ranks} ranks{per_host}: {_time(plan.expected_s)}, at most {_time(plan.limit_s)}"])
    print_table(
        ("test", "what", "expected"),
        [(test.name, test.meaning, _time(test.expected_s)) for test in plan.tests],
        indent=2,
    )
    if BISECTION in plan.names and plan.num_ranks > 1:
        print_lines([f"  naming a node that fails with others adds {_time(bisection_s(plan.num_ranks))} or more"])


def _print(record: "RunRecord", diagnosis: "Diagnosis") -> None:
    from statistics import median

    from fabrictune.diagnostics.figures import FIGURES

    outcome = record.run["outcome"]
    cells = []
    for name, kind in FIGURES.items():
        values = {
            rank: result.figures[name] for (_, rank), result in diagnosis.results.items() if name in result.figures
        }
        if values:
            worst = (max if kind.is_less_better else min)(values, key=lambda rank, of=values: of[rank])  # type: ignore[misc]
            cells.append(
                (kind.label, kind.show(median(values.values())), kind.show(values[worst]), diagnosis.label(worst))
            )
    print_lines([f"{outcome['num_ranks']} ranks tested in {_time(outcome['elapsed_s'])}", ""])
    if cells:
        print_table(("figure", "median", "worst", "of"), cells)
    print_lines([f"note: {note}" for note in notes_of(record)])


def _time(seconds: float) -> str:
    return format_duration(seconds * PS_PER_S)
