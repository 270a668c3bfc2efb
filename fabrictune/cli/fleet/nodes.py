"""The nodes that a command of `fleet` asks, as its arguments and options name them, and the asking."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.output import print_json, print_lines, print_table
from fabrictune.cli.framework.progress import progress_bar
from fabrictune.foundation.errors import InputError, Mistake

if TYPE_CHECKING:
    from fabrictune.fleet.collect.collection import Collection
    from fabrictune.fleet.collect.questions import Questions
    from fabrictune.fleet.hosts.host import FleetHost
    from fabrictune.fleet.transport.asking import Transport

TRANSPORTS = ("ssh", "slurm", "local")
USER_CONFIG = Path("~/.ssh/config")


@dataclass(frozen=True, kw_only=True)
class NodeOptions:
    """Which nodes are asked, and how."""

    arguments: tuple[str, ...]
    from_files: Path | None
    transport: str
    ssh_config: Path | None
    known_hosts: Path | None
    identity: Path | None
    parallel: int
    timeout_s: float
    connect_timeout_s: float
    dry_run: bool
    print_script: bool


_FROM_FILES = click.option(
    "--from-files",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Read what `fleet collect` or its script wrote, or config_db.json files of switches; no node is asked.",
)
_PRINT_SCRIPT = click.option("--print-script", is_flag=True, help="Print the script, for nodes that are read by hand.")
_OPTIONS = (
    click.argument("arguments", metavar="[HOSTS]...", nargs=-1),
    _FROM_FILES,
    click.option(
        "--via",
        "transport",
        type=click.Choice(TRANSPORTS),
        default="ssh",
        show_default=True,
        help="How nodes are reached: SSH, srun, or this machine alone.",
    ),
    click.option(
        "--ssh-config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Users, ports and jump hosts by host.  [default: ~/.ssh/config]",
    ),
    click.option(
        "--known-hosts",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Host keys that are accepted, and no others.  [default: ~/.ssh/known_hosts]",
    ),
    click.option("--identity", type=click.Path(path_type=Path), metavar="FILE", help="Private key to log in with."),
    click.option(
        "--parallel", type=click.IntRange(1, 256), default=32, show_default=True, help="Nodes asked at a time."
    ),
    click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(min=0.1),
        default=60.0,
        show_default=True,
        help="Seconds for what runs on a node.",
    ),
    click.option(
        "--connect-timeout",
        "connect_timeout_s",
        type=click.FloatRange(min=0.1),
        default=5.0,
        show_default=True,
        help="Seconds to connect; the SSH handshake and the login each may take twice that.",
    ),
    click.option(
        "--dry-run", is_flag=True, help="Print every remote command and file that would be read; ask no node."
    ),
    _PRINT_SCRIPT,
)


def node_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say which nodes it asks; it gets them as `nodes`."""
    return _with_nodes(command, _OPTIONS)


def reach_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of nodes that are always asked: no files in their place, and no script by hand."""
    return _with_nodes(command, [option for option in _OPTIONS if option not in (_FROM_FILES, _PRINT_SCRIPT)])


def _with_nodes(command: Callable[..., Any], options: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    @functools.wraps(command)
    def with_nodes(*args: Any, **values: Any) -> Any:
        absent: dict[str, Any] = {"from_files": None, "print_script": False}
        names = NodeOptions.__dataclass_fields__
        nodes = NodeOptions(**{name: values.pop(name) if name in values else absent[name] for name in names})
        return command(*args, nodes=nodes, **values)

    for option in reversed(options):
        with_nodes = option(with_nodes)
    return with_nodes


def show_plan(nodes: NodeOptions, questions: "Questions", *, as_json: bool) -> bool:
    """Print the script, or what would be done on each node, where that is asked for; returns whether it was."""
    from fabrictune.fleet.collect.script import describe_reads, node_script

    if nodes.print_script:
        print_lines(node_script(questions).rstrip("\n").split("\n"))
        return True
    if not nodes.dry_run:
        return False
    hosts, transport = hosts_and_way(nodes)
    commands = [(host.name, transport.describe(host)) for host in hosts]
    reads = list(describe_reads(questions))
    if as_json:
        print_json({"commands": [{"node": name, "command": text} for name, text in commands], "reads": reads})
        return True
    print_lines(["one command a node, and nothing is changed there:"])
    print_lines(f"  {text}" for _, text in commands)
    print_lines(["the script (--print-script shows it) does this on each node, where it is there:"])
    print_lines(f"  {text}" for text in reads)
    return True


def collect_nodes(nodes: NodeOptions, questions: "Questions", *, is_quiet: bool) -> "Collection":
    """Return what the nodes answered, or what is in files; raises InputError, UnavailableError."""
    from fabrictune.fleet.collect.collection import Collector, read_collection
    from fabrictune.fleet.collect.script import node_script
    from fabrictune.fleet.transport.asking import ask_all

    if nodes.from_files:
        if nodes.arguments:
            raise click.UsageError("--from-files goes without HOSTS")
        return read_collection(nodes.from_files)
    hosts, transport = hosts_and_way(nodes)
    collector = Collector()
    with progress_bar("asking", is_quiet=is_quiet) as progress:
        is_stopped = ask_all(
            hosts,
            transport,
            node_script(questions),
            parallel=nodes.parallel,
            on_answer=collector.add,
            progress=progress,
        )
    return collector.finish([host.name for host in hosts], is_partial=is_stopped)


def print_states(collection: "Collection") -> None:
    """Print how the nodes answered: those that were not read by name, with what to do."""
    num_read, how = len(collection.readings), [reading.how for reading in collection.readings]
    print_lines([f"{num_read:,} of {len(collection.states):,} nodes read"])
    if by_shell := how.count("sh"):
        print_lines([f"without python3, read by sh: {by_shell} (no time limit for its commands without `timeout`)"])
    cut = [reading.name for reading in collection.readings if reading.is_cut]
    if cut:
        print_lines([f"cut off, more was there than may be: {', '.join(cut[:10])}"])
    if missing := collection.missing:
        print_table(("not read", "state", "detail"), [(one.name, one.state.value, one.detail) for one in missing])
        print_lines(dict.fromkeys(f"next: {one.state.value}: {one.next_step}" for one in missing))


def states_json(collection: "Collection") -> dict[str, Any]:
    """Return how the nodes answered as JSON values."""
    return {
        "is_partial": collection.is_partial,
        "nodes": [
            {"name": one.name, "state": one.state.value, "detail": one.detail, "wall_s": one.wall_s}
            for one in collection.states
        ],
    }


def hosts_and_way(nodes: NodeOptions) -> "tuple[Sequence[FleetHost], Transport]":
    """Return the hosts that are meant, and the way to them; raises InputError, UnavailableError."""
    from fabrictune.fleet.hosts.host import FleetHost
    from fabrictune.fleet.hosts.inventory import read_hosts
    from fabrictune.fleet.hosts.ssh_config import read_ssh_settings
    from fabrictune.fleet.transport.answer import Limits
    from fabrictune.fleet.transport.processes import local_transport, slurm_transport

    connect_s = nodes.connect_timeout_s
    limits = Limits(connect_s=connect_s, handshake_s=2 * connect_s, login_s=2 * connect_s, run_s=nodes.timeout_s)
    if nodes.transport == "local":
        return [FleetHost(name=nodes.arguments[0] if nodes.arguments else "localhost", address="localhost")], (
            local_transport(limits)
        )
    if not nodes.arguments:
        step = "name an inventory or hosts, or --via local, or --from-files DIR"
        raise InputError(Mistake(where="fabrictune fleet", found="no HOSTS", next_step=step))
    if nodes.transport == "slurm":
        return read_hosts(nodes.arguments), slurm_transport(limits)
    from fabrictune.fleet.transport.ssh import SshTransport

    config = nodes.ssh_config or (USER_CONFIG.expanduser() if USER_CONFIG.expanduser().is_file() else None)
    hosts = read_hosts(nodes.arguments, ssh_config=config)
    settings = read_ssh_settings(config) if config else None
    way = SshTransport(limits, known_hosts=nodes.known_hosts, identity=nodes.identity, settings=settings)
    return hosts, way
