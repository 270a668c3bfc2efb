"""Changes of a fabric's switches from what their files say to what a scenario has; nothing is ever applied.

Both are compared as the engine's settings, so that a value counts as changed only if the engine sees another. What has
changed is set on every switch that has something else; all else stays as it is on each.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.settings.binding import bind
from fabrictune.foundation.units import NS_PER_MS
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.switch import WatchdogConfig
from fabrictune.scenario.schema import Scenario
from fabrictune.scenario.switch_settings.differences import Difference, differences
from fabrictune.scenario.switch_settings.hashing import HEADER_FIELDS
from fabrictune.scenario.switch_settings.keys import Marking, switch_keys
from fabrictune.scenario.switch_settings.patch import SwitchChanges
from fabrictune.scenario.switch_settings.settings import plain
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.hashing.sonic import SONIC_ALGORITHMS
from fabrictune.topology.switch_qos import FabricQos
from fabrictune.topology.switch_qos.rows import QUEUES
from fabrictune.topology.switch_qos.values import BufferProfile, DynamicProfile

WATCHDOG_BOUNDS_MS = {"detection_time": (100, 5000), "restoration_time": (100, 60_000)}
MIN_TH, MAX_TH = -8, 7


@dataclass(frozen=True, kw_only=True)
class FabricChanges:
    """Changes by switch, of those that change, and what has no setting there."""

    switches: tuple[SwitchChanges, ...]
    remarks: tuple[str, ...]


def fabric_changes(qos: FabricQos, marking: Marking, scenario: Scenario) -> FabricChanges:
    """Return what to change for a scenario of the packet engine; raises InputError where the files bind no settings."""
    keys = switch_keys(qos, marking)
    imported = _bound(_bindable(plain(keys.engine)), qos)
    config = scenario.packet_config()
    changes = [SwitchChanges(switch=switch) for switch in qos.switches]
    remarks: dict[str, None] = {}
    found = differences(imported, config)
    for number in sorted(set(config.queues.numbers) - set(imported.queues.numbers)):
        remarks[f"priority {number} is none that was read from the files: not compared"] = None
    for name, of_group in _grouped(found).items():
        handler = HANDLERS.get(name)
        if handler is None:
            remarks |= dict.fromkeys(f"{entry.text}: no setting of the switches" for entry in of_group)
            continue
        for change in changes:
            remarks |= dict.fromkeys(handler(change, config, of_group))
    for change in changes:
        remarks |= dict.fromkeys(_hash(change, plain(keys.routing), scenario.routing))
    remarks |= {line: None for change in changes for line in change.computed}
    return FabricChanges(switches=tuple(change for change in changes if change.operations), remarks=tuple(remarks))


Handler = Callable[[SwitchChanges, PacketConfig, Sequence[Difference]], Iterable[str]]


def _bound(tree: Any, qos: FabricQos) -> PacketConfig:
    try:
        return bind(PacketConfig, tree, folder=Path())
    except ValidationError as error:
        where = ", ".join(dict.fromkeys(str(switch.tables.document.path) for switch in qos.switches))
        found = f"settings that the engine refuses ({error.errors()[0]['msg']})"
        step = "import the files again with --with-qos, and check the scenario"
        raise InputError(Mistake(where=where, found=found, next_step=step)) from None


def _bindable(tree: Any) -> Any:
    """Return the tree with numbers for alpha, which YAML would read from its text."""
    if isinstance(tree, dict):
        return {key: float(value) if key == "alpha" else _bindable(value) for key, value in tree.items()}
    return [_bindable(entry) for entry in tree] if isinstance(tree, list) else tree


def _grouped(found: Iterable[Difference]) -> Mapping[str, list[Difference]]:
    """Return differences by what has to be done about them."""
    groups: dict[str, list[Difference]] = {}
    for entry in found:
        is_priority = entry.key[0].isdigit()
        parts = entry.key[1:] if is_priority else entry.key
        name = parts[0] if is_priority else ".".join(parts[:2]) if parts[0] in ("pfc", "buffer", "queues") else parts[0]
        groups.setdefault(f"priority.{name}" if is_priority else name, []).append(entry)
    return groups


def _wred(change: SwitchChanges, config: PacketConfig, found: Sequence[Difference]) -> Iterator[str]:
    """Set the WRED profiles of the queues whose marking changes."""
    for queue in sorted({int(entry.key[0]) for entry in found}):
        entry = next((entry for entry in config.queues.priorities if entry.priority == queue), None)
        ecn = (entry.ecn or config.ecn) if entry else None
        if ecn is None:
            continue
        changed = {entry.key[2]: entry.after for entry in found if int(entry.key[0]) == queue}
        rows = _rows_of(change.switch.wred(port, queue).value for port in change.switch.ports)
        if not rows:
            yield f"queue {queue} of {change.name} has no WRED profile to change"
        for row in rows:
            yield from _set_profile(change, row, changed)
            yield from _shared(change, queue, row, "wred_profile", "WRED profile")


def _set_profile(change: SwitchChanges, row: str, changed: Mapping[str, Any]) -> Iterator[str]:
    words: list[str] = []
    for name, option, end in (("kmax_bytes", "-gmax", "max"), ("kmin_bytes", "-gmin", "min")):
        value = changed.get(name)
        if value is not None and change.set("WRED_PROFILE", row, f"green_{end}_threshold", str(value)):
            words = [option, str(value), *words]
    share = changed.get("pmax_fraction")
    if share is not None:
        percent = min(100, max(1, round(100 * share)))
        if not math.isclose(percent, 100 * share):
            yield f"WRED_PROFILE {row}: {100 * share:.4g} % is no whole number of percent: {percent} taken"
        if change.set("WRED_PROFILE", row, "green_drop_probability", str(percent)):
            words += ["-gdrop", str(percent)]
    if words:
        asic = ["-n", change.switch.asic.lower()] if change.switch.asic else []
        change.run("ecnconfig", "-p", row, *words, *asic)
    if "enabled" in changed:
        change.set("WRED_PROFILE", row, "ecn", "ecn_all" if changed["enabled"] else "ecn_none")
    if "not_capable" in changed:
        change.set("WRED_PROFILE", row, "wred_green_enable", "true" if changed["not_capable"] == "drop" else "false")
    for name in ("kmin_bytes", "kmax_bytes", "pmax_fraction"):
        if name in changed and changed[name] is None and changed.get("enabled", True):
            yield f"{name.rpartition('_')[0]} is left to the law: set it to have it compared"


def _watchdog(change: SwitchChanges, config: PacketConfig, _: Sequence[Difference]) -> Iterator[str]:
    """Set the watchdog of the ports that have one, or stop it."""
    watchdog = config.pfc.watchdog
    votes = {port: change.switch.watchdog(port).value for port in change.switch.ports}
    ports = [port for port, value in votes.items() if value is not None]
    rows = _rows_of(votes.values())
    if not ports:
        yield f"{change.name} has no watchdog to change"
    elif watchdog is None:
        change.run("pfcwd", "stop", *ports)
        for row in rows:
            change.remove("PFC_WD", row)
    else:
        yield from _set_watchdog(change, watchdog, ports, rows)


def _set_watchdog(
    change: SwitchChanges, watchdog: WatchdogConfig, ports: Sequence[str], rows: Sequence[str]
) -> Iterator[str]:
    times = {"detection_time": watchdog.detect_ns / NS_PER_MS, "restoration_time": watchdog.restore_ns / NS_PER_MS}
    for name, value in times.items():
        low, high = WATCHDOG_BOUNDS_MS[name]
        if value != int(value) or not low <= value <= high:
            yield f"PFC_WD {name}: {value:g} ms is none of SONiC's, whole milliseconds from {low} to {high}"
            return
    is_new = [
        change.set("PFC_WD", row, name, value)
        for row in rows
        for name, value in (
            ("action", watchdog.action),
            *((name, str(int(value))) for name, value in times.items()),
        )
    ]
    if any(is_new):
        times_text = {name: str(int(value)) for name, value in times.items()}
        options = ("--action", watchdog.action, "--restoration-time", times_text["restoration_time"])
        change.run("pfcwd", "start", *options, *ports, times_text["detection_time"])


def _lossless(change: SwitchChanges, config: PacketConfig, found: Sequence[Difference]) -> Iterator[str]:
    """Turn PFC on or off for the priorities that lead to a queue."""
    for entry in found:
        queue, is_on = int(entry.key[0]), bool(entry.after)
        for port in change.switch.ports:
            to_queue = change.switch.map_of(port, "pfc_to_queue_map")
            priorities = [number for number in range(8) if to_queue.get(number, number) == queue]
            _set_pfc(change, port, priorities, is_on=is_on)
        if is_on:
            yield f"queue {queue}: PFC needs a lossless profile in BUFFER_PG as well, which is not made here"


def _set_pfc(change: SwitchChanges, port: str, priorities: Sequence[int], *, is_on: bool) -> None:
    row = change.switch.port_row(port, "pfc_enable")
    before = set(change.switch.rows.numbers("PORT_QOS_MAP", row, "pfc_enable") or ())
    after = before | set(priorities) if is_on else before - set(priorities)
    if change.set("PORT_QOS_MAP", row, "pfc_enable", ",".join(map(str, sorted(after)))):
        for priority in sorted(before ^ after):
            change.run("config", "interface", "pfc", "priority", port, priority, "on" if is_on else "off")


def _alpha(change: SwitchChanges, config: PacketConfig, found: Sequence[Difference]) -> Iterator[str]:
    """Set the dynamic threshold of the profiles of a queue, or of its priority group."""
    for entry in found:
        if entry.after is None:
            continue
        exponent = min(MAX_TH, max(MIN_TH, round(math.log2(entry.after))))
        if 2.0**exponent != entry.after:
            yield f"{entry.text}: no power of 2: {2.0**exponent:g} taken"
        values = _profiles(change, config, int(entry.key[0]))
        rows = _rows_of(value for value in values if isinstance(value, BufferProfile))
        for row in rows:
            if change.set("BUFFER_PROFILE", row, "dynamic_th", str(exponent)):
                change.run("mmuconfig", "-p", row, "-a", exponent)
        if any(isinstance(value, DynamicProfile) for value in values):
            for row in change.switch.rows.of("DEFAULT_LOSSLESS_BUFFER_PARAMETER"):
                change.set("DEFAULT_LOSSLESS_BUFFER_PARAMETER", row, "default_dynamic_th", str(exponent))
        elif not rows:
            yield f"queue {entry.key[0]} of {change.name} has no buffer profile to change"


def _weight(change: SwitchChanges, config: PacketConfig, found: Sequence[Difference]) -> Iterator[str]:
    """Set the schedulers of a queue."""
    for entry in found:
        if entry.after is None:
            continue
        queue = int(entry.key[0])
        rows = _rows_of(change.switch.scheduling(port, queue).value for port in change.switch.ports)
        if not rows:
            yield f"queue {queue} of {change.name} has no scheduler to change"
        for row in rows:
            change.set("SCHEDULER", row, "type", "STRICT" if entry.after == 0 else "DWRR")
            if entry.after:
                change.set("SCHEDULER", row, "weight", str(entry.after))
            yield from _shared(change, queue, row, "scheduler", "scheduler")


def _headroom(change: SwitchChanges, config: PacketConfig, found: Sequence[Difference]) -> Iterator[str]:
    """Set the headroom of the lossless priority groups."""
    headroom_bytes = found[0].after
    if headroom_bytes is None:
        yield "pfc.headroom is left to the engine: the switches keep theirs"
        return
    for entry in config.queues.priorities:
        values = _profiles(change, config, entry.priority) if entry.lossless else []
        for row in _rows_of(value for value in values if isinstance(value, BufferProfile)):
            change.set("BUFFER_PROFILE", row, "xoff", str(headroom_bytes))


def _resume_offset(change: SwitchChanges, config: PacketConfig, found: Sequence[Difference]) -> Iterator[str]:
    """Set how far below its threshold a lossless priority group resumes."""
    for entry in config.queues.priorities:
        values = _profiles(change, config, entry.priority) if entry.lossless and found[0].after else []
        for row in _rows_of(value for value in values if isinstance(value, BufferProfile)):
            change.set("BUFFER_PROFILE", row, "xon_offset", str(found[0].after))
    yield from ()


def _pool(change: SwitchChanges, config: PacketConfig, _: Sequence[Difference]) -> Iterator[str]:
    """Set the pool of lossless traffic, whose size is the buffer without the headroom that is shared."""
    size_bytes, headroom_bytes = config.buffer.size_bytes, config.buffer.headroom_pool_bytes
    name = "ingress_lossless_pool"
    if size_bytes is None or name not in change.switch.rows.of("BUFFER_POOL"):
        yield f"{change.name}: no {name} to change"
        return
    change.set("BUFFER_POOL", name, "size", str(size_bytes - (headroom_bytes or 0)))
    if headroom_bytes is not None and change.set("BUFFER_POOL", name, "xoff", str(headroom_bytes)):
        change.run("config", "buffer", "shared-headroom-pool", "size", headroom_bytes)


def _hash(change: SwitchChanges, imported: Mapping[str, Any], routing: HashSpec) -> Iterator[str]:
    """Set what the switch hashes, and how."""
    algorithm = next((name for name, function in SONIC_ALGORITHMS.items() if function == routing.function), None)
    if routing.function != imported.get("function", HashSpec().function):
        if algorithm is None:
            yield f"routing.function {routing.function}: no algorithm of SWITCH_HASH"
        elif change.set("SWITCH_HASH", "GLOBAL", "ecmp_hash_algorithm", algorithm):
            change.run("config", "switch-hash", "global", "ecmp-hash-algorithm", algorithm)
    before = str(imported.get("fields", f"[{', '.join(HashSpec().fields)}]"))
    if set(routing.fields) != set(before.strip("[]").split(", ")):
        names = [name for name, field in HEADER_FIELDS.items() if field in routing.fields]
        row = change.switch.hash().value.row or "ecmp_hash"
        if change.set("SWITCH_HASH", "GLOBAL", row, names) and row == "ecmp_hash":
            change.run("config", "switch-hash", "global", "ecmp-hash", *names)


def _profiles(change: SwitchChanges, config: PacketConfig, queue: int) -> list[Any]:
    """Return the buffer profiles of a queue that is lossy, or of the priority group of one that is not."""
    switch = change.switch
    is_lossless = any(entry.priority == queue and entry.lossless for entry in config.queues.priorities)
    if not is_lossless:
        return [switch.buffer("BUFFER_QUEUE", port, queue).value for port in switch.ports]
    return [switch.buffer("BUFFER_PG", port, switch.group_of(port, queue)).value for port in switch.ports]


def _rows_of(values: Iterable[Any]) -> list[str]:
    """Return the rows that values come from, each once."""
    return list(dict.fromkeys(value.row for value in values if value is not None))


def _shared(change: SwitchChanges, queue: int, row: str, name: str, what: str) -> Iterator[str]:
    """Say which other queues a row is bound to."""
    switch = change.switch
    keys = {(number, switch.row_of("QUEUE", port, number)) for port in switch.ports for number in QUEUES}
    bound = {number for number, key in keys if key is not None and switch.rows.reference("QUEUE", key, name) == row}
    others = sorted(bound - {queue})
    if others:
        yield f"{what} {row} is that of queue {', '.join(map(str, others))} as well, which changes with it"


HANDLERS: Mapping[str, Handler] = {
    "priority.ecn": _wred,
    "priority.lossless": _lossless,
    "priority.alpha": _alpha,
    "priority.weight": _weight,
    "pfc.watchdog": _watchdog,
    "pfc.headroom_bytes": _headroom,
    "buffer.size_bytes": _pool,
    "buffer.headroom_pool_bytes": _pool,
    "buffer.resume_offset_bytes": _resume_offset,
}
