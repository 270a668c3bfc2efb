"""Options of where the nodes of an operated job come from."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from fabrictune.trainer_probe.operation.backends.choice import NodeSource

Command = TypeVar("Command", bound=Callable[..., Any])
_OPTIONS = (
    click.option(
        "--backend",
        type=click.Choice(["local", "torchelastic", "slurm", "kubernetes"]),
        default="local",
        show_default=True,
        help="Where nodes come from: processes of this machine, agents of torchrun, Slurm jobs, or pods.",
    ),
    click.option(
        "--sbatch", "sbatch_options", multiple=True, metavar="OPTION", help="Option of sbatch: --sbatch=--gres=gpu:8."
    ),
    click.option(
        "--pod", type=click.Path(path_type=Path), metavar="FILE", help="YAML of a node's pod: metadata and spec."
    ),
    click.option("--namespace", default="default", show_default=True, help="Namespace of the pods."),
    click.option("--context", help="Context of the kubeconfig.  [default: its current one, or the pod's account]"),
    click.option("--node-python", "python", default=sys.executable, help="Python of the nodes.  [default: this one]"),
    click.option(
        "--node-key", "key", default="", metavar="PATH", help="The job's key as nodes see it.  [default: RUN/key]"
    ),
    click.option("--node-folder", "folder", default="", metavar="PATH", help="Folder of nodes.  [default: RUN/nodes]"),
)
_NAMES = ("backend", "sbatch_options", "pod", "namespace", "context", "python", "key", "folder")


def node_options(command: Command) -> Command:
    """Add the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def split_node_options(values: Mapping[str, Any]) -> "tuple[NodeSource, dict[str, Any]]":
    """Return where nodes come from, and the values that are not of these options; raises InputError."""
    from fabrictune.trainer_probe.operation.backends.choice import NodeSource

    own = {name: values[name] for name in _NAMES}
    others = {name: value for name, value in values.items() if name not in _NAMES}
    own["pod"] = {} if own["pod"] is None else _read_mapping(own["pod"])
    return NodeSource(**own), others


def read_tor_sets(path: Path | None) -> Mapping[str, str]:
    """Return the ToR set of each host of a file; raises InputError."""
    return {} if path is None else {str(host): str(tor_set) for host, tor_set in _read_mapping(path).items()}


def _read_mapping(path: Path) -> Mapping[str, Any]:
    from fabrictune.foundation.documents import load_yaml
    from fabrictune.foundation.errors import InputError, Mistake

    tree = load_yaml(path).tree
    if not isinstance(tree, dict):
        raise InputError(Mistake(where=str(path), found="no mapping", allowed="names and values"))
    return tree
