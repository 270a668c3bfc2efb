"""`fabrictune fleet audit` and `rules`: what disagrees between NICs, switches and jobs."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabrictune.cli.fleet.nodes import (
    NodeOptions,
    collect_nodes,
    node_options,
    print_states,
    show_plan,
    states_json,
)
from fabrictune.cli.framework.options import COULD_NOT_COLLECT, INTERRUPTED, fail_on_option, json_option, quiet_option
from fabrictune.cli.framework.output import print_json, print_lines, print_table
from fabrictune.cli.framework.records import output_folder, print_record, with_command
from fabrictune.foundation.run_tables.rows import to_rows

if TYPE_CHECKING:
    from fabrictune.fleet.audit.changes import Change
    from fabrictune.fleet.audit.rule_files import AuditRule
    from fabrictune.fleet.collect.collection import Collection
    from fabrictune.foundation.records import RunRecord

MAX_NOTES = 12

_rule_options = (
    click.option(
        "--audit-rules",
        "files",
        type=click.Path(path_type=Path),
        multiple=True,
        metavar="FILE",
        help="Rules and expected values of the site, beside ours; repeatable.",
    ),
    click.option(
        "--profile",
        "profiles",
        multiple=True,
        metavar="NAME",
        help="Defaults that a vendor publishes, as expected values; repeatable.",
    ),
)


@click.command()
@node_options
@_rule_options[0]
@_rule_options[1]
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    default=Path("runs/fleet-audit"),
    show_default=True,
    help="Output directory of the record.",
)
@fail_on_option
@quiet_option
@json_option
def audit(
    nodes: NodeOptions,
    files: tuple[Path, ...],
    profiles: tuple[str, ...],
    out: Path,
    fail_on: str,
    quiet: bool,
    as_json: bool,
) -> int:
    """Find settings that disagree between NICs, switches and the job, and propose changes.

    Nodes are read as by `fleet collect`, or come from what that wrote (--from-files). Each finding names node, file
    or command, and line. Changes are printed, as commands for NICs, JSON patches for SONiC (RFC 6902) and settings of
    NCCL; nothing is applied. The exit code is 3 where nodes could not be read, 1 for findings at or above --fail-on.

    \b
    Example:
      fabrictune fleet audit hosts.txt
      fabrictune fleet audit --from-files runs/fleet --audit-rules site.yaml
      fabrictune fleet audit 'gpu[01-64],leaf[1-4]' --profile nvidia-roce-optimized
    """
    from fabrictune.fleet.audit.record import audit_record
    from fabrictune.fleet.collect.questions import SETTINGS

    if show_plan(nodes, SETTINGS, as_json=as_json):
        return 0
    started, place, rules = time.perf_counter(), output_folder(out), _read_rules(files, profiles)
    collection = collect_nodes(nodes, SETTINGS, is_quiet=quiet or as_json)
    sources = (*nodes.arguments, *([str(nodes.from_files)] if nodes.from_files else []))
    record, changes = audit_record(collection, rules, sources=sources, started=started)
    record = with_command(record)
    directory = record.write(place)
    code = print_record(
        record,
        directory,
        lambda: {**states_json(collection), "changes": to_rows(record.tables["fleet_changes"])},
        lambda: _print(record, collection, changes),
        as_json=as_json,
        quiet=quiet,
        fail_on=fail_on,
    )
    if collection.is_partial:
        return INTERRUPTED
    return COULD_NOT_COLLECT if collection.missing else code


@click.command()
@_rule_options[0]
@_rule_options[1]
@json_option
def rules(files: tuple[Path, ...], profiles: tuple[str, ...], as_json: bool) -> int:
    """List the rules of `fleet audit`, and those of files.

    \b
    Example:
      fabrictune fleet rules
      fabrictune fleet rules --audit-rules site.yaml
    """
    known = _read_rules(files, profiles)
    if as_json:
        print_json(
            [
                {
                    "id": one.id,
                    "severity": one.severity.value,
                    "title": one.title,
                    "why": one.why,
                    "next": one.next_step,
                }
                for one in known
            ]
        )
        return 0
    print_table(("rule", "severity", "what it finds"), [(one.id, one.severity.value, one.title) for one in known])
    return 0


def _read_rules(files: tuple[Path, ...], profiles: tuple[str, ...]) -> "tuple[AuditRule, ...]":
    from fabrictune.fleet.audit.rule_files import our_rules, read_profile, read_rules
    from fabrictune.foundation.errors import InputError, Mistake

    found = list(our_rules())
    for file in files:
        found += read_rules(file)
    for profile in profiles:
        found += read_profile(profile, where="--profile")
    ids = [rule.id for rule in found]
    twice = sorted({rule_id for rule_id in ids if ids.count(rule_id) > 1})
    if twice:
        raise InputError(
            *(Mistake(where="rules", found=f"{one!r} twice", next_step="give one of them another id") for one in twice)
        )
    return tuple(found)


def _print(record: "RunRecord", collection: "Collection", changes: "tuple[Change, ...]") -> None:
    from fabrictune.fleet.audit.changes import by_node, patches_of

    print_states(collection)
    notes = record.run["notes"]
    print_lines(f"note: {note}" for note in notes[:MAX_NOTES])
    if len(notes) > MAX_NOTES:
        print_lines([f"... and {len(notes) - MAX_NOTES} more notes in the record"])
    if not changes:
        return
    print_lines(["proposed changes, of which none is applied:"])
    for node, own in by_node(changes, "nic"):
        print_lines([f"  {node}:", *(f"    {change.text}" for change in own)])
    for node, patch in patches_of(changes).items():
        print_lines([f"  {node}: config apply-patch with", *(f"    {json.dumps(one)}" for one in patch)])
    for _, own in by_node(changes, "env"):
        print_lines(["  job:", *(f"    {one.text}" + (f"    # {one.effect}" if one.effect else "") for one in own)])
