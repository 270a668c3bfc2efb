"""Facts of a SONiC switch: what each port ends up with, and how the switch hashes.

The references of the tables are followed as `topo import --with-qos` follows them (decision 0081). A priority here is
lossless where PFC is enabled for it; a DSCP leads to a traffic class, this to a queue.
"""

from collections.abc import Iterator
from pathlib import Path

from fabrictune.fleet.collect.node_reading import CONFIG_DB, NodeReading
from fabrictune.fleet.facts.fact import Fact, Value, numbers_text
from fabrictune.foundation.documents import parse_json
from fabrictune.foundation.errors import FabrictuneError
from fabrictune.topology.importers.sonic_tables import SonicTables, tables_in
from fabrictune.topology.switch_qos.switch import SwitchQos
from fabrictune.topology.switch_qos.values import (
    BufferPool,
    BufferProfile,
    DynamicProfile,
    EcmpHash,
    Watchdog,
    WredCurve,
)

Keys = tuple[str, ...]  # table, row and field

MAX_PORTS = 4096
ALL_DSCPS = range(64)


def sonic_facts(reading: NodeReading) -> Iterator[Fact]:
    """Yield the facts of a switch's configuration; raises InputError for one that is no configuration."""
    section = next((one for one in reading.sections if one.name == CONFIG_DB), None)
    if section is None or not section.lines:
        return
    document = parse_json(section.text, Path(f"{reading.name}: {CONFIG_DB}"))
    for tables in tables_in(document):
        switch = SwitchQos(tables=tables)
        found = list(_switch_facts(switch, reading.name))
        if switch.rows.mistakes:
            raise FabrictuneError(*switch.rows.mistakes)
        yield from found


def switch_neighbours(reading: NodeReading) -> Iterator[tuple[str, str, str, str]]:
    """Yield port, neighbour, its port and the place of each row of DEVICE_NEIGHBOR, in both of its shapes."""
    section = next((one for one in reading.sections if one.name == CONFIG_DB), None)
    if section is None or not section.lines:
        return
    document = parse_json(section.text, Path(f"{reading.name}: {CONFIG_DB}"))
    for tables in tables_in(document):
        for key, row in (tables.rows("DEVICE_NEIGHBOR") or {}).items():
            port, name = str(row.get("local_port", key)), row.get("name", key if "local_port" in row else "")
            if name:
                where = tables.where("DEVICE_NEIGHBOR", key)
                yield port, str(name), str(row.get("port") or ""), where


def _switch_facts(switch: SwitchQos, node: str) -> Iterator[Fact]:
    tables = switch.tables

    def fact(name: str, value: Value, keys: Keys, device: str = "") -> Fact:
        pointer = "".join(f"/{key.replace('~', '~0').replace('/', '~1')}" for key in keys)
        return Fact(node=node, device=device, name=name, value=value, where=tables.where(*keys), pointer=pointer)

    vote = switch.hash()
    ecmp: EcmpHash = vote.value
    if ecmp.header_fields is not None:
        yield fact("switch.hash_fields", ",".join(ecmp.header_fields), (*vote.keys, ecmp.row))
    yield fact("switch.hash_algorithm", ecmp.algorithm or "chip default", vote.keys)
    seed = switch.seed()
    if seed.value is not None:
        yield fact("switch.hash_seed", float(seed.value), seed.keys)
    metadata = tables.rows("DEVICE_METADATA") or {}
    if kind := metadata.get("localhost", {}).get("type"):
        yield fact("switch.type", str(kind), ("DEVICE_METADATA", "localhost", "type"))
    for peer in tables.rows("BGP_NEIGHBOR") or {}:
        hold_s = switch.rows.number("BGP_NEIGHBOR", peer, "holdtime")
        if hold_s is not None:
            yield fact("switch.bgp_hold_s", float(hold_s), ("BGP_NEIGHBOR", peer, "holdtime"), peer)
    for port in switch.ports[:MAX_PORTS]:
        for name, value, keys in _port_facts(switch, port):
            yield fact(name, value, keys, port)


def _port_facts(switch: SwitchQos, port: str) -> Iterator[tuple[str, Value, Keys]]:
    rows = switch.rows
    for field, name, scale in (("speed", "switch.speed_gbps", 1000), ("mtu", "switch.mtu", 1)):
        number = rows.number("PORT", port, field)
        if number is not None:
            yield name, number / scale, ("PORT", port, field)
    if fec := rows.get("PORT", port, "fec"):
        yield "switch.fec", str(fec).upper(), ("PORT", port, "fec")
    lossless: tuple[int, ...] = ()
    for field, name in (("pfc_enable", "switch.pfc"), ("pfcwd_sw_enable", "switch.pfcwd_priorities")):
        row = switch.port_row(port, field)
        numbers = rows.numbers("PORT_QOS_MAP", row, field)
        if field == "pfc_enable":
            lossless = numbers or ()
        if numbers is not None or field == "pfc_enable":
            yield name, numbers_text(numbers or ()), ("PORT_QOS_MAP", row, field)
    yield from _map_facts(switch, port)
    watchdog = switch.watchdog(port)
    if isinstance(watchdog.value, Watchdog):
        yield "switch.pfcwd_detection_ms", float(watchdog.value.detection_ms), (*watchdog.keys, "detection_time")
        if watchdog.value.restoration_ms is not None:
            yield (
                "switch.pfcwd_restoration_ms",
                float(watchdog.value.restoration_ms),
                (*watchdog.keys, "restoration_time"),
            )
        yield "switch.pfcwd_action", watchdog.value.action, (*watchdog.keys, "action")
    elif lossless:
        yield "switch.pfcwd_action", "none", ("PFC_WD", port)
    for priority in lossless:
        yield from _lossless_facts(switch, port, priority)
    yield from _cable_facts(switch.tables, port)


def _map_facts(switch: SwitchQos, port: str) -> Iterator[tuple[str, Value, Keys]]:
    """Yield to which queue each DSCP leads: `0=1,26=3`."""
    row = switch.port_row(port, "dscp_to_tc_map")
    to_class = switch.map_of(port, "dscp_to_tc_map")
    to_queue = switch.map_of(port, "tc_to_queue_map")
    if to_class:
        queues = {dscp: to_queue.get(to_class[dscp], to_class[dscp]) for dscp in ALL_DSCPS if dscp in to_class}
        name = switch.rows.reference("PORT_QOS_MAP", row, "dscp_to_tc_map") or ""
        yield "switch.dscp_queues", _pairs(queues), ("DSCP_TO_TC_MAP", name)


def _lossless_facts(switch: SwitchQos, port: str, priority: int) -> Iterator[tuple[str, Value, Keys]]:
    queue = switch.map_of(port, "pfc_to_queue_map").get(priority, priority)
    wred, group = switch.wred(port, queue), switch.buffer("BUFFER_PG", port, switch.group_of(port, queue))
    has_headroom = isinstance(group.value, DynamicProfile) or (
        isinstance(group.value, BufferProfile) and bool(group.value.xoff_bytes)
    )
    yield f"switch.headroom.{priority}", "yes" if has_headroom else "none", group.keys
    curve = wred.value
    if not isinstance(curve, WredCurve):
        yield f"switch.ecn.{priority}", "none", wred.keys
        return
    yield f"switch.ecn.{priority}", "marks" if curve.marks else "does not mark", wred.keys
    shown = f"{curve.min_bytes}/{curve.max_bytes}/{curve.percent}%"
    yield f"switch.wred.{priority}", shown, wred.keys
    threshold = _pause_threshold_bytes(switch, group.value)
    if threshold is not None:
        order = "before" if curve.max_bytes <= threshold else "after"
        yield f"switch.ecn_and_pfc.{priority}", f"ECN {order} PFC", wred.keys


def _pause_threshold_bytes(switch: SwitchQos, profile: object) -> float | None:
    """Return how full one priority group alone gets before it pauses, None where the switch decides when it runs."""
    if not isinstance(profile, BufferProfile):
        return None
    if profile.static_th_bytes is not None:
        return float(profile.static_th_bytes)
    pool = switch.pool(profile.pool).value
    if profile.dynamic_th is None or not isinstance(pool, BufferPool) or pool.size_bytes is None:
        return None
    alpha = 2.0**profile.dynamic_th
    return alpha / (1 + alpha) * pool.size_bytes


def _cable_facts(tables: SonicTables, port: str) -> Iterator[tuple[str, Value, Keys]]:
    for key, row in (tables.rows("CABLE_LENGTH") or {}).items():
        text = str(row.get(port, ""))
        if text.endswith("m") and text[:-1].isdecimal() and len(text) < 8:
            yield "switch.cable_m", float(text[:-1]), ("CABLE_LENGTH", key, port)
            return


def _pairs(pairs: dict[int, int]) -> str:
    return ",".join(f"{first}={second}" for first, second in sorted(pairs.items()))
