"""`fabrictune train operate`: train a recipe for weeks, with recovery from faults."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.options import INTERRUPTED, json_option, quiet_option
from fabrictune.cli.framework.output import print_json, print_lines
from fabrictune.cli.train.node_options import node_options, read_tor_sets, split_node_options
from fabrictune.cli.train.recipes import read_recipe, recipe_argument, set_option

if TYPE_CHECKING:
    from fabrictune.trainer_probe.operation.events import Event

STOPPED = 1


@click.command()
@recipe_argument
@set_option
@click.option(
    "--run", type=click.Path(path_type=Path), required=True, help="Folder of the job; the same one goes on with it."
)
@click.option(
    "--nodes", "num_nodes", type=click.IntRange(min=1), default=1, show_default=True, help="Nodes with ranks."
)
@click.option("--slots", "num_slots", type=click.IntRange(min=1), required=True, help="Ranks of a node.")
@click.option(
    "--spares", "num_spares", type=click.IntRange(min=0), default=0, show_default=True, help="Nodes in reserve."
)
@click.option("--checkpoint", "urls", multiple=True, metavar="URL", help="Folder or URL for checkpoints; repeatable.")
@click.option(
    "--save-every", type=click.IntRange(min=1), default=100, show_default=True, help="Steps between checkpoints."
)
@click.option(
    "--memory-every",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Steps between checkpoints in the nodes' memory; 0 for none.",
)
@click.option("--keep", type=click.IntRange(min=1), default=3, show_default=True, help="Checkpoints that are kept.")
@click.option(
    "--store", default="", metavar="URL", help="Redis in which ranks meet.  [default: a store of the first node]"
)
@click.option(
    "--backend-transport",
    "transport",
    type=click.Choice(["gloo", "ordered"]),
    default="gloo",
    show_default=True,
    help="What ranks communicate over; ordered is gloo in NCCL's order.",
)
@node_options
@click.option("--interface", default="lo", show_default=True, help="Network interface of the nodes.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address that the driver listens on.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Its port.  [default: a free one]")
@click.option(
    "--tor-sets",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="YAML of hosts and their ToR sets, host: set; copies in memory go to a node on another set.",
)
@click.option(
    "--inside", default="", metavar="COMMAND", help="Command that runs a node's, as in `ip netns exec {node}`."
)
@click.option(
    "--orphan-limit",
    "orphan_limit_s",
    type=click.FloatRange(min=1),
    default=600.0,
    show_default=True,
    help="Seconds without a driver after which nodes end.",
)
@quiet_option
@json_option
def operate(
    recipe_name: str,
    settings: tuple[str, ...],
    run: Path,
    urls: tuple[str, ...],
    save_every: int,
    memory_every: int,
    keep: int,
    inside: str,
    tor_sets: Path | None,
    quiet: bool,
    as_json: bool,
    **others: Any,
) -> int:
    """Train RECIPE on several nodes, and go on after faults: from a checkpoint, on spares, without a hand.

    Ctrl-C ends the job after a step, with a checkpoint; a second one ends it at once. Started again with the same --run
    it goes on, also after a kill of this process, which ranks do not notice. Needs torch.

    \b
    Example:
      fabrictune train operate tiny --run job --nodes 2 --slots 4 --spares 1 --checkpoint saves --save-every 5
      fabrictune train status job --follow
      fabrictune train operate llama-7b --run job --nodes 16 --slots 8 --spares 1 --checkpoint s3://bucket/job \
        --host 10.0.0.1 --interface eth0 --backend slurm --sbatch=--partition=gpu --sbatch=--gres=gpu:8
    """
    import shlex

    from fabrictune.foundation.extras import require_extra
    from fabrictune.scenario.assignments import parse_setting
    from fabrictune.trainer_probe.operation.driver_state import Limits
    from fabrictune.trainer_probe.operation.operating import Operation
    from fabrictune.trainer_probe.operation.operating import operate as operate_job
    from fabrictune.trainer_probe.operation.tasks import SavePlan
    from fabrictune.trainer_probe.recipes.files import find_recipe

    require_extra("torch", extra="train", where="trainer")
    recipe = read_recipe(recipe_name, settings)
    nodes, others = split_node_options(others)
    saves = SavePlan(urls=tuple(map(_absolute, urls)), every=save_every, memory_every=memory_every, keep=keep)
    operation = Operation(
        recipe=recipe,
        recipe_file=str(find_recipe(recipe_name).absolute()),
        changes=dict(map(parse_setting, settings)),
        saves=saves,
        inside=tuple(shlex.split(inside)),
        nodes=nodes,
        tor_sets=read_tor_sets(tor_sets),
        limits=Limits.for_this_machine(),
        **others,
    )

    def on_event(event: "Event") -> None:
        if not (quiet or as_json):
            print_lines([describe(event)])

    finish = operate_job(operation, run, on_event=on_event)
    if as_json:
        print_json({"run": str(run), "outcome": finish.outcome, "cause": finish.cause, "step": finish.step})
    else:
        print_lines([f"{finish.outcome} at step {finish.step}" + (f": {finish.cause}" if finish.cause else "")])
    return {"finished": 0, "interrupted": INTERRUPTED}.get(finish.outcome, STOPPED)


def describe(event: "Event") -> str:
    """Return an event as a line."""
    values = {name: value for name, value in event.values.items() if name in _SHOWN and value not in ("", [], None)}
    text = "  ".join(f"{name} {_short(value)}" for name, value in values.items())
    return f"{event.elapsed_s:10.2f} s  {event.kind:<18}  {text}".rstrip()


_SHOWN = (
    *("generation", "node", "nodes", "step", "loss", "cause", "entity", "evidence", "action", "reason", "outcome"),
    *("exit_code", "source", "tier", "restore_s", "elapsed_s", "recipe", "num_ranks"),
)


def _short(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)


def _absolute(url: str) -> str:
    """Return a folder's absolute path, which all nodes share; other URLs as they are."""
    return url if "://" in url else str(Path(url).absolute())
