"""Changes of switches: each setting as commands and as a patch, which read again gives what was asked for."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fabrictune.scenario.files import parse_scenario
from fabrictune.scenario.overrides import override
from fabrictune.scenario.schema import Scenario
from fabrictune.scenario.switch_settings import Marking, switch_keys
from fabrictune.scenario.switch_settings.changes import FabricChanges, fabric_changes
from fabrictune.scenario.switch_settings.draft import scenario_text
from fabrictune.scenario.switch_settings.report import NO_PATCH, SwitchReport, reporter
from fabrictune.topology.switch_qos import read_fabric_qos
from tests.json_patch import apply_patch

GOLDEN = Path(__file__).parents[2] / "golden" / "topology"
LEAF, SPINE = "qos-leaf1.config_db.json", "qos-spine1.config_db.json"
MARKING = Marking(dscp=26)
FIRST = "engine.queues.priorities[0]"
PROFILES = ("pg_lossless_400000_5m_profile", "pg_lossless_400000_40m_profile")


def imported(*files: Path) -> Scenario:
    """Return the scenario drafted from files."""
    keys = switch_keys(read_fabric_qos(files), MARKING)
    text = scenario_text(keys, name="pod", fabric=Path("pod.json"), files=files, marking=MARKING)
    return parse_scenario(text, Path("pod.yaml"))


def changes_of(changes: Mapping[str, Any], *files: Path) -> FabricChanges:
    """Return what to change on switches for a drafted scenario with other values."""
    files = files or (GOLDEN / LEAF, GOLDEN / SPINE)
    return fabric_changes(read_fabric_qos(files), MARKING, override(imported(*files), changes, origin="test"))


def values(found: FabricChanges, row: int = 0) -> dict[str, Any]:
    """Return a switch's patched values by path."""
    return {path: operation.get("value") for path, operation in found.switches[row].operations.items()}


def test_nothing_changes_from_what_was_read() -> None:
    """Neither on the leaf nor on the spine, whose own threshold differs."""
    found = changes_of({})
    assert (found.switches, found.remarks) == ((), ())


def test_a_threshold_is_changed_on_each_switch_that_has_another() -> None:
    """800,000 B is the spine's own, so that only the leaf changes."""
    found = changes_of({f"{FIRST}.ecn.kmin": "800 KB"})
    (change,) = found.switches
    assert change.name == "leaf1"
    assert change.commands == ["sudo ecnconfig -p ROCE_LOSSLESS -gmin 800000"]
    assert values(found) == {"/WRED_PROFILE/ROCE_LOSSLESS/green_min_threshold": "800000"}


def test_all_of_a_curve_is_one_command() -> None:
    """Thresholds in bytes, the share in whole percents; marking off is a mode."""
    found = changes_of({f"{FIRST}.ecn": {"kmin": "200 KB", "kmax": "400 KB", "pmax": "2.5 %", "not_capable": "queue"}})
    assert found.switches[0].commands == ["sudo ecnconfig -p ROCE_LOSSLESS -gmin 200000 -gmax 400000 -gdrop 2"]
    assert values(found)["/WRED_PROFILE/ROCE_LOSSLESS/wred_green_enable"] == "false"
    assert found.remarks == ("WRED_PROFILE ROCE_LOSSLESS: 2.5 % is no whole number of percent: 2 taken",)
    (need,) = found.switches[0].needs
    assert need.startswith("WRED_PROFILE needs nothing by the command; apply-patch takes a profile of this name only")
    assert values(changes_of({f"{FIRST}.ecn.enabled": False})) == {"/WRED_PROFILE/ROCE_LOSSLESS/ecn": "ecn_none"}


def test_a_watchdog() -> None:
    """All ports of the switch in one command; each has a row."""
    found = changes_of({"engine.pfc.watchdog.detect": "400 ms"})
    ports = "Ethernet0 Ethernet8 Ethernet16 Ethernet24 Ethernet32"
    assert found.switches[0].commands == [f"sudo pfcwd start --action drop --restoration-time 400 {ports} 400"]
    assert values(found) == {f"/PFC_WD/{port}/detection_time": "400" for port in ports.split()}
    found = changes_of({"engine.pfc.watchdog": None})
    assert found.switches[0].commands == [f"sudo pfcwd stop {ports}"]
    assert [entry["op"] for entry in found.switches[0].operations.values()] == ["remove"] * 5
    found = changes_of({"engine.pfc.watchdog.detect": "10 ms"})
    assert found.remarks == ("PFC_WD detection_time: 10 ms is none of SONiC's, whole milliseconds from 100 to 5000",)


def test_pfc_of_a_queue() -> None:
    """One row for five ports; the command is for each."""
    found = changes_of({f"{FIRST}.lossless": False})
    row = "Ethernet0,Ethernet8,Ethernet16,Ethernet24,Ethernet32"
    assert values(found)[f"/PORT_QOS_MAP/{row}/pfc_enable"] == ""
    assert found.switches[0].commands[0] == "sudo config interface pfc priority Ethernet0 3 off"
    found = changes_of({"engine.queues.priorities[1].lossless": True})
    assert values(found) == {f"/PORT_QOS_MAP/{row}/pfc_enable": "3,6"}
    assert found.remarks == ("queue 6: PFC needs a lossless profile in BUFFER_PG as well, which is not made here",)


def test_thresholds_of_buffers() -> None:
    """Of the profiles of all ports; alpha is a power of two."""
    found = changes_of({f"{FIRST}.alpha": 0.25})
    assert values(found) == {f"/BUFFER_PROFILE/{profile}/dynamic_th": "-2" for profile in PROFILES}
    assert found.switches[0].commands == [f"sudo mmuconfig -p {profile} -a -2" for profile in PROFILES]
    assert changes_of({f"{FIRST}.alpha": 3}).remarks == ("priority 3.alpha = 3: no power of 2: 4 taken",)
    found = changes_of({"engine.queues.priorities[1].alpha": 8})
    assert values(found) == {"/BUFFER_PROFILE/egress_lossy_profile/dynamic_th": "3"}


def test_pools_and_headroom() -> None:
    """The pool's size is the buffer without the headroom beside it; what apply-patch refuses needs a reload."""
    found = changes_of({"engine.buffer": {"size": "70 MB", "headroom_pool": "9 MB", "resume_offset": "4 KB"}})
    assert values(found) == {
        "/BUFFER_POOL/ingress_lossless_pool/size": "61000000",
        "/BUFFER_POOL/ingress_lossless_pool/xoff": "9000000",
        **{f"/BUFFER_PROFILE/{profile}/xon_offset": "4000" for profile in PROFILES},
    }
    assert [need.partition(":")[0].partition(" where")[0] for need in found.switches[0].needs] == [
        "BUFFER_POOL needs nothing",
        "BUFFER_PROFILE needs a restart of swss",
    ]
    found = changes_of({"engine.pfc.headroom": "250 KB"})
    assert values(found) == {f"/BUFFER_PROFILE/{profile}/xoff": "250000" for profile in PROFILES}


def test_priorities_that_one_side_lacks_stay_as_they_are() -> None:
    """A queue left out of the scenario is not turned off on the switches; one that was not read is said."""
    scenario = imported(GOLDEN / LEAF, GOLDEN / SPINE)
    assert scenario.document
    first, second = scenario.document.tree["engine"]["queues"]["priorities"]
    queues = {"priorities": [first], "cnp": 3}
    found = changes_of({"engine.queues": queues})
    assert (found.switches, found.remarks) == ((), ("engine.queues.cnp = 3: no setting of the switches",))
    queues = {"priorities": [first, second, {"priority": 1}], "cnp": 6}
    found = changes_of({"engine.queues": queues})
    assert (found.switches, found.remarks) == ((), ("priority 1 is none that was read from the files: not compared",))


def test_schedulers() -> None:
    """A weight of 0 is strict priority."""
    assert values(changes_of({f"{FIRST}.weight": 20})) == {"/SCHEDULER/roce/weight": "20"}
    assert values(changes_of({f"{FIRST}.weight": 0})) == {"/SCHEDULER/roce/type": "STRICT"}


def test_the_hash() -> None:
    """Fields go where they came from, in SONiC's names."""
    found = changes_of({"routing.function": "crc32_low", "routing.fields": ["source_ip", "destination_qp"]})
    assert values(found) == {
        "/SWITCH_HASH/GLOBAL/ecmp_hash_algorithm": "CRC_32LO",
        "/SWITCH_HASH/GLOBAL/ecmp_hash_ipv4_rdma": ["SRC_IP", "RDMA_BTH_DEST_QP"],
    }
    assert found.switches[0].commands == ["sudo config switch-hash global ecmp-hash-algorithm CRC_32LO"]
    assert changes_of({"routing.function": "toeplitz"}).remarks == (
        "routing.function toeplitz: no algorithm of SWITCH_HASH",
    )


def test_what_switches_lack_is_said() -> None:
    """Nothing is dropped in silence."""
    assert changes_of({"engine.pfc.quanta": 100}).remarks == ("engine.pfc.quanta = 100: no setting of the switches",)


def test_a_shared_profile_changes_other_queues_as_well(tmp_path: Path) -> None:
    """Queues 3 and 0 name one scheduler here."""
    tree = json.loads((GOLDEN / LEAF).read_text())
    for row in tree["QUEUE"].values():
        row["scheduler"] = "roce"
    (tmp_path / LEAF).write_text(json.dumps(tree))
    found = changes_of({f"{FIRST}.weight": 20}, tmp_path / LEAF)
    assert found.remarks == ("scheduler roce is that of queue 0, 6 as well, which changes with it",)


def test_the_patch_of_an_asic_is_below_its_namespace(tmp_path: Path) -> None:
    """As `config apply-patch` has it on switches with several; the command names it too."""
    tree = json.loads((GOLDEN / LEAF).read_text())
    tree["DEVICE_METADATA"]["localhost"]["asic_name"] = "asic1"
    (tmp_path / LEAF).write_text(json.dumps(tree))
    found = changes_of({f"{FIRST}.ecn.kmin": "200 KB"}, tmp_path / LEAF)
    assert list(values(found)) == ["/asic1/WRED_PROFILE/ROCE_LOSSLESS/green_min_threshold"]
    assert found.switches[0].commands == ["sudo ecnconfig -p ROCE_LOSSLESS -gmin 200000 -n asic1"]


def test_names_of_a_file_are_words_of_a_shell(tmp_path: Path) -> None:
    """A profile's name is foreign text, in a pointer and in a command."""
    text = (GOLDEN / LEAF).read_text().replace("ROCE_LOSSLESS", "a/b~c; reboot")
    (tmp_path / LEAF).write_text(text)
    found = changes_of({f"{FIRST}.ecn.kmin": "200 KB"}, tmp_path / LEAF)
    assert list(values(found)) == ["/WRED_PROFILE/a~1b~0c; reboot/green_min_threshold"]
    assert found.switches[0].commands == ["sudo ecnconfig -p 'a/b~c; reboot' -gmin 200000"]


@pytest.mark.parametrize(
    "changes",
    [
        {f"{FIRST}.ecn.kmin": "200 KB", f"{FIRST}.ecn.kmax": "400 KB", f"{FIRST}.ecn.pmax": "10 %"},
        {"engine.pfc.watchdog.restore": "1 s", f"{FIRST}.weight": 70, f"{FIRST}.alpha": 0.5},
        {"engine.buffer.size": "50 MB", "engine.buffer.headroom_pool": "5 MB", "engine.buffer.resume_offset": "9 KB"},
        {"routing.function": "crc_xor", "routing.fields": ["source_ip", "destination_ip", "source_port"]},
    ],
)
def test_patched_files_read_again_give_what_was_asked_for(tmp_path: Path, changes: dict[str, Any]) -> None:
    """Import, change, patch, import: then nothing is left to change, and all switches agree on it."""
    wanted = override(imported(GOLDEN / LEAF, GOLDEN / SPINE), changes, origin="test")
    found = fabric_changes(read_fabric_qos([GOLDEN / LEAF, GOLDEN / SPINE]), MARKING, wanted)
    for change in found.switches:
        name = f"qos-{change.name}.config_db.json"
        patched = apply_patch(json.loads((GOLDEN / name).read_text()), change.operations.values())
        (tmp_path / name).write_text(json.dumps(patched))
    files = (tmp_path / LEAF, tmp_path / SPINE)
    assert fabric_changes(read_fabric_qos(files), MARKING, wanted).switches == ()
    again = imported(*files)
    assert again.engine == wanted.engine
    assert (again.routing.function, set(again.routing.fields)) == (wanted.routing.function, set(wanted.routing.fields))


def test_without_files_lines_stand_for_a_profile() -> None:
    """What two scenarios have otherwise, without names and without a patch."""
    fabric, traffic = "{builder: clos, num_hosts: 4, hosts_per_tor_set: 4}", "{workload: permutation, message: 1 KB}"
    base = parse_scenario(f"name: a\nfabric: {fabric}\ntraffic: {traffic}\n", Path("a.yaml"))
    assert reporter(base)(base) is None
    changed = override(base, {"engine.ecn.kmin": "200 KB", "engine.pfc.buffer": "2 MB"}, origin="test")
    found = reporter(base)(changed)
    assert found
    assert list(SwitchReport.lines(found.as_json())) == [
        "# on each switch, changed from scenario a:",
        "sudo ecnconfig -p <profile> -gmin 200000",
        "# it needs nothing: takes effect at once; `sudo config save -y` keeps it",
        "# engine.pfc.buffer = 2 MB: no line for it without the switches' files",
        f"# {NO_PATCH}",
    ]
