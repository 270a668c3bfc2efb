"""`fabrictune coll model --explain`: what NCCL chooses for each size, why, and what it takes."""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fabrictune.cli.coll.options import gigabytes_per_s
from fabrictune.cli.framework.options import hardware_option
from fabrictune.cli.framework.output import print_json, print_lines, print_table

if TYPE_CHECKING:
    from fabrictune.collectives.measurement.spec import BenchSpec
    from fabrictune.collectives.nccl.tuning.model import Model
    from fabrictune.collectives.nccl.tuning.prediction import Prediction
    from fabrictune.collectives.nccl.tuning.system import System
    from fabrictune.hardware.profile import HardwareProfile
    from fabrictune.validate.collective_model import CollectiveModel

SHOWN_CANDIDATES = 3
MAX_WIDTH = 160
Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--explain", is_flag=True, help="Say what NCCL chooses for each size, and what that takes."),
    click.option(
        "--hosts",
        "num_hosts",
        type=click.IntRange(1, 100_000),
        metavar="N",
        help="Explain N hosts of the hardware profile; no SCENARIO is given then.",
    ),
    hardware_option(),
    click.option(
        "--nccl",
        "version",
        type=click.Choice(["2.27", "2.28"]),
        default="2.28",
        show_default=True,
        help="NCCL whose tuning model chooses: 2.23 to 2.27, or 2.28 to 2.30.",
    ),
    click.option(
        "--env",
        "environment",
        multiple=True,
        metavar="NCCL_NAME=VALUE",
        help="Setting of NCCL, as NCCL_ALGO=Ring; repeatable.",
    ),
    click.option(
        "--tuner",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="CSV of NCCL's example tuner plug-in, whose first matching row decides.",
    ),
    click.option(
        "--graphs",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Graphs of a host as NCCL_GRAPH_DUMP_FILE has them, in place of those of the hardware profile.",
    ),
)


def explain_options(command: Command) -> Command:
    """Add the options of `--explain`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the options of `--explain` ask."""

    version: str
    environment: Sequence[str]
    tuner: Path | None
    graphs: Path | None
    as_json: bool


def explain_hosts(spec: "BenchSpec", profile: "HardwareProfile", num_hosts: int, asked: Asked) -> int:
    """Print the choices of hosts of a profile."""
    from fabrictune.collectives.nccl.tuning.profiles import system_of

    return _explain(spec, profile, system_of(profile, num_hosts), asked)


def explain_job(spec: "BenchSpec", profile: "HardwareProfile", model: "CollectiveModel", asked: Asked) -> int:
    """Print the choices of a scenario's job: its ranks a host and its NICs, and the profile for all else."""
    from fabrictune.collectives.nccl.tuning.profiles import system_of

    shape = model.group_shape
    system = system_of(profile, shape.num_members // shape.local_size, gpus_per_host=shape.local_size)
    system = replace(system, nics_per_host=shape.local_size, nic_rate_bps=model.line_rate_bps)
    return _explain(spec, profile, system, asked)


def _explain(spec: "BenchSpec", profile: "HardwareProfile", system: "System", asked: Asked) -> int:
    from fabrictune.collectives.measurement.spec import BENCHED
    from fabrictune.collectives.nccl.tuning.graphs import graphs_of_file
    from fabrictune.collectives.nccl.tuning.prediction import ASSUMED, nccl_model, predict
    from fabrictune.collectives.nccl.tuning.profiles import notes_of_profile
    from fabrictune.collectives.nccl.tuning.settings import read_tuner

    rules = read_tuner(asked.tuner) if asked.tuner else ()
    graphs = graphs_of_file(asked.graphs, system) if asked.graphs else None
    environment = _settings(asked.environment)
    model = nccl_model(system, version=asked.version, environment=environment, rules=rules, graphs=graphs)
    predictions = [predict(model, BENCHED[name], size) for name in spec.names for size in spec.sizes()]
    notes = (*ASSUMED, *notes_of_profile(profile))
    if asked.as_json:
        _print_values(model, predictions, notes)
    else:
        _print_texts(model, profile, predictions, notes)
    return 0


def _settings(texts: Sequence[str]) -> Mapping[str, str]:
    """Return the settings of `--env`; raises InputError for a text without a name and a value."""
    from fabrictune.foundation.errors import InputError, Mistake

    wrong = [text for text in texts if "=" not in text]
    if wrong:
        raise InputError(
            *(Mistake(where="coll model: --env", found=repr(text), allowed="NCCL_NAME=VALUE") for text in wrong)
        )
    return dict(text.split("=", 1) for text in texts)


def _print_values(model: "Model", predictions: Sequence["Prediction"], notes: Sequence[str]) -> None:
    from fabrictune.collectives.nccl.tuning.explanation import facts_of, row_of, ruled_out

    operations = dict.fromkeys(one.operation for one in predictions)
    print_json(
        {
            "system": facts_of(model),
            "notes": list(notes),
            "ruled_out": {operation.name.lower(): ruled_out(model, operation) for operation in operations},
            "predictions": [row_of(one) for one in predictions],
        }
    )


def _print_texts(
    model: "Model", profile: "HardwareProfile", predictions: Sequence["Prediction"], notes: Sequence[str]
) -> None:
    from fabrictune.collectives.nccl.tuning.explanation import ruled_out, runs_of

    print_lines([_headline(model, profile), _graph_line(model), ""])
    operations = list(dict.fromkeys(one.operation for one in predictions))
    if len(operations) == 1:
        headings = (
            "size (B)",
            "NCCL takes",
            "channels",
            "chunk",
            "expected",
            "90 %",
            "busbw",
            "bound by",
            "NCCL's times (us)",
        )
        print_table(headings, [_cells(one) for one in predictions])
        reasons = ruled_out(model, operations[0])
        lines = [
            textwrap.shorten(f"ruled out, {reason}: {', '.join(names)}", MAX_WIDTH) for reason, names in reasons.items()
        ]
    else:
        of_runs = ("operation", "sizes (B)", "NCCL takes", "channels", "expected", "busbw", "why at the smallest")
        print_table(of_runs, [_run_cells(first, last) for first, last in runs_of(predictions)])
        lines = []
    print_lines(["", *lines, *(textwrap.shorten(f"assumed: {note}", MAX_WIDTH, placeholder=" ...") for note in notes)])


def _headline(model: "Model", profile: "HardwareProfile") -> str:
    from fabrictune.foundation.units import format_rate
    from fabrictune.foundation.wording import count

    system = model.system
    network = (
        f", {count(system.nics_per_host, 'NIC')} of {format_rate(system.nic_rate_bps)} over {system.transport.name}"
    )
    return (
        f"{count(system.num_hosts, 'host')} of {count(system.gpus_per_host, 'GPU')}, profile {profile.name}, "
        f"NCCL {model.constants.version}{network if system.num_hosts > 1 else ''}"
    )


def _graph_line(model: "Model") -> str:
    from fabrictune.collectives.nccl.tuning.explanation import facts_of

    graphs = model.graphs
    named = (("ring", graphs.ring), ("tree", graphs.tree), ("NVLS", graphs.nvls))
    texts = [
        f"{name} {graph.num_channels} x {graph.inside:g}/{graph.between:g} GB/s"
        for name, graph in named
        if graph is not None
    ]
    facts = facts_of(model)
    queue_pairs = f", {facts['num_queue_pairs_per_nic']} queue pairs a NIC" if model.system.num_hosts > 1 else ""
    return f"graphs (inside/between hosts): {', '.join(texts)}; {model.num_channels} channels{queue_pairs}"


def _cells(one: "Prediction") -> tuple[str, ...]:
    from fabrictune.foundation.units import format_bytes, format_duration

    low, high = one.interval_ps
    choice = one.choice
    compared = choice.compared[:SHOWN_CANDIDATES] if choice else ()
    times = ", ".join(f"{found.candidate.name} {found.time_us:.0f}" for found in compared)
    return (
        str(one.size_bytes),
        f"{one.name} (tuner)" if choice and choice.is_forced else one.name,
        str(one.num_channels),
        format_bytes(choice.shape.chunk_bytes) if choice else "-",
        format_duration(one.time_ps),
        f"{format_duration(low)} to {format_duration(high)}",
        gigabytes_per_s(one.bus_bandwidth_bps),
        one.duration.bottleneck if one.duration.transfer_us > one.duration.latency_us else "latency",
        times or "-",
    )


def _run_cells(first: "Prediction", last: "Prediction") -> tuple[str, ...]:
    from fabrictune.foundation.units import format_duration

    return (
        first.operation.name.lower() if first.operation.name != "SEND" else "send_recv",
        f"{first.size_bytes} to {last.size_bytes}",
        first.name,
        f"{first.num_channels} to {last.num_channels}",
        f"{format_duration(first.time_ps)} to {format_duration(last.time_ps)}",
        f"{gigabytes_per_s(first.bus_bandwidth_bps)} to {gigabytes_per_s(last.bus_bandwidth_bps)}",
        first.choice.reason if first.choice else "pairs have no algorithm",
    )
