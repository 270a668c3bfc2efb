"""Each kind of fault that is planted in the clean site is found, by its own rule, and nothing else is."""

from collections.abc import Callable
from typing import Any

import pytest

from fabrictune.fleet.audit.changes import propose_changes
from fabrictune.fleet.audit.report import judge_all
from fabrictune.fleet.audit.rule_files import our_rules
from fabrictune.fleet.facts.derived import fleet_facts
from tests.fleet.site import GPU_QUERY, Site, clean_site

QOS, PORTS = "mlnx_qos -i eth0", "Ethernet0,Ethernet8,Ethernet16,Ethernet24,Ethernet32"
RDMA = "/sys/class/infiniband/mlx5_0"
Plant = Callable[[Site], object]


def text(node: str, name: str, old: str, new: str) -> Plant:
    return lambda site: site.replace(node, name, old, new)


def table(node: str, *keys: str, to: Any) -> Plant:
    def plant(site: Site) -> None:
        row = site.configs[node]
        for key in keys[:-1]:
            row = row[key]
        row[keys[-1]] = to

    return plant


def missing(node: str, *keys: str) -> Plant:
    def plant(site: Site) -> None:
        row = site.configs[node]
        for key in keys[:-1]:
            row = row[key]
        del row[keys[-1]]

    return plant


def all_switches(*keys: str, to: Any) -> Plant:
    return lambda site: [table(node, *keys, to=to)(site) for node in site.configs]


def everywhere(name: str, old: str, new: str) -> Plant:
    def plant(site: Site) -> None:
        for node in site.texts:
            site.replace(node, name, old, new)

    return plant


FAULTS: dict[str, tuple[Plant, set[str]]] = {
    "PFC off on one NIC": (
        text("gpu2", QOS, "0   0   0   1", "0   0   0   0"),
        {"pfc-on-one-side", "pfc-differs", "data-lossy-on-nic"},
    ),
    "trust of the VLAN tag": (text("gpu1", QOS, "state: dscp", "state: pcp"), {"trust-dscp"}),
    "stock DSCP map on a leaf": (
        table("leaf1", "DSCP_TO_TC_MAP", "ROCE", "26", to="0"),
        {"data-lossy-on-switch", "dscp-map-differs"},
    ),
    "job that marks another class": (everywhere("/etc/nccl.conf", "TC=106", "TC=96"), {"data-lossy-on-switch"}),
    "one host's setting of the job": (
        text("gpu3", "/etc/nccl.conf", "TIMEOUT=22", "TIMEOUT=21"),
        {"environment-differs"},
    ),
    "setting missing on a host": (text("gpu4", "/etc/nccl.conf", "NCCL_IB_TIMEOUT=22\n", ""), {"environment-differs"}),
    "retry count beyond its field": (everywhere("/etc/nccl.conf", "CNT=7", "CNT=15"), {"retry-count"}),
    "list of NICs by prefix": (everywhere("/etc/nccl.conf", "HCA==", "HCA="), {"hca-by-prefix"}),
    "GID index by hand": (
        everywhere("/etc/nccl.conf", "NCCL_IB_TC", "NCCL_IB_GID_INDEX=3\nNCCL_IB_TC"),
        {"gid-index-set"},
    ),
    "timer shorter than the watchdog": (
        everywhere("/etc/nccl.conf", "OUT=22\nNCCL_IB_RETRY_CNT=7", "OUT=4\nNCCL_IB_RETRY_CNT=1"),
        {"timer-shorter-than-watchdog"},
    ),
    "MTU of one NIC": (text("gpu1", "/sys/class/net/eth1/mtu", "9000", "4200"), {"mtu-differs"}),
    "MTU of a switch port": (table("leaf2", "PORT", "Ethernet8", "mtu", to="1500"), {"switch-mtu"}),
    "RDMA MTU": (text("gpu2", "ibv_devinfo", "active_mtu:\t\t4096 (5)", "active_mtu:\t\t1024 (3)"), {"small-rdma-mtu"}),
    "NIC at half its rate": (
        text("gpu1", f"{RDMA}/ports/1/rate", "400 Gb/sec (4X NDR)", "200 Gb/sec (4X HDR)"),
        {"rate-lower-than-peers", "link-speed"},
    ),
    "port down": (text("gpu1", f"{RDMA}/ports/1/state", "4: ACTIVE", "1: DOWN"), {"port-down"}),
    "no address": (text("gpu1", f"{RDMA}/ports/1/gid_attrs/types/3", "RoCE v2", "IB/RoCE v1"), {"no-roce-address"}),
    "FEC of one end": (text("gpu4", "ethtool --show-fec eth1", ": RS", ": LLRS"), {"fec-differs"}),
    "older firmware": (text("gpu2", f"{RDMA}/fw_ver", "28.43.2026", "28.39.1002"), {"firmware-differs"}),
    "half the PCIe lanes": (text("gpu3", f"{RDMA}/device/current_link_width", "16", "8"), {"pcie-width"}),
    "older PCIe generation": (text("gpu3", f"{RDMA}/device/current_link_speed", "32.0", "16.0"), {"pcie-speed"}),
    "global pause": (text("gpu1", "ethtool -a eth0", "RX:\t\toff", "RX:\t\ton"), {"global-pause"}),
    "DCQCN off": (text("gpu1", "/sys/class/net/eth0/ecn/roce_rp/enable/3", "1", "0"), {"congestion-control-off"}),
    "DCQCN parameter": (
        text("gpu1", "/sys/kernel/debug/mlx5/0000:1a:00.0/cc_params/rp_ai_rate", "5", "50"),
        {"congestion-parameters-differ"},
    ),
    "CNPs among the data": (text("gpu1", "/sys/class/net/eth0/ecn/roce_np/cnp_dscp", "48", "26"), {"cnp-with-data"}),
    "limit on locked memory": (
        text("gpu2", "/proc/self/limits", "unlimited            unlimited", "65536                65536"),
        {"locked-memory"},
    ),
    "ACS on": (
        text("gpu2", "lspci -vvv", "ACSCtl:\tSrcValid- TransBlk- ReqRedir-", "ACSCtl:\tSrcValid- TransBlk- ReqRedir+"),
        {"acs-redirects"},
    ),
    "no peer memory": (text("gpu2", "/proc/modules", "nvidia_peermem", "nvidia"), {"no-peer-memory"}),
    "GPU far from its NIC": (
        text("gpu2", "nvidia-smi topo -m", "GPU0\t X \tNV18\tPIX\tSYS", "GPU0\t X \tNV18\tNODE\tSYS"),
        {"gpu-far-from-nic"},
    ),
    "GPU at an older generation": (text("gpu2", GPU_QUERY, ", 5, 5\n", ", 3, 5\n"), {"gpu-pcie-generation"}),
    "PFC on more priorities of a switch": (
        table("leaf1", "PORT_QOS_MAP", PORTS, "pfc_enable", to="3,4"),
        {"pfc-on-one-side", "switch-pfc-differs", "watchdog-priorities", "no-ecn", "no-headroom"},
    ),
    "watchdog on another priority": (
        table("leaf1", "PORT_QOS_MAP", PORTS, "pfcwd_sw_enable", to="4"),
        {"watchdog-priorities"},
    ),
    "no watchdog": (missing("leaf1", "PFC_WD", "Ethernet8"), {"no-watchdog"}),
    "no ECN": (table("spine1", "WRED_PROFILE", "ROCE_LOSSLESS", "ecn", to="ecn_none"), {"no-ecn"}),
    "ECN beyond PFC": (
        all_switches("WRED_PROFILE", "ROCE_LOSSLESS", "green_max_threshold", to="50000000"),
        {"ecn-after-pfc"},
    ),
    "WRED of one switch": (
        table("leaf2", "WRED_PROFILE", "ROCE_LOSSLESS", "green_min_threshold", to="500000"),
        {"wred-differs"},
    ),
    "no headroom": (missing("leaf1", "BUFFER_PG", "Ethernet0,Ethernet8,Ethernet16,Ethernet24|3"), {"no-headroom"}),
    "hash of addresses alone": (
        table("leaf1", "SWITCH_HASH", "GLOBAL", "ecmp_hash_ipv4_rdma", to=["SRC_IP", "DST_IP"]),
        {"hash-without-ports"},
    ),
    "one hash for both tiers": (
        table("spine1", "DEVICE_METADATA", "localhost", "type", to="ToRRouter"),
        {"hash-polarized"},
    ),
}


def findings_of(site: Site) -> set[str]:
    report, _ = judge_all(our_rules(), fleet_facts(site.readings()))
    return {finding.id.removeprefix("audit.") for finding in report.findings}


def test_the_clean_site_has_no_finding() -> None:
    """Every rule but the two about what this site does not have ran, and none objects."""
    report, _ = judge_all(our_rules(), fleet_facts(clean_site().readings()))
    assert report.findings == ()
    assert [check.rule for check in report.checks if check.reason] == ["audit.gid-index-set", "audit.bgp-down"]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str) -> None:
    """By the rules that are about it, and by no other: a consequence that a rule names is one of them."""
    plant, expected = FAULTS[fault]
    site = clean_site()
    plant(site)
    assert findings_of(site) == expected


def test_there_are_more_than_twenty_kinds() -> None:
    """As many rules of ours are shown to find something."""
    shown = set.union(*(rules for _, rules in FAULTS.values()))
    assert len(FAULTS) > 20
    assert {rule.id for rule in our_rules()} - shown == {"bgp-down"}


def test_changes_answer_what_was_found() -> None:
    """A NIC's line, a switch's patch where its value is, and a setting with the flap that is then survived."""
    site = clean_site()
    for fault in ("PFC off on one NIC", "watchdog on another priority", "timer shorter than the watchdog"):
        FAULTS[fault][0](site)
    facts = fleet_facts(site.readings())
    _, objections = judge_all(our_rules(), facts)
    changes = propose_changes(objections, facts)
    assert [(change.node, change.text) for change in changes if change.kind == "nic"] == [
        ("gpu2", "mlnx_qos -i eth0 --pfc 0,0,0,1,0,0,0,0")
    ]
    assert [(change.node, change.text) for change in changes if change.kind == "switch"] == [
        (
            "leaf1",
            '{"op": "replace", "path": "/PORT_QOS_MAP/Ethernet0,Ethernet8,Ethernet16,Ethernet24,Ethernet32/'
            'pfcwd_sw_enable", "value": "3"}',
        )
    ]
    (env,) = [change for change in changes if change.kind == "env"]
    assert env.text == "NCCL_IB_TIMEOUT=22"
    assert "s -> " in env.effect
