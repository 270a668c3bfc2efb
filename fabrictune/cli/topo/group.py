"""`fabrictune topo`: import, build, show, export, check, compare and probe fabrics."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fabrictune.cli.framework.groups import CommandGroup
from fabrictune.cli.framework.options import fail_on_option, is_code_trusted, json_option, trust_code_option
from fabrictune.cli.framework.output import print_json, print_lines, print_table
from fabrictune.cli.framework.rules import print_rules, site_rules
from fabrictune.cli.topo.overrides import override_options
from fabrictune.cli.topo.probe import probe
from fabrictune.cli.topo.switch_settings import cabling_files, qos_options, read_settings, show_with_settings

if TYPE_CHECKING:
    from fabrictune.scenario.switch_settings import Marking
    from fabrictune.topology.fabric import Fabric
    from fabrictune.topology.link_overrides import LinkOverride

Command = TypeVar("Command", bound=Callable[..., Any])

topo = CommandGroup(name="topo", help="Import, build, show, check, compare and probe fabrics.")

files_argument = click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
_format_option = click.option(
    "--format",
    "file_format",
    metavar="NAME",
    help="File format, or a Python file with an importer.  [default: detected from the files]",
)
out_option = click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Output file of the fabric.")
links_option = click.option("--links", is_flag=True, help="List every link as well.")


def format_option(command: Command) -> Command:
    """Add `--format`, and `--trust-code` for an importer in a Python file."""
    return _format_option(trust_code_option(command))


@topo.command("import")
@files_argument
@format_option
@override_options
@out_option
@qos_options
@json_option
def import_files(
    files: tuple[Path, ...],
    file_format: str | None,
    overrides: "list[LinkOverride]",
    out: Path | None,
    marking: "Marking | None",
    as_json: bool,
) -> None:
    """Read files that describe a network, or folders of them, as one fabric.

    With --with-qos, WRED, PFC, buffers, maps and hash of SONiC switches become the keys of a scenario, each with file
    and line; with --out pod.json they are written to pod.yaml beside it, as a scenario of that fabric.

    \b
    Formats: fabrictune, infragraph, containerlab, csv, graphml, hpcc, htsim,
             ibnetdiscover, lldp, minigraph, sonic-dump, sonic

    \b
    Example:
      fabrictune topo import lab.clab.yml --out lab.json
      fabrictune topo import leaf1.config_db.json spine1.config_db.json
      fabrictune topo import lab.clab.yml --rate 400G --rate 0-1=200G --cable 30m --out lab.json
      fabrictune topo import configs/ --with-qos --dscp 26 --out pod.json
      fabrictune topo import leaf1.eos --format ./my_eos.py --trust-code
    """
    from fabrictune.topology.link_overrides import override_links

    _check(out)
    settings = read_settings(files, marking, out)
    fabric = override_links(_import(cabling_files(files, settings), file_format), overrides, where="TIERS")
    _save(fabric, out)
    if settings:
        show_with_settings(fabric, settings, as_json=as_json)
    else:
        _show(fabric, has_links=False, as_json=as_json)


@topo.command()
@click.argument("builder")
@click.argument("settings", metavar="KEY=VALUE...", nargs=-1)
@trust_code_option
@out_option
@json_option
def build(builder: str, settings: tuple[str, ...], out: Path | None, as_json: bool) -> None:
    """Build a fabric of a known shape from its settings, which `fabrictune scenario keys fabric.clos` lists.

    BUILDER may be a Python file with a builder.

    \b
    Example:
      fabrictune topo build fat_tree radix=8 link_rate="100 Gbps" --out k8.json
      fabrictune topo build clos num_hosts=16 hosts_per_tor_set=4 tiers=2
      fabrictune topo build ./my_ring.py num_switches=8 --trust-code
    """
    from fabrictune.scenario.fabrics import build_from_settings

    _check(out)
    fabric = build_from_settings(builder, settings, trust_code=is_code_trusted())
    _save(fabric, out)
    _show(fabric, has_links=False, as_json=as_json)


@topo.command()
@files_argument
@format_option
@links_option
@json_option
def show(files: tuple[Path, ...], file_format: str | None, links: bool, as_json: bool) -> None:
    """Say what a fabric is made of: switches by tier, hosts, links by rate, ToR sets.

    \b
    Example:
      fabrictune topo show k8.json --links
      fabrictune topo show lab.clab.yml --json
    """
    _show(_import(files, file_format), has_links=links, as_json=as_json)


@topo.command()
@files_argument
@format_option
@click.option(
    "--to",
    "exporter",
    type=click.Choice(["slurm", "slurm-yaml", "volcano", "kueue", "containerlab", "infragraph"]),
    help="File of a scheduler or a lab instead of a fabric's.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", required=True, help="Output file, .graphml or .json."
)
@json_option
def export(files: tuple[Path, ...], file_format: str | None, exporter: str | None, out: Path, as_json: bool) -> None:
    """Write a fabric for other tools: GraphML or this project's JSON, by the ending of the file, or as --to says.

    Schedulers get the locality of hosts: Slurm's topology.conf or topology.yaml, Volcano's HyperNodes, Kueue's Topology
    with the labels of nodes. NICs, rails and rates have no place in these. A containerlab file and an InfraGraph
    infrastructure have every link with its rate and delay, and `topo import` reads them.

    \b
    Example:
      fabrictune topo export lab.clab.yml --out lab.graphml
      fabrictune topo export cabling.csv --to slurm --out topology.conf
    """
    from fabrictune.foundation.output_files import replaced_file
    from fabrictune.topology.exporters import EXPORTERS

    _check(out)
    fabric = _import(files, file_format)
    if exporter:
        text = EXPORTERS[exporter](fabric)
        with replaced_file(out) as half:
            half.write_text(text)
    else:
        _save(fabric, out)
    _show(fabric, has_links=False, as_json=as_json)


@topo.command()
@files_argument
@format_option
@fail_on_option
@json_option
def validate(files: tuple[Path, ...], file_format: str | None, fail_on: str, as_json: bool) -> int:
    """Find what looks miscabled: one-sided links, unequal speeds and uplinks, swapped rails, isolated nodes.

    \b
    Example:
      fabrictune topo validate leaf1.config_db.json spine1.config_db.json
      fabrictune topo validate cabling.csv --fail-on warning --json
    """
    from fabrictune.cli.framework.findings import conclude, judged_json, print_findings
    from fabrictune.foundation.checks import count_findings
    from fabrictune.topology.validation import validate_fabric

    fabric = _import(files, file_format)
    report = fabric.check_files() + validate_fabric(fabric, site_rules())
    if as_json:
        print_json({"name": fabric.name, "notes": list(fabric.notes), **judged_json(report)})
    else:
        print_lines(f"note: {note}" for note in fabric.notes)
        print_findings(report)
        print_lines([f"{fabric.name}: {count_findings(site_rules().apply_to_checks(report.checks))}"])
    return conclude(fail_on, report)


@topo.command()
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@format_option
@fail_on_option
@json_option
def diff(before: Path, after: Path, file_format: str | None, fail_on: str, as_json: bool) -> int:
    """Say what changed from the fabric BEFORE to the fabric AFTER, each a file, or a folder with one file a switch.

    \b
    Example:
      fabrictune topo diff monday.csv friday.csv
      fabrictune topo diff configs-monday/ configs-friday/ --fail-on warning
    """
    from fabrictune.cli.framework.findings import conclude, judged_json, print_checks
    from fabrictune.topology.diff import compare_fabrics, not_compared

    fabrics = [_import([path], file_format) for path in (before, after)]
    report = compare_fabrics(*fabrics)
    changes = site_rules().apply(report.findings)
    if as_json:
        notes = {side: list(fabric.notes) for side, fabric in zip(("before", "after"), fabrics, strict=True)}
        judged = judged_json(report)
        notes["both"] = list(not_compared(*fabrics))
        print_json({"notes": notes, "changes": judged.pop("findings"), **judged})
        return conclude(fail_on, report)
    for path, fabric in zip((before, after), fabrics, strict=True):
        print_lines(f"note: {path}: {note}" for note in fabric.notes)
    print_lines(f"note: {note}" for note in not_compared(*fabrics))
    if changes:
        rows = [
            (change.severity.value, change.id.removeprefix("diff."), change.entity, change.expected, change.actual)
            for change in changes
        ]
        print_table(("severity", "change", "of", "before", "after"), rows)
        print_lines(f"next: {step}" for step in dict.fromkeys(change.next_step for change in changes))
    else:
        print_lines(["no changes"])
    print_checks(report.checks)
    print_rules()
    return conclude(fail_on, report)


topo.add_command(probe)


def _import(files: Sequence[Path], file_format: str | None) -> "Fabric":
    """Return the fabric in the files, read by a named format, an importer in a file, or the one that fits."""
    from fabrictune.topology.importers import find_importer, import_fabric

    return import_fabric(files, find_importer(file_format, trust_code=is_code_trusted()))


def _check(out: Path | None) -> None:
    """Raise InputError, before the work, where the file cannot be written."""
    if out is not None:
        from fabrictune.foundation.output_files import check_output_file

        check_output_file(out)


def _save(fabric: "Fabric", out: Path | None) -> None:
    if out is not None:
        from fabrictune.scenario.fabrics import save_fabric

        save_fabric(fabric, out)


def _show(fabric: "Fabric", *, has_links: bool, as_json: bool) -> None:
    from fabrictune.cli.topo.fabrics import describe_fabric, print_fabric

    if as_json:
        print_json(describe_fabric(fabric, has_links=has_links))
    else:
        print_fabric(fabric, has_links=has_links)
