"""`fabrictune validate cluster`: the user's own nodes, stage by stage, against the model of their fabric."""

import os
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.fleet.nodes import NodeOptions, hosts_and_way, reach_options
from fabrictune.cli.framework.options import (
    COULD_NOT_COLLECT,
    INTERRUPTED,
    fail_on_option,
    json_option,
    quiet_option,
    read_bytes,
)
from fabrictune.cli.framework.progress import progress_bar
from fabrictune.cli.framework.records import print_record, with_command
from fabrictune.cli.framework.rules import site_rules
from fabrictune.cli.validate.cluster.printing import document, print_plan, print_stage, print_summary

if TYPE_CHECKING:
    from fabrictune.foundation.progress import Progress
    from fabrictune.validate.cluster.crew import Crew
    from fabrictune.validate.cluster.results import StageResult
    from fabrictune.validate.cluster.validation import ValidationPlan

LIMITS_FOLDER = "limits"
LIMITS = ("stage_s",)  # settings that may differ where a validation is gone on with


@click.command()
@reach_options
@click.option(
    "--fabric",
    "fabric_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The planned fabric, of any form that `topo show` reads: where limits come from.",
)
@click.option(
    "--python", default="python3", show_default=True, metavar="PATH", help="Python with fabrictune, on the nodes."
)
@click.option(
    "--interface",
    "interfaces",
    multiple=True,
    metavar="PATTERN",
    help="Interfaces that are rails, without --fabric; repeatable.",
)
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of an earlier validation of the same cluster, to compare with.",
)
@click.option("--only", multiple=True, metavar="STAGE", help="Run this stage alone, again if it is done; repeatable.")
@click.option(
    "--rounds",
    "num_rounds",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Rounds of concurrent pairs; 0 has every pair of nodes once.",
)
@click.option(
    "--paths",
    "num_paths",
    type=click.IntRange(min=0),
    default=4,
    show_default=True,
    help="Source ports, and so paths, from which each node sends alone across the fabric.",
)
@click.option(
    "--flow-time",
    "flow_s",
    type=click.FloatRange(0.2, 600),
    default=1.0,
    show_default=True,
    help="Seconds that a flow is measured for.",
)
@click.option(
    "--backend",
    type=click.Choice(["auto", "gloo", "nccl"]),
    default="auto",
    show_default=True,
    help="Communication backend; auto is nccl where every node has a GPU.",
)
@click.option(
    "--ranks-per-node",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Ranks on each node; 0 is one over gloo, one a GPU over nccl.",
)
@click.option(
    "--max-bytes",
    callback=read_bytes,
    metavar="SIZE",
    default="4 MiB",
    show_default=True,
    help="Largest size of a collective.",
)
@click.option(
    "--stage-timeout",
    "stage_s",
    type=click.FloatRange(min=1),
    default=600.0,
    show_default=True,
    help="Seconds for the ranks of a stage.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    default=Path("runs/cluster"),
    show_default=True,
    help="Folder of the validation; one of the same nodes is gone on with.",
)
@fail_on_option
@quiet_option
@json_option
def cluster(
    nodes: NodeOptions,
    fabric_file: Path | None,
    python: str,
    interfaces: tuple[str, ...],
    baseline: Path | None,
    only: tuple[str, ...],
    out: Path,
    fail_on: str,
    quiet: bool,
    as_json: bool,
    **settings: Any,
) -> int:
    """Validate a cluster: software, settings, cabling, every rail's flows, timeouts, collectives and a training.

    HOSTS are inventories or names, as of `fleet collect`; the nodes need this package under --python. Without HOSTS,
    under torchrun or srun, each rank is this command. Limits come from the model of the planned fabric: line rate less
    headers, ECMP collisions that its hash may have, what hosts were measured to carry. A stage that lacks what it
    needs is skipped and counted. Each result is kept as its stage ends; the same command goes on where it was stopped.
    The exit code is 0 if all is good, 1 for findings at or above --fail-on, 3 if a stage is incomplete.

    \b
    Example:
      fabrictune validate cluster hosts.txt --fabric planned.json --python /opt/venv/bin/python
      fabrictune validate cluster hosts.txt --fabric planned.json --only matrix
      salloc --nodelist='gpu[01-16]' fabrictune validate cluster 'gpu[01-16]' --via slurm --interface 'eth[1-8]'
      torchrun --nnodes 16 --nproc-per-node 1 ... -m fabrictune validate cluster --fabric planned.json
    """
    from fabrictune.validate.cluster.baseline import check_baseline
    from fabrictune.validate.cluster.folder import RECORD, open_folder, read_baseline
    from fabrictune.validate.cluster.record import cluster_record
    from fabrictune.validate.cluster.validation import validate_cluster

    started = time.perf_counter()
    _check_stages(only)
    earlier = read_baseline(baseline) if baseline else None
    plan, given = _plan(fabric_file, interfaces, only, settings)
    if nodes.dry_run:
        print_plan(nodes, python)
        return 0
    is_silent = quiet or as_json
    with _crew(nodes, python) as crew, progress_bar("validating", is_quiet=is_silent) as bar:
        if crew is None:  # a launcher's rank, which has served
            return 0
        stages = open_folder(out, {"nodes": list(crew.names), **given})

        def progress(name: str) -> "Progress":
            return lambda fraction, note="", /: bar(fraction, f"{name}: {note}") if bar else None

        def on_result(result: "StageResult") -> None:
            if not is_silent:
                print_stage(result)

        validation = validate_cluster(plan, crew, out, stages, on_result=on_result, progress=progress)
    compared = [check_baseline(validation.results, earlier, str(baseline), site_rules())] if earlier else []
    record = with_command(cluster_record(validation, given, compared, started=started))
    directory = record.write(out / RECORD)
    page = _write_page(directory, out)
    code = print_record(
        record,
        directory,
        lambda: document(validation),
        lambda: print_summary(validation),
        places=[f"page: {page}", f"limits for other tools: {out / LIMITS_FOLDER}"],
        as_json=as_json,
        quiet=quiet,
        fail_on=fail_on,
    )
    if validation.is_stopped:
        return INTERRUPTED
    return code if validation.is_complete else COULD_NOT_COLLECT


def _plan(
    fabric_file: Path | None, interfaces: Sequence[str], only: Sequence[str], settings: Mapping[str, Any]
) -> "tuple[ValidationPlan, dict[str, Any]]":
    """Return what is validated, and the part of it that a folder is of, as JSON values."""
    from fabrictune.fleet.audit.rule_files import our_rules
    from fabrictune.topology.importers import import_fabric
    from fabrictune.validate.cluster.site import ClusterSettings
    from fabrictune.validate.cluster.validation import ValidationPlan

    chosen = ClusterSettings(**settings)
    plan = ValidationPlan(
        fabric=import_fabric([fabric_file]) if fabric_file else None,
        interfaces=interfaces,
        settings=chosen,
        rules=site_rules(),
        audit_rules=our_rules(),
        only=frozenset(only),
    )
    given = {
        "fabric": str(fabric_file) if fabric_file else "",
        "interfaces": list(interfaces),
        "settings": {name: value for name, value in asdict(chosen).items() if name not in LIMITS},
    }
    return plan, given


def _check_stages(only: Sequence[str]) -> None:
    from fabrictune.foundation.errors import InputError, require_one_of
    from fabrictune.validate.cluster.validation import STAGES

    for name in only:
        require_one_of(name, tuple(STAGES), where="--only", what="stage", error=InputError)


@contextmanager
def _crew(nodes: NodeOptions, python: str) -> "Iterator[Crew | None]":
    """Give the nodes of HOSTS, or those that a launcher started; None on its ranks that have served rank 0."""
    from fabrictune.collectives.startup.launchers import launched_by

    launched = None if nodes.arguments else launched_by(os.environ)
    if launched is None:
        yield _named_crew(nodes, python)
        return
    from fabrictune.foundation.extras import require_extra
    from fabrictune.validate.cluster.launched import launched_crew

    require_extra("torch", extra="train", where="validate cluster under a launcher")
    with launched_crew(launched) as crew:
        yield crew


def _named_crew(nodes: NodeOptions, python: str) -> "Crew":
    from fabrictune.fleet.collect.collection import Collection, Collector
    from fabrictune.fleet.collect.script import node_script
    from fabrictune.fleet.transport.asking import Program, ask_all
    from fabrictune.foundation.errors import InputError, Mistake
    from fabrictune.validate.cluster.crew import Crew
    from fabrictune.validate.cluster.nodes.node_process import QUESTIONS

    hosts, transport = hosts_and_way(nodes)
    if nodes.transport == "slurm" and not os.environ.get("SLURM_JOB_ID"):
        raise InputError(
            Mistake(
                where="--via slurm",
                found="no allocation of Slurm",
                allowed="one with all nodes: a program stays on each of them while others are started beside it",
                next_step=f"salloc --nodelist={shlex.quote(','.join(nodes.arguments))} fabrictune validate cluster ...",
            )
        )
    of_name = {host.name: host for host in hosts}

    def start(name: str, words: Sequence[str]) -> Program:
        return transport.start(of_name[name], words)

    def collect(questions: str) -> Collection:
        collector = Collector()
        script = node_script(QUESTIONS[questions])
        if ask_all(hosts, transport, script, parallel=nodes.parallel, on_answer=collector.add):
            raise KeyboardInterrupt
        return collector.finish(list(of_name), is_partial=False)

    return Crew(list(of_name), start, collect=collect, python=python, parallel=nodes.parallel, start_s=nodes.timeout_s)


def _write_page(record: Path, out: Path) -> Path:
    from fabrictune.reports.page import write_page

    return write_page([record], out / "page.html")
