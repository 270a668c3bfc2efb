"""`fabrictune law`: congestion-control algorithms (laws), their parameters, and exchange with a NIC."""

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from fabrictune.cc.nic_parameters import NicFiles
from fabrictune.cli.framework.groups import CommandGroup
from fabrictune.cli.framework.options import is_code_trusted, json_option, scenario_argument, trust_code_option
from fabrictune.cli.framework.output import print_json, print_lines, print_table
from fabrictune.foundation.errors import FabrictuneWarning, LawError, Mistake

law = CommandGroup(name="law", help="List congestion-control algorithms (laws), and exchange parameters with a NIC.")


@law.command("list")
@json_option
def list_laws(as_json: bool) -> None:
    """List the congestion-control algorithms (laws) that a scenario can name.

    \b
    Example:
      fabrictune law list
    """
    from fabrictune.cc.laws import LAWS

    summaries = {name: (module.__doc__ or "").strip().splitlines()[0] for name, module in LAWS.items()}
    if as_json:
        print_json([{"name": name, "summary": summary} for name, summary in summaries.items()])
    else:
        print_table(("law", "description"), list(summaries.items()))


@law.command()
@click.argument("name")
@trust_code_option
@json_option
def show(name: str, as_json: bool) -> None:
    """Show the description, source and parameter keys of a law; NAME may be a file with --trust-code.

    \b
    Example:
      fabrictune law show dcqcn
    """
    from fabrictune.cc.laws import load_law
    from fabrictune.scenario.laws import describe_parameters

    module = load_law(name, trust_code=is_code_trusted())
    text = (module.__doc__ or "").strip()
    parameters = describe_parameters(module)
    if as_json:
        print_json({"name": name, "description": text, "parameters": parameters})
        return
    print_lines([text, ""])
    print_table(
        ("parameter", "default", "range", "meaning"),
        [(one["key"], one["default"], f"{one['low']} to {one['high']}", one["meaning"]) for one in parameters],
    )


@law.command()
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def new(file: Path, as_json: bool) -> None:
    """Write a short law to FILE, a Python file, to be changed and run with --trust-code.

    \b
    Example:
      fabrictune law new my_law.py
      fabrictune law show my_law.py --trust-code
    """
    from fabrictune.cc.examples import write_example

    write_example(file)
    if as_json:
        print_json({"file": str(file)})
    else:
        print_lines([f"file: {file}", f"run it: law: {file} in a scenario, with --trust-code"])


@law.command("import")
@click.argument("nic", metavar="NIC", type=click.Path(path_type=Path))
@json_option
def import_nic(nic: Path, as_json: bool) -> None:
    """Print the DCQCN parameters of a ConnectX NIC as the keys of a scenario.

    NIC is the folder of its parameters (/sys/kernel/debug/mlx5/DEVICE/cc_params or /sys/class/net/INTERFACE/ecn), or a
    file with one of them a line: `grep . *` over that folder, or what `mlxconfig query` prints.

    \b
    Example:
      fabrictune law import /sys/class/net/eth0/ecn
    """
    from fabrictune.cc.nic_parameter_files import read_nic

    reading = read_nic(nic)
    interval = {} if reading.cnp_interval is None else {"engine": {"cnp": {"interval": reading.cnp_interval}}}
    keys = {"law": {"name": "dcqcn_firmware", "parameters": reading.law_keys}, **interval}
    if as_json:
        print_json({**keys, "ignored": list(reading.ignored)})
        return
    if reading.ignored:
        warnings.warn(f"{nic}: not used: {', '.join(reading.ignored)}", FabrictuneWarning, stacklevel=2)
    print_lines(_yaml_lines(keys))


@law.command("export")
@scenario_argument
@click.option(
    "--for",
    "files",
    type=click.Choice([one.value for one in NicFiles]),
    default=NicFiles.MLXCONFIG.value,
    show_default=True,
    help="NIC parameter interface.",
)
def export_nic(scenario: Path, files: str) -> None:
    """Print the lines that would give a NIC the parameters of a scenario's law; nothing is changed.

    \b
    Example:
      fabrictune law export scenario.yaml --for cc_params
    """
    from fabrictune.scenario.files import load_scenario
    from fabrictune.scenario.nic_settings import nic_settings

    found = load_scenario(scenario, trust_code=is_code_trusted())
    lines = nic_settings(found, NicFiles(files))
    if not lines:
        raise LawError(
            Mistake(
                where=f"{scenario}: law", found=found.law.name, allowed="dcqcn_firmware: the law a NIC has built in"
            )
        )
    print_lines(lines)


def _yaml_lines(keys: Mapping[str, Any], indent: int = 0) -> Iterator[str]:
    """Yield nested mappings as a scenario has them."""
    for key, value in keys.items():
        if isinstance(value, Mapping):
            yield f"{' ' * indent}{key}:"
            yield from _yaml_lines(value, indent + 2)
        else:
            yield f"{' ' * indent}{key}: {value}"
