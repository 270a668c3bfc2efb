"""A small RoCE site as its nodes would answer: four hosts of two rails and GPUs, a leaf a rail, a spine. All is well.

A test changes what one command or file says, and nothing else: that is a planted fault. Texts are in the form of the
tools of mlx5 hosts and SONiC switches.
"""

import copy
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fabrictune.fleet.collect.node_reading import CONFIG_DB, NodeReading, Section

HOSTS = ("gpu1", "gpu2", "gpu3", "gpu4")
RAILS = ("eth0", "eth1")
LEAVES = ("leaf1", "leaf2")
SPINE = "spine1"
GOLDEN = Path(__file__).parents[1] / "golden"

MLNX_QOS = """\
DCBX mode: OS controlled
Priority trust state: dscp
dscp2prio mapping:
\tprio:0 dscp:07,06,05,04,03,02,01,00,
\tprio:1 dscp:15,14,13,12,11,10,09,08,
\tprio:2 dscp:23,22,21,20,19,18,17,16,
\tprio:3 dscp:31,30,29,28,27,26,25,24,
\tprio:4 dscp:39,38,37,36,35,34,33,32,
\tprio:5 dscp:47,46,45,44,43,42,41,40,
\tprio:6 dscp:55,54,53,52,51,50,49,48,
\tprio:7 dscp:63,62,61,60,59,58,57,56,
default priority:
Receive buffer size (bytes): 20016,156096,0,0,0,0,0,0,
Cable len: 7
PFC configuration:
\tpriority    0   1   2   3   4   5   6   7
\tenabled     0   0   0   1   0   0   0   0
\tbuffer      0   0   0   1   0   0   0   0
tc: 0 ratelimit: unlimited, tsa: vendor
\t priority:  1
tc: 1 ratelimit: unlimited, tsa: vendor
\t priority:  0
"""
ETHTOOL = """\
Settings for {netdev}:
\tSupported ports: [ Backplane ]
\tSpeed: 400000Mb/s
\tDuplex: Full
\tAuto-negotiation: on
\tLink detected: yes
"""
DRIVER = """\
driver: mlx5_core
version: 24.10-1.1.4
firmware-version: 28.43.2026 (MT_0000000838)
bus-info: 0000:{bus}:00.0
"""
PAUSE = "Pause parameters for {netdev}:\nAutonegotiate:\toff\nRX:\t\toff\nTX:\t\toff\n"
FEC = "FEC parameters for {netdev}:\nSupported/Configured FEC encodings: Auto\nActive FEC encoding: RS\n"
DEVINFO = """\
hca_id:\t{rdma}
\ttransport:\t\t\tInfiniBand (0)
\tfw_ver:\t\t\t\t28.43.2026
\tphys_port_cnt:\t\t\t1
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_ACTIVE (4)
\t\t\tmax_mtu:\t\t4096 (5)
\t\t\tactive_mtu:\t\t4096 (5)
\t\t\tlink_layer:\t\tEthernet
"""
TOPO = """\
\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity
GPU0\t X \tNV18\tPIX\tSYS\t0-31\t0
GPU1\tNV18\t X \tSYS\tPIX\t32-63\t1
NIC0\tPIX\tSYS\t X \tSYS
NIC1\tSYS\tPIX\tSYS\t X

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_1
"""
GPU_QUERY = "nvidia-smi --query-gpu=name,driver_version,pcie.link.gen.current,pcie.link.gen.max --format=csv,noheader"
GPUS = "NVIDIA H100 80GB HBM3, 550.90.07, 5, 5\n" * 2
LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max locked memory         unlimited            unlimited            bytes
"""
NCCL = "NCCL_IB_HCA==mlx5_0,mlx5_1\nNCCL_IB_TC=106\nNCCL_IB_TIMEOUT=22\nNCCL_IB_RETRY_CNT=7\n"
LSPCI = """\
00:01.0 PCI bridge: Intel Corporation Device 352a (rev 30)
\tCapabilities: [110 v1] Access Control Services
\t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-
\t\tACSCtl:\tSrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-
"""
SLURM = "SlurmdTimeout           = 300 sec\nKillWait                = 30 sec\nInactiveLimit           = 0 sec\n"


@dataclass
class Site:
    """What each node's files and commands say, by node and by path or command."""

    texts: dict[str, dict[str, str]] = field(default_factory=dict)
    configs: dict[str, dict[str, Any]] = field(default_factory=dict)  # of switches

    def readings(self) -> tuple[NodeReading, ...]:
        """Return what `fleet collect` would have brought back."""
        hosts = (reading(node, texts) for node, texts in self.texts.items())
        return (*hosts, *(reading(node, {CONFIG_DB: json.dumps(config)}) for node, config in self.configs.items()))

    def copy(self) -> "Site":
        """Return a site of its own."""
        return copy.deepcopy(self)

    def replace(self, node: str, name: str, old: str, new: str) -> None:
        """Change one text, which must have what is replaced."""
        assert old in self.texts[node][name], (node, name, old)
        self.texts[node][name] = self.texts[node][name].replace(old, new)


def clean_site() -> Site:
    """Return the site without a fault."""
    site = Site()
    for number, host in enumerate(HOSTS):
        site.texts[host] = host_texts(number)
    for leaf_number, leaf in enumerate(LEAVES):
        site.configs[leaf] = switch_config(leaf, "ToRRouter", _leaf_neighbours(leaf_number))
    site.configs[SPINE] = switch_config(
        SPINE, "LeafRouter", {f"Ethernet{8 * n}": (leaf, "Ethernet32") for n, leaf in enumerate(LEAVES)}
    )
    return site


def reading(node: str, texts: dict[str, str]) -> NodeReading:
    """Return a reading of texts, told apart by their names."""
    sections = []
    for name, text in texts.items():
        kind: Any = "link" if name.endswith(("/device", "/driver")) else "file" if name.startswith("/") else "command"
        if name == "processes":
            kind = "environment"
        sections.append(Section(kind=kind, name=name, lines=tuple(text.rstrip("\n").split("\n"))))
    return NodeReading(name=node, how="python3", sections=tuple(sections))


def host_texts(number: int) -> dict[str, str]:
    """Return what a host of two ConnectX-7 and two GPUs says."""
    texts: dict[str, str] = {}
    for rail, netdev in enumerate(RAILS):
        rdma, bus = f"mlx5_{rail}", ("1a", "9a")[rail]
        texts |= _rdma_texts(rdma, netdev, bus, address=f"0a{rail + 1:02x}:000{number + 1}")
        for command, form in (("ethtool", ETHTOOL), ("ethtool -i", DRIVER), ("ethtool -a", PAUSE)):
            texts[f"{command} {netdev}"] = form.format(netdev=netdev, bus=bus)
        texts[f"ethtool --show-fec {netdev}"] = FEC.format(netdev=netdev)
        texts[f"mlnx_qos -i {netdev}"] = MLNX_QOS
    texts["ibv_devinfo"] = "".join(DEVINFO.format(rdma=f"mlx5_{rail}") for rail in range(len(RAILS)))
    texts["lldpctl -f json0"] = lldp(
        {netdev: (LEAVES[rail], f"Ethernet{8 * number}") for rail, netdev in enumerate(RAILS)}
    )
    texts |= {
        "nvidia-smi topo -m": TOPO,
        GPU_QUERY: GPUS,
        "lspci -vvv": LSPCI,
        "scontrol show config": SLURM,
        "/proc/modules": "nvidia_peermem 16384 0 - Live 0x0\nmlx5_ib 450560 0 - Live 0x0\n",
        "/proc/self/limits": LIMITS,
        "/etc/nccl.conf": NCCL,
    }
    return texts


def lldp(neighbours: dict[str, tuple[str, str]]) -> str:
    """Return the neighbours of a node as `lldpctl -f json0` prints them."""
    rows = [
        {
            "name": local,
            "via": "LLDP",
            "chassis": [{"name": [{"value": name}], "id": [{"type": "mac", "value": "00:00:5e:00:53:01"}]}],
            "port": [{"id": [{"type": "ifname", "value": port}]}],
        }
        for local, (name, port) in neighbours.items()
    ]
    return json.dumps({"lldp": [{"interface": rows}]}, indent=1)


def switch_config(name: str, kind: str, neighbours: dict[str, tuple[str, str]]) -> dict[str, Any]:
    """Return the configuration of a switch whose ports are all alike: PFC and ECN on priority 3, DSCP 26 in it."""
    config: dict[str, Any] = json.loads((GOLDEN / "topology" / "qos-leaf1.config_db.json").read_text())
    ports = [f"Ethernet{8 * number}" for number in range(5)]
    config["DEVICE_METADATA"]["localhost"] |= {"hostname": name, "type": kind}
    config["PORT"] = {
        port: {"speed": "400000", "admin_status": "up", "mtu": "9100", "fec": "rs", "lanes": "1"} for port in ports
    }
    config["DEVICE_NEIGHBOR"] = {port: {"name": far, "port": end} for port, (far, end) in neighbours.items()}
    config["DSCP_TO_TC_MAP"]["ROCE"] |= {str(dscp): "0" for dscp in range(64) if dscp not in (26, 48)}
    return config


def _leaf_neighbours(leaf_number: int) -> dict[str, tuple[str, str]]:
    ports = {f"Ethernet{8 * number}": (host, RAILS[leaf_number]) for number, host in enumerate(HOSTS)}
    return {**ports, "Ethernet32": (SPINE, f"Ethernet{8 * leaf_number}")}


def _rdma_texts(rdma: str, netdev: str, bus: str, *, address: str) -> dict[str, str]:
    base, port = f"/sys/class/infiniband/{rdma}", f"/sys/class/infiniband/{rdma}/ports/1"
    return {
        f"{base}/device": f"/sys/devices/pci0000:{bus}/0000:{bus}:00.0\n",
        f"{base}/device/driver": "/sys/bus/pci/drivers/mlx5_core\n",
        f"{base}/board_id": "MT_0000000838\n",
        f"{base}/fw_ver": "28.43.2026\n",
        f"{base}/hca_type": "MT4129\n",
        f"{port}/state": "4: ACTIVE\n",
        f"{port}/phys_state": "5: LinkUp\n",
        f"{port}/rate": "400 Gb/sec (4X NDR)\n",
        f"{port}/link_layer": "Ethernet\n",
        f"{port}/gids/0": "fe80:0000:0000:0000:0000:5eff:fe00:5301\n",
        f"{port}/gids/3": f"0000:0000:0000:0000:0000:ffff:{address}\n",
        f"{port}/gid_attrs/types/0": "IB/RoCE v1\n",
        f"{port}/gid_attrs/types/3": "RoCE v2\n",
        f"{port}/gid_attrs/ndevs/0": f"{netdev}\n",
        f"{port}/gid_attrs/ndevs/3": f"{netdev}\n",
        f"{base}/device/current_link_speed": "32.0 GT/s PCIe\n",
        f"{base}/device/current_link_width": "16\n",
        f"{base}/device/max_link_speed": "32.0 GT/s PCIe\n",
        f"{base}/device/max_link_width": "16\n",
        f"{base}/device/numa_node": "0\n",
        f"/sys/class/net/{netdev}/mtu": "9000\n",
        f"/sys/class/net/{netdev}/operstate": "up\n",
        f"/sys/class/net/{netdev}/ecn/roce_np/enable/3": "1\n",
        f"/sys/class/net/{netdev}/ecn/roce_rp/enable/3": "1\n",
        f"/sys/class/net/{netdev}/ecn/roce_np/cnp_dscp": "48\n",
        f"/sys/kernel/debug/mlx5/0000:{bus}:00.0/cc_params/rp_ai_rate": "5\n",
        f"/sys/kernel/config/rdma_cm/{rdma}/ports/1/default_roce_tos": "106\n",
    }
