"""Settings of switches as keys of a scenario: what each table becomes, and what is said of the rest."""

import json
from pathlib import Path
from typing import Any

import pytest

from fabrictune.scenario.switch_settings import Marking, SwitchKeys, switch_keys
from fabrictune.scenario.switch_settings.settings import plain
from fabrictune.topology.switch_qos import read_fabric_qos
from tests.topology.switch_qos.test_fabric_qos import CURVE, switch

LOSSLESS: dict[str, Any] = {"PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "3"}}}
POOL: dict[str, Any] = {"BUFFER_POOL": {"ingress_lossless_pool": {"size": "1000000"}}}


def keys_of(tmp_path: Path, marking: Marking | None = None, **tables: Any) -> SwitchKeys:
    """Return the keys of a switch with one port and these tables."""
    path = tmp_path / "leaf1.config_db.json"
    path.write_text(json.dumps(switch(**tables), indent=1))
    return switch_keys(read_fabric_qos([path]), marking or Marking())


def priority(keys: SwitchKeys, queue: int) -> dict[str, Any]:
    """Return the plain entry of a priority."""
    entries = plain(keys.engine)["queues"]["priorities"]
    return next(entry for entry in entries if entry["priority"] == queue)


def bound(curve: dict[str, str]) -> dict[str, Any]:
    """Return tables that bind a WRED profile to queue 3."""
    return {**LOSSLESS, "QUEUE": {"Ethernet0|3": {"wred_profile": "A"}}, "WRED_PROFILE": {"A": curve}}


def lossless(profile: dict[str, str], **tables: Any) -> dict[str, Any]:
    """Return tables that give priority group 3 a buffer profile."""
    return {
        **LOSSLESS,
        **POOL,
        "BUFFER_PG": {"Ethernet0|3": {"profile": "P"}},
        "BUFFER_PROFILE": {"P": profile},
        **tables,
    }


def test_data_take_the_queue_their_dscp_leads_to(tmp_path: Path) -> None:
    """26 leads to class 1, this to queue 2: lossy, which is said."""
    maps = {"pfc_enable": "3", "dscp_to_tc_map": "D", "tc_to_queue_map": "Q"}
    tables = {"DSCP_TO_TC_MAP": {"D": {"26": "1", "48": "6"}}, "TC_TO_QUEUE_MAP": {"Q": {"1": "2", "6": "7"}}}
    keys = keys_of(tmp_path, Marking(dscp=26), PORT_QOS_MAP={"Ethernet0": maps}, **tables)
    assert (keys.priority.value, plain(keys.engine)["queues"]["cnp"]) == (2, 7)
    assert [entry["priority"] for entry in plain(keys.engine)["queues"]["priorities"]] == [2, 3, 7]
    assert keys.remarks[1] == "data with DSCP 26 lead to queue 2, which is lossy; lossless are [3]"


def test_without_a_dscp_data_take_the_lowest_lossless_queue(tmp_path: Path) -> None:
    """What NICs must mark for it is said."""
    maps = {"pfc_enable": "4,3", "dscp_to_tc_map": "D"}
    keys = keys_of(tmp_path, PORT_QOS_MAP={"Ethernet0": maps}, DSCP_TO_TC_MAP={"D": {"24": "3", "26": "3", "48": "6"}})
    assert keys.priority.value == 3
    assert keys.remarks[1] == (
        "data take queue 3, the lowest lossless one: NICs must mark DSCP 24, 26 for it; --dscp says what yours mark"
    )


def test_lossless_is_the_queue_that_a_pfc_priority_leads_to(tmp_path: Path) -> None:
    """PFC priority 3 pauses queue 5 here."""
    maps = {"Ethernet0": {"pfc_enable": "3", "pfc_to_queue_map": "M"}}
    keys = keys_of(tmp_path, PORT_QOS_MAP=maps, MAP_PFC_PRIORITY_TO_QUEUE={"M": {"3": "5"}})
    assert (priority(keys, 5)["lossless"], keys.priority.value) == (True, 5)


def test_nothing_lossless_turns_pfc_off(tmp_path: Path) -> None:
    """A switch without PFC pauses nobody."""
    keys = keys_of(tmp_path, PORT_QOS_MAP={"Ethernet0": {"pfc_enable": ""}})
    assert plain(keys.engine)["pfc"] == {"enabled": False}
    assert keys.remarks[1] == "no PFC priority is enabled and no DSCP is given: data take queue 3"


@pytest.mark.parametrize(
    ("curve", "ecn", "remark"),
    [
        (CURVE, {"kmin": "10 B", "kmax": "20 B", "pmax": "5 %"}, ""),
        (
            {**CURVE, "wred_green_enable": "true"},
            {"kmin": "10 B", "kmax": "20 B", "pmax": "5 %", "not_capable": "drop"},
            "",
        ),
        (
            {**CURVE, "green_max_threshold": "10"},
            {"kmin": "10 B", "kmax": "11 B", "pmax": "5 %"},
            "queue 3: equal WRED thresholds are a step: kmax is kmin and 1 B",
        ),
        ({**CURVE, "ecn": "ecn_yellow"}, {"enabled": False}, ""),
        (
            {**CURVE, "ecn": "ecn_none", "wred_green_enable": "true"},
            {"enabled": False},
            "queue 3: WRED drops at random without marking: not in the engine, which does neither",
        ),
        (
            {name: value for name, value in CURVE.items() if "drop" not in name},
            {"kmin": "10 B", "kmax": "20 B", "pmax": "100 %"},
            "",
        ),
    ],
)
def test_wred(tmp_path: Path, curve: dict[str, str], ecn: dict[str, Any], remark: str) -> None:
    """Green thresholds are the curve; what WRED does beside it is said."""
    keys = keys_of(tmp_path, **bound(curve))
    assert priority(keys, 3)["ecn"] == ecn
    assert priority(keys, 6)["ecn"] == {"enabled": False}
    assert [line for line in keys.remarks if "WRED" in line] == ([remark] if remark else [])


def test_a_shared_buffer(tmp_path: Path) -> None:
    """2^-3 is an eighth; the pool's headroom is beside its size; xoff of all groups is headroom."""
    profile = {"pool": "p", "size": "1248", "xoff": "66560", "xon_offset": "2288", "dynamic_th": "-3"}
    keys = keys_of(tmp_path, **lossless(profile, BUFFER_POOL={"p": {"size": "1000000", "xoff": "500000"}}))
    engine = plain(keys.engine)
    assert engine["buffer"] == {"size": "1500000 B", "headroom_pool": "500000 B", "resume_offset": "2288 B"}
    assert engine["pfc"]["headroom"] == "66560 B"
    assert (priority(keys, 3)["alpha"], priority(keys, 3)["reserve"]) == ("0.125", "1248 B")
    assert "the pool's xoff, 500000 B, is headroom beside its size: buffer.size is their sum" in keys.remarks


def test_static_thresholds_are_buffers_of_ports(tmp_path: Path) -> None:
    """xoff is threshold and reserve, the buffer that and headroom; there is nothing to share."""
    keys = keys_of(tmp_path, **lossless({"pool": "p", "size": "100", "xoff": "5000", "static_th": "40000"}))
    engine = plain(keys.engine)
    assert engine["pfc"] == {"headroom": "5000 B", "buffer": "45100 B", "xoff": "40100 B"}
    assert "buffer" not in engine
    assert "alpha" not in priority(keys, 3)


def test_the_dynamic_buffer_model(tmp_path: Path) -> None:
    """The default threshold is the group's, the engine computes headroom, and the whole buffer is the egress pool's."""
    tables = {
        **LOSSLESS,
        "BUFFER_PG": {"Ethernet0|3": {"profile": "NULL"}},
        "BUFFER_POOL": {"ingress_lossless_pool": {"type": "ingress"}, "egress_lossless_pool": {"size": "60817392"}},
        "DEFAULT_LOSSLESS_BUFFER_PARAMETER": {"AZURE": {"default_dynamic_th": "1"}},
    }
    keys = keys_of(tmp_path, **tables)
    assert plain(keys.engine)["buffer"] == {"size": "60817392 B"}
    assert priority(keys, 3)["alpha"] == "2"
    assert "queue 3: headroom by the dynamic buffer model: the engine computes it for each link" in keys.remarks
    told = "ingress_lossless_pool has no size, which the switch computes: that of egress_lossless_pool is taken"
    assert told in keys.remarks


def test_watchdogs_beyond_the_engine(tmp_path: Path) -> None:
    """One that only logs is none; one without restoration lasts a day; those of some priorities are of all."""
    row = {"detection_time": "400", "action": "alert"}
    keys = keys_of(tmp_path, **LOSSLESS, PFC_WD={"Ethernet0": row})
    assert "pfc" not in plain(keys.engine)
    assert "the watchdog's action alert only logs storms: no watchdog in the engine" in keys.remarks
    maps = {"Ethernet0": {"pfc_enable": "3,4", "pfcwd_sw_enable": "3"}}
    keys = keys_of(tmp_path, PORT_QOS_MAP=maps, PFC_WD={"Ethernet0": {**row, "action": "forward"}})
    assert plain(keys.engine)["pfc"]["watchdog"] == {"detect": "400 ms", "restore": "24 h", "action": "forward"}
    told = "pfcwd_sw_enable has 3, pfc_enable 3,4: the engine's watchdog is for all lossless priorities"
    assert told in keys.remarks


def test_fields_of_the_hash_that_the_model_lacks_are_said(tmp_path: Path) -> None:
    """An opcode among them would send packets of one flow over several paths."""
    row = {"ecmp_hash_ipv4_rdma": ["DST_IP", "RDMA_BTH_OPCODE", "SRC_MAC"], "ecmp_hash_algorithm": "ROUND_ROBIN"}
    keys = keys_of(tmp_path, SWITCH_HASH={"GLOBAL": row})
    assert plain(keys.routing) == {"fields": "[destination_ip]", "seed": 0, "seed_per_switch": False}
    assert [line for line in keys.remarks if "hash" in line] == [
        "ecmp_hash_algorithm 'ROUND_ROBIN' is not known: an ideal hash is taken",
        "ecmp_hash_ipv4_rdma: RDMA_BTH_OPCODE differs within a message, so that packets of one flow take several paths:"
        " not in the model",
        "ecmp_hash_ipv4_rdma: without effect on RoCE over IPv4: SRC_MAC",
    ]


def test_seeds_of_one_tier_that_differ_are_said(tmp_path: Path) -> None:
    """A namespace adds to the seed of its type."""
    for number in range(3):
        tree = switch(f"leaf{number}")
        tree["DEVICE_METADATA"]["localhost"]["namespace_id"] = str(number // 2)
        (tmp_path / f"leaf{number}.config_db.json").write_text(json.dumps(tree, indent=1))
    keys = switch_keys(read_fabric_qos(sorted(tmp_path.iterdir())), Marking())
    assert plain(keys.routing) == {"seed": 0, "seed_per_switch": False}
    (line,) = [line for line in keys.remarks if "seed" in line]
    assert line.startswith("seed of the hash at tier 1: 2 of 3 taken; others: 1 at ")
