"""A scenario of a fleet that was collected: its switches' cabling and settings, what its NICs mark, and its timers.

The folder has the `config_db.json` of each switch, the fabric that follows from them, and a drafted scenario: traffic
and law are the user's to say. Data's and CNPs' DSCP are those that most NICs have, timers those of the host whose queue
pairs fail first, with the adapter's profile assumed.

Left out: links that no switch's configuration lists, and NICs' congestion parameters (`law import` reads them).
"""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from fabrictune.fleet.collect.collection import Collection
from fabrictune.fleet.collect.node_reading import CONFIG_DB
from fabrictune.fleet.facts.derived import fleet_facts, retransmission_of
from fabrictune.fleet.facts.fact import HOST, FleetFacts, number_of
from fabrictune.foundation.documents import parse_json
from fabrictune.foundation.errors import InputError, Mistake, RecordError
from fabrictune.foundation.output_folders import check_output_folder, write_folder
from fabrictune.rdma_bench.timers.prediction import RetransmissionSpec
from fabrictune.rdma_bench.timers.profiles import DEFAULT_PROFILE
from fabrictune.scenario.switch_settings import Marking, switch_keys
from fabrictune.scenario.switch_settings.draft import scenario_text
from fabrictune.scenario.switch_settings.keys import DEFAULT_CNP_DSCP
from fabrictune.topology.files import write_fabric
from fabrictune.topology.importers.sonic import HOST_TYPE, load_sonic
from fabrictune.topology.switch_qos import read_fabric_qos

FABRIC, SCENARIO = "fabric.json", "scenario.yaml"


@dataclass(frozen=True, kw_only=True)
class Exported:
    """What was written, and what it rests on."""

    scenario: Path
    timers: RetransmissionSpec | None  # for `rdma timers`
    notes: tuple[str, ...]


def export_scenario(collection: Collection, out: Path) -> Exported:
    """Write the folder, which must be new, empty or an earlier one; raises InputError, RecordError."""
    configs = {
        reading.name: section.text
        for reading in collection.readings
        for section in reading.sections
        if section.name == CONFIG_DB
    }
    if not configs:
        step = "collect the switches as well, or put their config_db.json beside the hosts' files"
        raise InputError(Mistake(where="fleet", found="no configuration of a switch", next_step=step))
    facts = fleet_facts(collection.readings)
    marking, timers = _marking(facts), _timers(facts)
    notes: list[str] = []

    def fill(folder: Path) -> None:
        files = [folder / f"{name.replace('/', '_')}.config_db.json" for name in configs]
        for file, text in zip(files, configs.values(), strict=True):
            file.write_text(_with_hosts(text, facts) + "\n")
        fabric, keys = load_sonic(files), switch_keys(read_fabric_qos(files), marking)
        write_fabric(fabric, folder / FABRIC)
        draft = scenario_text(
            keys, name=fabric.name, fabric=Path(FABRIC), files=[Path(file.name) for file in files], marking=marking
        )
        (folder / SCENARIO).write_text(draft.replace(f"{folder}/", "") + _adapter_lines(timers))
        notes.extend(remark.replace(f"{folder}/", "") for remark in keys.remarks)

    write_folder(out, fill, check=check_replaceable)
    notes.append(f"DSCP of data: {'the lowest lossless queue' if marking.dscp is None else marking.dscp}")
    notes.append(f"adapter: {DEFAULT_PROFILE}, assumed; `rdma timers measure` has yours")
    return Exported(scenario=out / SCENARIO, timers=timers, notes=tuple(notes))


def check_export_place(out: Path) -> None:
    """Raise RecordError, before the work, where nothing can be written."""
    check_output_folder(out, check=check_replaceable)


def check_replaceable(out: Path) -> None:
    """Raise RecordError unless a folder is absent, empty or an earlier export."""
    is_ours = (out / SCENARIO).is_file() and (out / FABRIC).is_file()
    if out.is_symlink() or (out.exists() and not out.is_dir()) or (out.is_dir() and not is_ours and any(out.iterdir())):
        found = "not an empty folder, and no earlier export"
        raise RecordError(Mistake(where=str(out), found=found, next_step="name another"))


def _with_hosts(text: str, facts: FleetFacts) -> str:
    """Return a switch's configuration in which neighbours that were read as hosts are said to be servers."""
    config = parse_json(text, Path(CONFIG_DB)).tree
    known = config.setdefault("DEVICE_NEIGHBOR_METADATA", {}) if isinstance(config, dict) else {}
    for node, role in facts.roles.items():
        if role == HOST and isinstance(known, dict):
            known[node] = {"type": HOST_TYPE}
    return json.dumps(config, indent=1)


def _marking(facts: FleetFacts) -> Marking:
    dscp, cnp_dscp = (_usual(facts, name) for name in ("path.data_dscp", "nic.cnp_dscp"))
    return Marking(dscp=dscp, cnp_dscp=DEFAULT_CNP_DSCP if cnp_dscp is None else cnp_dscp)


def _usual(facts: FleetFacts, name: str) -> int | None:
    numbers = Counter(int(number) for fact in facts.named(name) if (number := number_of(fact.value)) is not None)
    return numbers.most_common(1)[0][0] if numbers else None


def _timers(facts: FleetFacts) -> RetransmissionSpec | None:
    hosts = dict.fromkeys(fact.node for fact in facts.named("rdma.state"))
    known = [spec for spec in (retransmission_of(facts, node)[0] for node in hosts) if spec]
    return min(known, key=lambda spec: (spec.timeout_exponent, spec.retries), default=None)


def _adapter_lines(timers: RetransmissionSpec | None) -> str:
    if timers is None:
        return ""
    told = f"NCCL_IB_TIMEOUT {timers.timeout_exponent}, NCCL_IB_RETRY_CNT {timers.retries}"
    return f"adapter: {DEFAULT_PROFILE}  # assumed; the hosts have {told}\n"
