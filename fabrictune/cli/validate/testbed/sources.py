"""The fabric that a testbed is made of, as arguments and options name it."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.options import is_code_trusted, trust_code_option

if TYPE_CHECKING:
    from fabrictune.topology.fabric import Fabric

HOSTS_PER_TOR_SET = 4
MAX_SCENARIO_BYTES = 2**20
DEFAULT_FOLDER = Path("runs/testbed")

name_option = click.option(
    "--name", default="testbed", show_default=True, help="Its name: letters and digits; two testbeds have two."
)
_OPTIONS = (
    click.argument("words", metavar="[FABRIC]...", nargs=-1),
    name_option,
    click.option(
        "--hosts",
        "num_hosts",
        type=click.IntRange(2, 64),
        default=8,
        show_default=True,
        help="Hosts of a leaf-spine fabric, four a leaf, where no FABRIC is named.",
    ),
    click.option(
        "--rails", "num_rails", type=click.IntRange(1, 4), default=1, show_default=True, help="NICs of each of them."
    ),
    click.option(
        "--rate", default="100 Mbps", show_default=True, help="Rate of the fastest host link; others in proportion."
    ),
    click.option("--no-ssh", is_flag=True, help="Without an SSH server on each host."),
    click.option(
        "--out",
        type=click.Path(path_type=Path),
        metavar="DIR",
        default=DEFAULT_FOLDER,
        show_default=True,
        help="Folder for ssh_config, keys, hosts.txt and fabric.json.",
    ),
    trust_code_option,
)


def fabric_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of a testbed; it gets the planned fabric as `fabric`."""

    @functools.wraps(command)
    def with_fabric(
        *args: Any, words: tuple[str, ...], num_hosts: int, num_rails: int, rate: str, **values: Any
    ) -> Any:
        from fabrictune.foundation.units import parse_link_rate_bps
        from fabrictune.testbed.plan import plan_testbed

        typed = click.get_current_context().find_root().obj
        num_wrapped = len(typed) - typed.index("--") - 1 if "--" in typed else 0
        files = [Path(word) for word in words[: len(words) - num_wrapped]]
        fabric = _fabric_in(files) if files else _default_fabric(num_hosts, num_rails)
        planned = plan_testbed(fabric, rate_bps=parse_link_rate_bps(rate, where="--rate"))
        return command(*args, fabric=planned, **values)

    for option in reversed(_OPTIONS):
        with_fabric = option(with_fabric)
    return with_fabric


def _default_fabric(num_hosts: int, num_rails: int) -> "Fabric":
    """Return a leaf for four hosts on each rail, with as many uplinks as hosts, each to its own spine."""
    from fabrictune.topology.builders.clos import ClosSpec, build_clos

    per_set = HOSTS_PER_TOR_SET if num_hosts % HOSTS_PER_TOR_SET == 0 else num_hosts
    rate_bps = 100_000_000_000
    spec = ClosSpec(
        num_hosts=num_hosts,
        hosts_per_tor_set=per_set,
        nics_per_host=num_rails,
        tiers=2,
        uplinks_per_tor=per_set,
        downlink_split=1,
        nic_rate_bps=rate_bps,
        uplink_rate_bps=rate_bps,
    )
    return build_clos(spec)


def _fabric_in(paths: list[Path]) -> "Fabric":
    """Return the fabric of topology files or of a scenario; raises InputError."""
    from fabrictune.api.fabrics import load_fabric
    from fabrictune.foundation.documents import load_yaml
    from fabrictune.scenario.composition import compose_fabric
    from fabrictune.scenario.files import load_scenario

    if len(paths) == 1 and paths[0].suffix in (".yaml", ".yml") and paths[0].is_file():
        tree = load_yaml(paths[0], max_bytes=MAX_SCENARIO_BYTES).tree
        if isinstance(tree, dict) and {"fabric", "traffic"} <= tree.keys():
            return compose_fabric(load_scenario(paths[0], trust_code=is_code_trusted()))
    return load_fabric(*paths, trust_code=is_code_trusted())
