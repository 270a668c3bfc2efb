"""The seed of the switches' hash: another seed puts the same flows on other paths, at once.

Source: Linux, `Documentation/networking/ip-sysctl.rst`, `fib_multipath_hash_seed` (6.11).
"""

from pathlib import Path

from fabrictune.foundation.network_namespaces import refuse, run_tool
from fabrictune.testbed.wiring import NamespaceFabric
from fabrictune.topology.fabric import NodeKind

_SEED = Path("/proc/sys/net/ipv4/fib_multipath_hash_seed")


def set_hash_seed(built: NamespaceFabric, seed: int) -> None:
    """Let all switches hash with a seed; raises UnavailableError where the kernel has none."""
    if not _SEED.exists():
        refuse("the kernel cannot seed its multipath hash", "use Linux 6.11 or later")
    for node, kind in zip(built.fabric.node_name_N, built.fabric.node_kind_N.tolist(), strict=True):
        if kind == NodeKind.SWITCH:
            run_tool(built.command(node, "sh", "-c", f"echo {seed} > {_SEED}"))
