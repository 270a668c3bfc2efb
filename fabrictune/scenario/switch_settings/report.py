"""Changes of switches for people and for files: by switches that change alike, with what each change needs.

Without files of the switches a scenario's changes are compared with another scenario, and rows have no names: lines
stand for a profile and ports, and there is no patch.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fabrictune.foundation.units import NS_PER_MS
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.scenario.schema import Scenario
from fabrictune.scenario.switch_settings.changes import FabricChanges, fabric_changes
from fabrictune.scenario.switch_settings.differences import Difference, differences
from fabrictune.scenario.switch_settings.keys import Marking
from fabrictune.scenario.switch_settings.patch import AT_ONCE
from fabrictune.topology.switch_qos import read_fabric_qos

NO_PATCH = "no patch: the scenario names no files of its switches (topo import --with-qos drafts one that does)"


@dataclass(frozen=True, kw_only=True)
class SwitchGroup:
    """Switches that change alike."""

    names: tuple[str, ...]
    commands: tuple[str, ...]
    operations: tuple[Mapping[str, Any], ...]  # of RFC 6902
    needs: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the group as JSON values."""
        return {
            "switches": list(self.names),
            "commands": list(self.commands),
            "patch": [dict(operation) for operation in self.operations],
            "needs": list(self.needs),
        }


@dataclass(frozen=True, kw_only=True)
class SwitchReport:
    """What to change on switches, and what cannot be said."""

    since: str
    groups: tuple[SwitchGroup, ...]
    remarks: tuple[str, ...]
    patches: Mapping[str, Sequence[Mapping[str, Any]]]  # of each switch, all its ASICs together

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON values, without the patches of each switch."""
        return {
            "since": self.since,
            "groups": [group.as_json() for group in self.groups],
            "remarks": list(self.remarks),
        }

    @staticmethod
    def lines(report: Mapping[str, Any]) -> Iterator[str]:
        """Yield a report's JSON values as lines of a shell: commands, and the rest as comments."""
        if not report["groups"]:
            yield f"# nothing changes from {report['since']}"
        for group in report["groups"]:
            yield f"# on {', '.join(group['switches'])}, changed from {report['since']}:"
            yield from group["commands"]
            yield from (f"# patch: {_operation(operation)}" for operation in group["patch"])
            yield from (f"# {need}" for need in group["needs"])
        yield from (f"# {remark}" for remark in report["remarks"])


def reporter(base: Scenario) -> Callable[[Scenario], SwitchReport | None]:
    """Return what reports the changes of a scenario: from the files that `base` names, or else from `base` itself.

    None is reported for other engines than packet. Raises InputError for files that cannot be read.
    """
    if base.switches is None:
        return lambda scenario: _since_scenario(base, scenario)
    qos = read_fabric_qos(base.switches.files)
    marking = Marking(dscp=base.switches.dscp, cnp_dscp=base.switches.cnp_dscp)

    def report(scenario: Scenario) -> SwitchReport | None:
        if not isinstance(scenario.engine.spec, PacketConfig):
            return None
        return _since_files(fabric_changes(qos, marking, scenario))

    return report


def _since_files(changes: FabricChanges) -> SwitchReport:
    groups: dict[tuple[Any, ...], list[str]] = {}
    patches: dict[str, list[Mapping[str, Any]]] = {}
    for change in changes.switches:
        operations = tuple(change.operations.values())
        alike = tuple(change.commands), tuple(map(_operation, operations)), tuple(change.needs)
        groups.setdefault(alike, []).append(change.name)
        patches.setdefault(change.switch.name, []).extend(operations)
    of_name = {change.name: change for change in changes.switches}
    return SwitchReport(
        since="the switches' files",
        groups=tuple(
            SwitchGroup(
                names=tuple(names),
                commands=commands,
                operations=tuple(of_name[names[0]].operations.values()),
                needs=needs,
            )
            for (commands, _, needs), names in groups.items()
        ),
        remarks=changes.remarks,
        patches=patches,
    )


def _since_scenario(base: Scenario, scenario: Scenario) -> SwitchReport | None:
    """Return the lines of what two scenarios have otherwise; None where nothing of switches differs."""
    before, after = base.engine.spec, scenario.engine.spec
    if not isinstance(before, PacketConfig) or not isinstance(after, PacketConfig):
        return None
    found = differences(before, after)
    if not found:
        return None
    commands, told = _plain_commands(found, after)
    rest = tuple(f"{entry.text}: no line for it without the switches' files" for entry in found if entry not in told)
    group = SwitchGroup(names=("each switch",), commands=commands, operations=(), needs=(f"it {AT_ONCE}",))
    return SwitchReport(
        since=f"scenario {base.name}",
        groups=(group,) if commands else (),
        remarks=(*rest, NO_PATCH),
        patches={},
    )


def _plain_commands(found: Sequence[Difference], config: PacketConfig) -> tuple[tuple[str, ...], list[Difference]]:
    """Return commands for marking and watchdog, and the differences that they are for."""
    by_queue: dict[str, list[Difference]] = {}
    for entry in found:
        if "ecn" in entry.key[:2] and entry.key[-1] in _OPTIONS and entry.after is not None:
            by_queue.setdefault(entry.key[0], []).append(entry)
    commands = [f"sudo ecnconfig -p <profile{_of(queue)}> {_options(of_queue)}" for queue, of_queue in by_queue.items()]
    told = [entry for of_queue in by_queue.values() for entry in of_queue]
    watched = [entry for entry in found if entry.key[:2] == ("pfc", "watchdog")]
    if watched:
        commands.append(_watchdog(config))
    return tuple(commands), [*told, *watched]


def _watchdog(config: PacketConfig) -> str:
    watchdog = config.pfc.watchdog
    if watchdog is None:
        return "sudo pfcwd stop"
    detect, restore = (f"{value / NS_PER_MS:g}" for value in (watchdog.detect_ns, watchdog.restore_ns))
    return f"sudo pfcwd start --action {watchdog.action} --restoration-time {restore} all {detect}"


_OPTIONS: Mapping[str, tuple[str, float]] = {
    "kmin_bytes": ("-gmin", 1),
    "kmax_bytes": ("-gmax", 1),
    "pmax_fraction": ("-gdrop", 100),
}


def _options(found: Sequence[Difference]) -> str:
    after = {entry.key[-1]: entry.after for entry in found}
    return " ".join(
        f"{option} {round(after[name] * scale)}" for name, (option, scale) in _OPTIONS.items() if name in after
    )


def _of(queue: str) -> str:
    return f" of queue {queue}" if queue.isdigit() else ""


def _operation(operation: Mapping[str, Any]) -> str:
    return json.dumps(operation)
