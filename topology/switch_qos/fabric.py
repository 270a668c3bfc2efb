"""The settings of a fabric's switches: each as most ports or switches have it, with those that differ."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabrictune.foundation.documents import load_json
from fabrictune.foundation.errors import FabricError, InputError, Mistake
from fabrictune.topology.importers.recognition import begins_with
from fabrictune.topology.importers.sonic import is_sonic
from fabrictune.topology.importers.sonic_tables import SonicTables, tables_in
from fabrictune.topology.switch_qos.switch import Key, SwitchQos
from fabrictune.topology.switch_qos.votes import Elected, Election

MAX_PORTS = 4096  # of one ASIC
MAX_NAMED = 6  # fields of a table that a line names
_RUNNING_HEAD = re.compile(rb'"[A-Z][A-Z0-9_]{0,40}_TABLE:')
CABLING_TABLES = ("DEVICE_METADATA", "PORT", "DEVICE_NEIGHBOR", "DEVICE_NEIGHBOR_METADATA", "CABLE_LENGTH")


@dataclass(frozen=True, kw_only=True)
class FabricQos:
    """Switches with their settings, and what most of them have."""

    switches: tuple[SwitchQos, ...]
    elected: Mapping[Key, Elected]
    seed_by_tier: Mapping[int, Elected]  # of the hash

    def value(self, *key: str | int) -> Any:
        """Return what most have, None where nobody has anything."""
        return self.elected[key].value if key in self.elected else None

    def unused(self) -> Iterator[str]:
        """Yield a line for each table that is not used, or not wholly, over all files; those of the cabling aside."""
        num_rows: Counter[str] = Counter()
        num_unread: Counter[str] = Counter()
        fields: dict[str, set[str]] = defaultdict(set)
        for switch in self.switches:
            for table, rows, unread, names in switch.rows.unread():
                num_rows[table] += rows
                num_unread[table] += unread
                fields[table] |= set(names)
        for table in sorted(num_rows.keys() - set(CABLING_TABLES)):
            if not num_unread[table] and not fields[table]:
                continue
            parts = [f"{num_unread[table]} of {num_rows[table]} rows"] if num_unread[table] else []
            shown = ", ".join(sorted(fields[table])[:MAX_NAMED])
            num_more = len(fields[table]) - MAX_NAMED
            more = f" and {num_more} more" if num_more > 0 else ""
            parts += [f"of the others {shown}{more}" if parts else f"{shown}{more}"] if shown else []
            yield f"{table}: {'; '.join(parts)}"


def read_fabric_qos(paths: Sequence[Path]) -> FabricQos:
    """Return the settings in the configurations of one or several switches; raises InputError with every mistake.

    A dump of APPL_DB beside a switch's configuration has the buffers that the switch runs with.
    """
    paths, dumps = split_running(paths)
    strange = [path for path in paths if not is_sonic(path)]
    if strange:
        allowed, step = "config_db.json of SONiC switches", "leave the others out, or import without --with-qos"
        found = "no configuration of a SONiC switch"
        raise InputError(*(Mistake(where=str(path), found=found, allowed=allowed, next_step=step) for path in strange))
    configured = tuple(SwitchQos(tables=tables) for path in paths for tables in tables_in(load_json(path)))
    switches = _with_running(configured, dumps)
    for switch in switches:
        _check_size(switch)
    votes: dict[Key, Election] = defaultdict(Election)
    seeds: dict[int, Election] = defaultdict(Election)
    for switch in switches:
        for key, vote in switch.votes():
            votes[key].add(vote)
        seeds[switch.tier].add(switch.seed())
    mistakes = [mistake for switch in switches for mistake in switch.rows.mistakes]
    if mistakes:
        raise FabricError(*mistakes)
    return FabricQos(
        switches=switches,
        elected={key: election.result() for key, election in votes.items()},
        seed_by_tier={tier: election.result() for tier, election in seeds.items()},
    )


def split_running(paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Return configurations, and dumps of APPL_DB."""
    dumps = [path for path in paths if begins_with(path, _RUNNING_HEAD)]
    return [path for path in paths if path not in dumps], dumps


def _with_running(switches: tuple[SwitchQos, ...], dumps: Sequence[Path]) -> tuple[SwitchQos, ...]:
    """Return the switches with the dumps that are named after them, or that lie alone with them in a folder."""
    running: dict[int, SonicTables] = {}
    for path in dumps:
        (tables,) = tables_in(load_json(path))
        stem = path.name.partition(".")[0]
        owners = [row for row, switch in enumerate(switches) if stem in (switch.name, _stem_of(switch))]
        owners = owners or [
            row for row, switch in enumerate(switches) if switch.tables.document.path.parent == path.parent
        ]
        if len(owners) != 1 or owners[0] in running:
            step = "name it after the switch, as leaf1.appl_db.json beside leaf1.config_db.json"
            raise FabricError(Mistake(where=str(path), found="a dump of APPL_DB of no one switch here", next_step=step))
        running[owners[0]] = tables
    return tuple(
        SwitchQos(tables=switch.tables.with_running(running[row])) if row in running else switch
        for row, switch in enumerate(switches)
    )


def _stem_of(switch: SwitchQos) -> str:
    return switch.tables.document.path.name.partition(".")[0]


def _check_size(switch: SwitchQos) -> None:
    num_ports = len(switch.rows.of("PORT"))
    if num_ports > MAX_PORTS:
        where, step = switch.rows.where("PORT"), "give one ASIC's configuration a file, or import without --with-qos"
        raise FabricError(
            Mistake(where=where, found=f"{num_ports} ports", allowed=f"up to {MAX_PORTS}", next_step=step)
        )
