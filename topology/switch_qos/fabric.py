"""The settings of a fabric's switches: each as most ports or switches have it, with those that differ."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabrictune.foundation.documents import load_json
from fabrictune.foundation.errors import FabricError, InputError, Mistake
from fabrictune.topology.importers.sonic import is_sonic
from fabrictune.topology.importers.sonic_tables import tables_in
from fabrictune.topology.switch_qos.switch import Key, SwitchQos
from fabrictune.topology.switch_qos.votes import Elected, Election

MAX_PORTS = 4096  # of one ASIC
MAX_NAMED = 6  # fields of a table that a line names
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
    """Return the settings in the configurations of one or several switches; raises InputError with every mistake."""
    strange = [path for path in paths if not is_sonic(path)]
    if strange:
        allowed, step = "config_db.json of SONiC switches", "leave the others out, or import without --with-qos"
        found = "no configuration of a SONiC switch"
        raise InputError(*(Mistake(where=str(path), found=found, allowed=allowed, next_step=step) for path in strange))
    switches = tuple(SwitchQos(tables=tables) for path in paths for tables in tables_in(load_json(path)))
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


def _check_size(switch: SwitchQos) -> None:
    num_ports = len(switch.rows.of("PORT"))
    if num_ports > MAX_PORTS:
        where, step = switch.rows.where("PORT"), "give one ASIC's configuration a file, or import without --with-qos"
        raise FabricError(
            Mistake(where=where, found=f"{num_ports} ports", allowed=f"up to {MAX_PORTS}", next_step=step)
        )
