"""What each port of one switch has, as votes: the references of its tables followed to the values they lead to.

A vote's key says what it is about: `("wred", 3)` is the WRED curve of queue 3, `("pool", "ingress_lossless_pool")` a
buffer pool. Ports with a neighbour vote, or all that are not down where no neighbour is listed.

Source: sonic-swss, qosorch and bufferorch (which table leads where); docker-orchagent, switch.json.j2 (hash seeds).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from fabrictune.topology.fabric import UNKNOWN_TIER
from fabrictune.topology.importers.sonic import TIER_OF_TYPE, name_of_file
from fabrictune.topology.importers.sonic_tables import SonicTables
from fabrictune.topology.switch_qos.rows import MAX_BYTES, QUEUES, QosRows
from fabrictune.topology.switch_qos.values import (
    BufferPool,
    BufferProfile,
    DynamicProfile,
    EcmpHash,
    Scheduling,
    Watchdog,
    WredCurve,
)
from fabrictune.topology.switch_qos.votes import Vote

Key = tuple[str | int, ...]

MAPS = {  # by the field of PORT_QOS_MAP: the table of maps, and the highest number that it maps
    "dscp_to_tc_map": ("DSCP_TO_TC_MAP", 63),
    "tc_to_queue_map": ("TC_TO_QUEUE_MAP", 7),
    "tc_to_pg_map": ("TC_TO_PRIORITY_GROUP_MAP", 7),
    "pfc_to_queue_map": ("MAP_PFC_PRIORITY_TO_QUEUE", 7),
}
HASH_FIELDS = ("ecmp_hash_ipv4_rdma", "ecmp_hash_ipv4", "ecmp_hash")  # the first that is there is for RoCE over IPv4
ECN_MODES = tuple(
    f"ecn_{mode}" for mode in ("none", "green", "yellow", "red", "green_yellow", "green_red", "yellow_red", "all")
)
MARKS_GREEN = ("ecn_green", "ecn_green_yellow", "ecn_green_red", "ecn_all")
SEEDS = {"ToRRouter": 0, "EPMS": 0, "MgmtTsToR": 0, "LeafRouter": 10, "SpineRouter": 25}  # by part of the type
HUB_SEEDS = {"LowerRegionalHub": 60, "FabricRegionalHub": 70, "UpperRegionalHub": 80}
DEFAULT_PERCENT = 100  # SAI: drop probability of a profile without one
NO_PROFILE = "NULL"  # of a priority group in the dynamic buffer model
MAX_WATCHDOG_MS = 10**6
WATCHDOG_GLOBALS = ("POLL_INTERVAL", "BIG_RED_SWITCH")
_NO_ROWS: list[str | None] = [None] * len(QUEUES)


@dataclass
class SwitchQos:
    """The settings of one switch, or of one of its ASICs."""

    tables: SonicTables
    rows: QosRows = field(init=False)
    dangling: dict[str, None] = field(default_factory=dict)  # references that lead to nothing, each once

    def __post_init__(self) -> None:
        self.rows = QosRows(tables=self.tables)

    @cached_property
    def name(self) -> str:
        """The hostname, or what the file's name says."""
        return str(self._metadata("hostname") or name_of_file(self.tables.document.path))

    @cached_property
    def asic(self) -> str:
        """The ASIC, "" for a switch that has one."""
        return str(self._metadata("asic_name") or self.tables.asic)

    @cached_property
    def tier(self) -> int:
        """The tier, UNKNOWN_TIER for types that have none."""
        return TIER_OF_TYPE.get(str(self._metadata("type")), UNKNOWN_TIER)

    @cached_property
    def ports(self) -> tuple[str, ...]:
        """The ports that vote."""
        known = self.rows.of("PORT")
        of_alias = {str(row.get("alias", port)): port for port, row in known.items()}
        local = [str(row.get("local_port", key)) for key, row in self.rows.of("DEVICE_NEIGHBOR").items()]
        wanted = dict.fromkeys(port if port in known else of_alias.get(port, "") for port in local)
        up = [port for port, row in known.items() if row.get("admin_status") != "down"]
        return tuple(port for port in up if port in wanted) or tuple(up)

    def row_of(self, table: str, port: str, queue: int) -> str | None:
        """Return the row of a port's queue in QUEUE or BUFFER_QUEUE, or of its priority group in BUFFER_PG."""
        return self._by_queue[table].get(port, _NO_ROWS)[queue]

    def votes(self) -> Iterator[tuple[Key, Vote]]:
        """Yield what every port and the switch itself have."""
        yield ("hash",), self.hash()
        yield ("seed",), self.seed()
        for pool in self.rows.of("BUFFER_POOL"):
            yield ("pool", pool), self.pool(pool)
        for row in self.rows.of("DEFAULT_LOSSLESS_BUFFER_PARAMETER"):
            keys = ("DEFAULT_LOSSLESS_BUFFER_PARAMETER", row, "default_dynamic_th")
            yield ("default_dynamic_th",), self._vote(self.rows.number(*keys, bounds=(-8, 7)), *keys)
        for name in WATCHDOG_GLOBALS:
            if (value := self.rows.get("PFC_WD", "GLOBAL", name)) is not None:
                yield ("watchdog_global", name), self._vote(str(value), "PFC_WD", "GLOBAL", name)
        for port in self.ports:
            yield from self._port_votes(port)

    def map_of(self, port: str, name: str) -> Mapping[int, int]:
        """Return a map of a port by its field of PORT_QOS_MAP, empty where it has none."""
        table, highest = MAPS[name]
        row = self.port_row(port, name)
        map_name = self.rows.reference("PORT_QOS_MAP", row, name)
        return dict(self._map(table, map_name, highest, row) or ()) if map_name is not None else {}

    def group_of(self, port: str, queue: int) -> int:
        """Return the priority group of the first traffic class that leads to a queue."""
        to_queue, to_group = self.map_of(port, "tc_to_queue_map"), self.map_of(port, "tc_to_pg_map")
        leading = next((number for number in QUEUES if to_queue.get(number, number) == queue), queue)
        return to_group.get(leading, leading)

    def port_row(self, port: str, name: str) -> str:
        """Return the row of PORT_QOS_MAP that has a field for a port: the port's own, or `global`."""
        own = self._port_maps.get(port, port)
        rows = self.rows.of("PORT_QOS_MAP")
        names = (name, f"{name}@")
        is_global = not any(key in rows.get(own, {}) for key in names) and name in rows.get("global", {})
        return "global" if is_global else own

    def watchdog(self, port: str) -> Vote:
        """Return the watchdog of a port, None where it has none."""
        row = self._watchdogs.get(port)
        if row is None:
            return self._vote(None, "PFC_WD")
        action = self.rows.word("PFC_WD", row, "action", ("drop", "forward", "alert")) or "drop"
        bounds = (1, MAX_WATCHDOG_MS)
        detection_ms = self.rows.number("PFC_WD", row, "detection_time", bounds)
        restoration_ms = self.rows.number("PFC_WD", row, "restoration_time", bounds)
        value = Watchdog(action=action, detection_ms=detection_ms or 0, restoration_ms=restoration_ms, row=row)
        return self._vote(value if detection_ms else None, "PFC_WD", row)

    def wred(self, port: str, queue: int) -> Vote:
        """Return the WRED curve of a queue, None where no profile is bound to it."""
        place, name = self._bound("QUEUE", port, queue, "wred_profile", "WRED_PROFILE")
        if name is None:
            return self._vote(None, *place)
        number, where = self.rows.number, ("WRED_PROFILE", name)
        lowest, highest = (number(*where, f"green_{end}_threshold") for end in ("min", "max"))
        if lowest is not None and highest is not None and lowest > highest:
            self.rows.refuse((*where, "green_min_threshold"), f"{lowest} B", f"up to green_max_threshold, {highest} B")
        percent = number(*where, "green_drop_probability", (0, 100))
        mode = self.rows.word(*where, "ecn", ECN_MODES) or "ecn_none"
        curve = WredCurve(
            min_bytes=lowest or 0,
            max_bytes=highest or 0,
            percent=DEFAULT_PERCENT if percent is None else percent,
            marks=mode in MARKS_GREEN,
            drops=self.rows.truth(*where, "wred_green_enable"),
            row=name,
        )
        if lowest is None or highest is None:
            told = f"{self.rows.where(*where)}: no green_min_threshold and green_max_threshold"
            self.dangling[f"{told}: its queues count as having none"] = None
            return self._vote(None, *where)
        return self._vote(curve, *where)

    def scheduling(self, port: str, queue: int) -> Vote:
        """Return how a queue is served, None where no scheduler is bound to it."""
        place, name = self._bound("QUEUE", port, queue, "scheduler", "SCHEDULER")
        if name is None:
            return self._vote(None, *place)
        kind = self.rows.word("SCHEDULER", name, "type", ("dwrr", "wrr", "strict"))
        weight = self.rows.number("SCHEDULER", name, "weight", (1, 255))
        value = Scheduling(weight=0 if kind == "strict" else weight or 1, row=name)
        return self._vote(value, "SCHEDULER", name)

    def buffer(self, table: str, port: str, number: int) -> Vote:
        """Return the profile of a priority group (BUFFER_PG) or a queue (BUFFER_QUEUE), None where it has none."""
        row = self.row_of(table, port, number) or ""
        if self.rows.get(table, row, "profile") == NO_PROFILE:
            return self._vote(DynamicProfile(dynamic_th=None), table, row, "profile")
        place, name = self._bound(table, port, number, "profile", "BUFFER_PROFILE")
        if name is None:
            return self._vote(None, *place)
        get, where = self.rows.number, ("BUFFER_PROFILE", name)
        dynamic_th = get(*where, "dynamic_th", (-8, 7))
        if self.rows.get(*where, "headroom_type") == "dynamic":
            return self._vote(DynamicProfile(dynamic_th=dynamic_th, row=name), *where)
        profile = BufferProfile(
            pool=self.rows.reference(*where, "pool") or "",
            size_bytes=get(*where, "size") or 0,
            xoff_bytes=get(*where, "xoff"),
            xon_bytes=get(*where, "xon"),
            xon_offset_bytes=get(*where, "xon_offset"),
            dynamic_th=dynamic_th,
            static_th_bytes=get(*where, "static_th"),
            row=name,
        )
        return self._vote(profile, *where)

    def pool(self, name: str) -> Vote:
        """Return a buffer pool."""
        size_bytes, xoff_bytes = (self.rows.number("BUFFER_POOL", name, part) for part in ("size", "xoff"))
        return self._vote(BufferPool(size_bytes=size_bytes, xoff_bytes=xoff_bytes, row=name), "BUFFER_POOL", name)

    def hash(self) -> Vote:
        """Return what the switch hashes of RoCE packets over IPv4."""
        table, row = "SWITCH_HASH", "GLOBAL"
        spelled = {name.replace("-", "_").lower().removesuffix("@"): name for name in self.rows.of(table).get(row, {})}
        algorithm = self.rows.get(table, row, spelled.get("ecmp_hash_algorithm", ""))
        name = next((spelled[name] for name in HASH_FIELDS if name in spelled), "")
        header_fields = self.rows.names(table, row, name) if name else None
        value = EcmpHash(
            algorithm=None if algorithm is None else str(algorithm).upper(),
            header_fields=None if header_fields is None else tuple(sorted({entry.upper() for entry in header_fields})),
            row=name,
        )
        return self._vote(value, *((table, row) if spelled else (table,)))

    def seed(self) -> Vote:
        """Return the seed of the hash, as orchagent sets it by the type of the switch; None for types it lacks."""
        where = ("DEVICE_METADATA", "localhost")
        own = self.rows.number(*where, "ecmp_hash_seed", (0, 255))
        offset = self.rows.number(*where, "namespace_id", (0, 255)) or 0
        if own is not None:
            return self._vote(own + offset, *where, "ecmp_hash_seed")
        kind = str(self._metadata("type") or "")
        seed = next((seed for part, seed in SEEDS.items() if part in kind), HUB_SEEDS.get(kind))
        return self._vote(None if seed is None else seed + offset, *where, "type")

    def _port_votes(self, port: str) -> Iterator[tuple[Key, Vote]]:
        for name in ("pfc_enable", "pfcwd_sw_enable"):
            row = self.port_row(port, name)
            numbers = self.rows.numbers("PORT_QOS_MAP", row, name)
            yield (
                (name,),
                self._vote(numbers, *self._place("PORT_QOS_MAP", row), *([name] if numbers is not None else [])),
            )
        for name, (table, highest) in MAPS.items():
            row = self.port_row(port, name)
            map_name = self.rows.reference("PORT_QOS_MAP", row, name)
            pairs = self._map(table, map_name, highest, row) if map_name is not None else None
            keys = self._place("PORT_QOS_MAP", row) if map_name is None else (table, map_name)
            yield (name,), self._vote(pairs, *keys)
        yield ("watchdog",), self.watchdog(port)
        for queue in QUEUES:
            yield ("wred", queue), self.wred(port, queue)
            yield ("scheduling", queue), self.scheduling(port, queue)
            yield ("queue_buffer", queue), self.buffer("BUFFER_QUEUE", port, queue)
            yield ("group_buffer", queue), self.buffer("BUFFER_PG", port, queue)

    def _map(self, table: str, name: str, highest: int, row: str) -> tuple[tuple[int, int], ...] | None:
        pairs = self.rows.mapping(table, name, highest)
        if pairs is None:
            self._note_dangling("PORT_QOS_MAP", row, f"{table}|{name}")
        return pairs

    def _bound(
        self, table: str, port: str, number: int, name: str, to_table: str
    ) -> tuple[tuple[str, ...], str | None]:
        """Return table and row for a port and queue, and the name of the row it refers to, None where there is none."""
        row = self.row_of(table, port, number)
        if row is None:
            return (table,), None
        target = self.rows.reference(table, row, name)
        if target is not None and target not in self.rows.of(to_table):
            self._note_dangling(table, row, f"{to_table}|{target}")
            return (table, row), None
        return (table, row), target

    def _place(self, table: str, row: str) -> tuple[str, ...]:
        return (table, row) if row in self.rows.of(table) else (table,)

    def _note_dangling(self, table: str, row: str, target: str) -> None:
        self.dangling[f"{self.rows.where(table, row)}: names {target}, which the file does not have"] = None

    def _vote(self, value: object, *keys: str) -> Vote:
        return Vote(value=value, tables=self.tables, keys=keys)

    def _metadata(self, name: str) -> object:
        return self.rows.get("DEVICE_METADATA", "localhost", name)

    @cached_property
    def _by_queue(self) -> Mapping[str, Mapping[str, list[str | None]]]:
        return {table: self.rows.by_queue(table) for table in ("QUEUE", "BUFFER_QUEUE", "BUFFER_PG")}

    @cached_property
    def _port_maps(self) -> Mapping[str, str]:
        return self.rows.by_port("PORT_QOS_MAP")

    @cached_property
    def _watchdogs(self) -> Mapping[str, str]:
        return self.rows.by_port("PFC_WD")


__all__ = ["HASH_FIELDS", "MAPS", "MAX_BYTES", "Key", "SwitchQos"]
