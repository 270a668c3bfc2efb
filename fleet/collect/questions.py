"""Everything that is read on a node: files, links and commands. What is not in these tables is not read.

A file is a pattern of paths. A command is a line of words without a shell; `{netdev}` stands for each network interface
of a device. Every command here only reads: the options that
change something are other ones. Files that only root may read count as not permitted for others.

Source: Linux, Documentation/ABI/stable/sysfs-class-infiniband; mlx5/core/lib/port.c and cong.c (cc_params); mlnx-tools
(qos, ecn below /sys/class/net); drivers/infiniband/core/cma_configfs.c; SONiC command reference.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SETTINGS_FILES = (
    *(f"/sys/class/infiniband/*/{name}" for name in ("board_id", "fw_ver", "hca_type")),
    *(f"/sys/class/infiniband/*/ports/*/{name}" for name in ("state", "phys_state", "rate", "link_layer")),
    *(f"/sys/class/infiniband/*/ports/*/{name}/*" for name in ("gids", "gid_attrs/types", "gid_attrs/ndevs")),
    *(
        f"/sys/class/infiniband/*/device/{name}"
        for name in ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width", "numa_node")
    ),
    *(f"/sys/class/net/*/{name}" for name in ("mtu", "operstate")),
    *(f"/sys/class/net/*/qos/{name}" for name in ("trust",)),
    "/sys/class/net/*/ecn/*/enable/*",
    "/sys/class/net/*/ecn/*/cnp_dscp",
    "/sys/kernel/debug/mlx5/*/cc_params/*",
    "/sys/kernel/config/rdma_cm/*/ports/*/default_roce_tos",
    "/sys/kernel/config/bnxt_re/*/ports/*/cc/*",
    "/proc/modules",
    "/proc/self/limits",
    "/etc/nccl.conf",
    "/etc/os-release",
    "/etc/sonic/config_db.json",
)
COUNTER_FILES = (
    *(f"/sys/class/infiniband/*/ports/*/{name}/*" for name in ("counters", "hw_counters")),
    "/sys/class/net/*/statistics/*",
)
LINKS = ("/sys/class/infiniband/*/device", "/sys/class/infiniband/*/device/driver", "/sys/class/net/*/device")
SETTINGS_COMMANDS = (
    "ethtool {netdev}",
    "ethtool -i {netdev}",
    "ethtool -a {netdev}",
    "ethtool --show-fec {netdev}",
    "mlnx_qos -i {netdev}",
    "dcb -j pfc show dev {netdev}",
    "dcb -j app show dev {netdev}",
    "ibv_devinfo",
    "lldpctl -f json0",
    "rdma -j -d resource show qp",
    "lspci -vvv",
    "nvidia-smi topo -m",
    "nvidia-smi --query-gpu=name,driver_version,pcie.link.gen.current,pcie.link.gen.max --format=csv,noheader",
    "scontrol show config",
    "vtysh -c 'show bgp summary json'",
    "vtysh -c 'show bfd peers json'",
)
COUNTER_COMMANDS = (
    "ethtool -S {netdev}",
    "rdma statistic show link",
    "show pfc counters",
)
ENVIRONMENT = ("NCCL_", "NVSHMEM_", "UCX_", "TORCH_NCCL_", "GLOO_", "RCCL_", "HCCL_")  # what its names begin with

MAX_FILE_BYTES = 4 * 2**20
MAX_ALL_BYTES = 16 * 2**20
COMMAND_TIMEOUT_S = 8


@dataclass(frozen=True, kw_only=True)
class Questions:
    """What one program reads."""

    files: Sequence[str]
    links: Sequence[str] = ()
    commands: Sequence[str] = ()
    environment: Sequence[str] = ()

    def as_json(self) -> Mapping[str, object]:
        """Return the questions and their limits as JSON values, for the program."""
        return {
            "files": list(self.files),
            "links": list(self.links),
            "commands": [words_of(command) for command in self.commands],
            "environment": list(self.environment),
            "max_file_bytes": MAX_FILE_BYTES,
            "max_all_bytes": MAX_ALL_BYTES,
            "command_timeout_s": COMMAND_TIMEOUT_S,
        }


def words_of(command: str) -> list[str]:
    """Return a command's words."""
    return shlex.split(command)


SETTINGS = Questions(files=SETTINGS_FILES, links=LINKS, commands=SETTINGS_COMMANDS, environment=ENVIRONMENT)
COUNTERS = Questions(
    files=(*COUNTER_FILES, "/sys/class/infiniband/*/ports/*/gid_attrs/ndevs/0", "/etc/sonic/config_db.json"),
    commands=("lldpctl -f json0", *COUNTER_COMMANDS),
)
