"""QoS tables of SONiC switches: references followed, votes counted, mistakes with their lines."""

import json
from pathlib import Path
from typing import Any

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.topology.switch_qos import FabricQos, read_fabric_qos
from fabrictune.topology.switch_qos.fabric import MAX_PORTS
from fabrictune.topology.switch_qos.values import (
    BufferPool,
    BufferProfile,
    DynamicProfile,
    EcmpHash,
    Scheduling,
    Watchdog,
    WredCurve,
)

CURVE = {"ecn": "ecn_all", "green_min_threshold": "10", "green_max_threshold": "20", "green_drop_probability": "5"}
PORT_0, PORT_4 = "Ethernet0", "Ethernet4"


def switch(name: str = "leaf1", num_ports: int = 1, **tables: Any) -> dict[str, Any]:
    """Return a configuration with ports Ethernet0, Ethernet4 and so on."""
    ports = {f"Ethernet{4 * number}": {"speed": "400000"} for number in range(num_ports)}
    return {"DEVICE_METADATA": {"localhost": {"hostname": name, "type": "ToRRouter"}}, "PORT": ports, **tables}


def read(tmp_path: Path, *configs: dict[str, Any]) -> FabricQos:
    """Return the settings of configurations given as trees."""
    paths = [tmp_path / f"switch{row}.config_db.json" for row in range(len(configs))]
    for path, tree in zip(paths, configs, strict=True):
        path.write_text(json.dumps(tree, indent=1))
    return read_fabric_qos(paths)


def test_references_are_followed_whatever_their_form(tmp_path: Path) -> None:
    """A name, and `[TABLE|name]` of older releases, lead to one row; its name is no part of the value."""
    queues = {
        "Ethernet0|3": {"wred_profile": "A", "scheduler": "s"},
        "Ethernet4|3": {"wred_profile": "[WRED_PROFILE|B]"},
    }
    schedulers = {"s": {"type": "STRICT", "weight": "7"}}
    qos = read(tmp_path, switch(num_ports=2, QUEUE=queues, WRED_PROFILE={"A": CURVE, "B": CURVE}, SCHEDULER=schedulers))
    curve = WredCurve(min_bytes=10, max_bytes=20, percent=5, marks=True, drops=False)
    assert (qos.value("wred", 3), qos.elected[("wred", 3)].num_votes) == (curve, 2)
    assert qos.value("scheduling", 3) == Scheduling(weight=0)


def test_a_key_may_name_ports_and_queues(tmp_path: Path) -> None:
    """`Ethernet0,Ethernet4|3-4` is two ports with two queues each."""
    qos = read(
        tmp_path,
        switch(num_ports=2, QUEUE={"Ethernet0,Ethernet4|3-4": {"wred_profile": "A"}}, WRED_PROFILE={"A": CURVE}),
    )
    assert [qos.value("wred", queue) is not None for queue in range(8)] == [queue in (3, 4) for queue in range(8)]
    assert qos.elected[("wred", 4)].num_votes == 2


def test_rows_of_other_asics_of_a_chassis_are_left_out(tmp_path: Path) -> None:
    """A VOQ switch names host and ASIC before the port."""
    queues = {"leaf1|asic0|Ethernet0|3": {"wred_profile": "A"}, "leaf1|asic1|Ethernet0|4": {"wred_profile": "A"}}
    tree = switch(QUEUE=queues, WRED_PROFILE={"A": CURVE})
    tree["DEVICE_METADATA"]["localhost"]["asic_name"] = "Asic0"
    qos = read(tmp_path, tree)
    assert (qos.value("wred", 3) is not None, qos.value("wred", 4)) == (True, None)


def test_most_ports_decide(tmp_path: Path) -> None:
    """Two of three have 3; the other is kept with its place."""
    maps = {"Ethernet0": {"pfc_enable": "4"}, "Ethernet4": {"pfc_enable": "3"}, "Ethernet8": {"pfc_enable": "3"}}
    elected = read(tmp_path, switch(num_ports=3, PORT_QOS_MAP=maps)).elected[("pfc_enable",)]
    assert (elected.value, elected.num_votes, elected.num_voters) == ((3,), 2, 3)
    assert [(vote.value, count) for vote, count in elected.others] == [((4,), 1)]
    assert elected.others[0][0].where.endswith("switch0.config_db.json:21: PORT_QOS_MAP.Ethernet0.pfc_enable")


def test_ports_without_a_neighbour_have_no_vote(tmp_path: Path) -> None:
    """Where neighbours are listed, the rest of the ports is not in the fabric."""
    maps = {"Ethernet0": {"pfc_enable": "3"}, "Ethernet4": {"pfc_enable": ""}, "Ethernet8": {"pfc_enable": ""}}
    neighbours = {"Ethernet0": {"name": "server1", "port": "eth0"}}
    qos = read(tmp_path, switch(num_ports=3, PORT_QOS_MAP=maps, DEVICE_NEIGHBOR=neighbours))
    assert (qos.value("pfc_enable"), qos.elected[("pfc_enable",)].num_voters) == ((3,), 1)


def test_maps_of_all_ports_are_those_of_ports_without_their_own(tmp_path: Path) -> None:
    """`PORT_QOS_MAP|global` binds the map of DSCP of the whole switch."""
    maps = {"global": {"dscp_to_tc_map": "G"}, "Ethernet4": {"dscp_to_tc_map": "P"}}
    tables = {"G": {"26": "3"}, "P": {"26": "4"}}
    elected = read(tmp_path, switch(num_ports=3, PORT_QOS_MAP=maps, DSCP_TO_TC_MAP=tables)).elected[("dscp_to_tc_map",)]
    assert (elected.value, elected.num_votes) == (((26, 3),), 2)


def test_buffers(tmp_path: Path) -> None:
    """A static profile, one computed by the switch, and one that says how it is computed."""
    profiles = {
        "static": {"pool": "p", "size": "1248", "xoff": "200", "xon": "9", "dynamic_th": "-3"},
        "dynamic": {"headroom_type": "dynamic", "dynamic_th": "1"},
    }
    groups = {
        "Ethernet0|3": {"profile": "static"},
        "Ethernet0|4": {"profile": "NULL"},
        "Ethernet0|5": {"profile": "dynamic"},
    }
    pools = {"p": {"size": "5000", "xoff": "70"}}
    qos = read(tmp_path, switch(BUFFER_PG=groups, BUFFER_PROFILE=profiles, BUFFER_POOL=pools))
    static = BufferProfile(
        pool="p",
        size_bytes=1248,
        xoff_bytes=200,
        xon_bytes=9,
        xon_offset_bytes=None,
        dynamic_th=-3,
        static_th_bytes=None,
    )
    assert (qos.value("group_buffer", 3), static.reserve_bytes) == (static, 1048)
    assert qos.value("group_buffer", 4) == DynamicProfile(dynamic_th=None)
    assert qos.value("group_buffer", 5) == DynamicProfile(dynamic_th=1)
    assert qos.value("pool", "p") == BufferPool(size_bytes=5000, xoff_bytes=70)


def test_a_reserve_does_not_count_headroom_that_is_more_than_it(tmp_path: Path) -> None:
    """With a shared headroom pool `size` is the reserve alone."""
    profile = BufferProfile(
        pool="p",
        size_bytes=1248,
        xoff_bytes=66560,
        xon_bytes=None,
        xon_offset_bytes=None,
        dynamic_th=0,
        static_th_bytes=None,
    )
    assert profile.reserve_bytes == 1248


def test_watchdogs(tmp_path: Path) -> None:
    """Without a time of restoration a storm never ends."""
    rows = {"GLOBAL": {"POLL_INTERVAL": "200"}, "Ethernet0": {"action": "alert", "detection_time": "400"}}
    qos = read(tmp_path, switch(PFC_WD=rows))
    assert qos.value("watchdog") == Watchdog(action="alert", detection_ms=400, restoration_ms=None)
    assert qos.value("watchdog_global", "POLL_INTERVAL") == "200"


@pytest.mark.parametrize(
    ("row", "header_fields", "name"),
    [
        ({"ecmp_hash": ["DST_IP"], "ecmp_hash_ipv4": ["SRC_IP"]}, ("SRC_IP",), "ecmp_hash_ipv4"),
        ({"ecmp_hash": ["DST_IP"], "ecmp_hash_ipv6": ["SRC_IP"]}, ("DST_IP",), "ecmp_hash"),
        (
            {"ecmp_hash@": "DST_IP,SRC_IP", "ecmp_hash_IPV4-RDMA@": "RDMA_BTH_DEST_QP"},
            ("RDMA_BTH_DEST_QP",),
            "ecmp_hash_IPV4-RDMA@",
        ),
    ],
)
def test_the_hash_of_roce_over_ipv4(
    tmp_path: Path, row: dict[str, Any], header_fields: tuple[str, ...], name: str
) -> None:
    """A packet type's fields go before those of its family, these before those of all; in each spelling."""
    found = read(tmp_path, switch(SWITCH_HASH={"GLOBAL": {**row, "ecmp_hash_algorithm": "CRC"}})).value("hash")
    assert (found, found.row) == (EcmpHash(algorithm="CRC", header_fields=header_fields), name)


def test_seeds_follow_types(tmp_path: Path) -> None:
    """A ToR has 0, a leaf 10, a spine 25; one that is configured goes before, a namespace is added."""
    types = ("ToRRouter", "LeafRouter", "UpperSpineRouter", "Unheard", "LeafRouter")
    trees = [switch(f"s{row}") for row in range(5)]
    for tree, kind in zip(trees, types, strict=True):
        tree["DEVICE_METADATA"]["localhost"]["type"] = kind
    trees[4]["DEVICE_METADATA"]["localhost"] |= {"ecmp_hash_seed": "7", "namespace_id": "1"}
    qos = read(tmp_path, *trees)
    assert [switch.seed().value for switch in qos.switches] == [0, 10, 25, None, 8]


def test_a_reference_to_nothing_is_told(tmp_path: Path) -> None:
    """As in sonic-utilities' mock tables; the queue counts as having none."""
    qos = read(tmp_path, switch(QUEUE={"Ethernet0|1": {"scheduler": "[SCHEDULAR|s]"}}))
    assert qos.value("scheduling", 1) is None
    (line,) = qos.switches[0].dangling
    assert line.endswith("config_db.json:14: QUEUE.Ethernet0|1: names SCHEDULER|s, which the file does not have")


def test_what_is_not_used_is_counted_by_table(tmp_path: Path) -> None:
    """Rows nobody refers to, fields of others, and tables that are not read at all, over both files."""
    tree = switch(
        QUEUE={"Ethernet0|3": {"wred_profile": "A"}},
        WRED_PROFILE={"A": {**CURVE, "red_min_threshold": "1"}, "B": CURVE},
        NTP_SERVER={"10.0.0.9": {}, "10.0.0.10": {}},
    )
    assert list(read(tmp_path, tree, {**tree, **switch("leaf2")}).unused()) == [
        "NTP_SERVER: 4 of 4 rows",
        "WRED_PROFILE: 2 of 4 rows; of the others red_min_threshold",
    ]


def test_every_mistake_is_told_with_its_line(tmp_path: Path) -> None:
    """Seven in one report, in the order in which they are met."""
    tree = switch(
        QUEUE={"Ethernet0|9-": {}, "Ethernet0|3": {"wred_profile": "A", "scheduler": ["s"]}},
        WRED_PROFILE={"A": {**CURVE, "green_min_threshold": "1e6", "ecn": "on", "wred_green_enable": "maybe"}},
        PORT_QOS_MAP={"Ethernet0": {"pfc_enable": "3,9"}},
        PFC_WD=["Ethernet0"],
    )
    with pytest.raises(InputError) as raised:
        read(tmp_path, tree)
    told = str(raised.value).replace(f"{tmp_path}/switch0.config_db.json", "FILE")
    assert (
        told
        == """FILE:36: PFC_WD: a PFC_WD of another form
  allowed: rows of named fields
FILE:33: PORT_QOS_MAP.Ethernet0.pfc_enable: '3,9'
  allowed: priorities from 0 to 7, as 3,4
FILE:14: QUEUE.Ethernet0|9-: a key without a queue
  allowed: port and queue, as Ethernet0|3 or Ethernet0|3-4
FILE:25: WRED_PROFILE.A.green_min_threshold: '1e6'
  allowed: a whole number from 0 to 1099511627776
FILE:24: WRED_PROFILE.A.ecn: 'on'
  allowed: ecn_none, ecn_green, ecn_yellow, ecn_red, ecn_green_yellow, ecn_green_red, ecn_yellow_red, ecn_all
FILE:28: WRED_PROFILE.A.wred_green_enable: 'maybe'
  allowed: true or false
FILE:17: QUEUE.Ethernet0|3.scheduler: ['s']
  allowed: the name of a row"""
    )


def test_more_ports_than_a_switch_has_are_refused(tmp_path: Path) -> None:
    """Votes take memory by port."""
    with pytest.raises(
        InputError, match=rf"PORT: {MAX_PORTS + 1} ports\n  allowed: up to {MAX_PORTS}\n  next: give one"
    ):
        read(tmp_path, switch(num_ports=MAX_PORTS + 1))


def test_other_files_are_refused(tmp_path: Path) -> None:
    """QoS is read from SONiC alone."""
    path = tmp_path / "lab.csv"
    path.write_text("a,b\n")
    with pytest.raises(InputError, match=r"lab\.csv: no configuration of a SONiC switch\n  allowed: config_db\.json"):
        read_fabric_qos([path])


def test_thresholds_in_the_wrong_order_are_refused(tmp_path: Path) -> None:
    """A switch takes no such profile; it would be silent to mend it."""
    curve = {**CURVE, "green_min_threshold": "30"}
    with pytest.raises(InputError, match=r"A\.green_min_threshold: 30 B\n  allowed: up to green_max_threshold, 20 B"):
        read(tmp_path, switch(QUEUE={"Ethernet0|3": {"wred_profile": "A"}}, WRED_PROFILE={"A": curve}))


def test_a_dump_has_the_lines_of_its_fields(tmp_path: Path) -> None:
    """`sonic-db-dump` writes a row's fields below `value`."""
    rows = {
        f"{table}|{key}": row
        for table, rows in switch(PORT_QOS_MAP={"Ethernet0": {"pfc_enable": "3"}}).items()
        for key, row in rows.items()
    }
    dump = {key: {"ttl": -0.001, "type": "hash", "value": row} for key, row in rows.items()}
    elected = read(tmp_path, dump).elected[("pfc_enable",)]
    assert (elected.value, elected.first.where.rpartition("/")[2]) == (
        (3,),
        "switch0.config_db.json:21: PORT_QOS_MAP|Ethernet0.value.pfc_enable",
    )


def test_asics_in_one_file_vote_together(tmp_path: Path) -> None:
    """`show runningconfiguration all` has a namespace for each; the host's own has no ports."""
    asics = {f"asic{number}": switch(num_ports=2, PORT_QOS_MAP={"Ethernet0": {"pfc_enable": "3"}}) for number in (0, 1)}
    qos = read(tmp_path, {"localhost": switch(num_ports=0), **asics})
    assert [(found.name, found.asic) for found in qos.switches] == [("leaf1", "asic0"), ("leaf1", "asic1")]
    elected = qos.elected[("pfc_enable",)]
    assert (elected.num_votes, elected.num_voters, ": asic0.PORT_QOS_MAP.Ethernet0" in elected.first.where) == (
        2,
        4,
        True,
    )


def running(**rows: dict[str, str]) -> dict[str, Any]:
    """Return a dump of APPL_DB; the names of its rows have colons."""
    return {name.replace("__", ":"): {"type": "hash", "value": row} for name, row in rows.items()}


def test_a_running_switch_s_buffers_go_first(tmp_path: Path) -> None:
    """The dynamic model leaves them open in CONFIG_DB; APPL_DB has what was computed, with lines of its own."""
    config = switch(BUFFER_PG={"Ethernet0|3-4": {"profile": "NULL"}}, BUFFER_POOL={"p": {}}, QUEUE={})
    dump = running(
        **{
            "BUFFER_PG_TABLE__Ethernet0__3-4": {"profile": "[BUFFER_PROFILE_TABLE:made]"},
            "BUFFER_PROFILE_TABLE__made": {"pool": "p", "size": "100", "xoff": "900", "dynamic_th": "1"},
            "BUFFER_POOL_TABLE__p": {"size": "5000", "xoff": "70"},
        }
    )
    (tmp_path / "leaf1.config_db.json").write_text(json.dumps(config, indent=1))
    (tmp_path / "leaf1.appl_db.json").write_text(json.dumps(dump, indent=1))
    qos = read_fabric_qos([tmp_path / "leaf1.config_db.json", tmp_path / "leaf1.appl_db.json"])
    assert (qos.value("group_buffer", 4).xoff_bytes, qos.value("pool", "p").size_bytes) == (900, 5000)
    place = qos.elected[("group_buffer", 4)].first.where_of("xoff")
    assert place.endswith("leaf1.appl_db.json:13: BUFFER_PROFILE_TABLE:made.value.xoff")


def test_a_dump_of_no_switch_is_refused(tmp_path: Path) -> None:
    """Of two switches it could be either's."""
    for name in ("leaf1", "leaf2"):
        (tmp_path / f"{name}.config_db.json").write_text(json.dumps(switch(name)))
    (tmp_path / "dump.json").write_text(json.dumps(running(BUFFER_POOL_TABLE__p={"size": "1"})))
    with pytest.raises(InputError, match=r"dump\.json: a dump of APPL_DB of no one switch here\n  next: name it after"):
        read_fabric_qos(sorted(tmp_path.iterdir()))


def test_nested_and_flat_tables_may_share_a_file(tmp_path: Path) -> None:
    """As in sonic-utilities' tests: one flat row among nested tables."""
    tree = {**switch(QUEUE={"Ethernet0|3": {"wred_profile": "A"}}, WRED_PROFILE={"A": CURVE}), "VERSIONS|DATABASE": {}}
    assert read(tmp_path, tree).value("wred", 3) is not None


def test_a_profile_without_green_thresholds_is_told(tmp_path: Path) -> None:
    """It marks nothing that the engine sends."""
    qos = read(tmp_path, switch(QUEUE={"Ethernet0|3": {"wred_profile": "A"}}, WRED_PROFILE={"A": {"ecn": "ecn_all"}}))
    assert qos.value("wred", 3) is None
    (line,) = qos.switches[0].dangling
    assert "WRED_PROFILE.A: no green_min_threshold and green_max_threshold: its queues count as having none" in line
