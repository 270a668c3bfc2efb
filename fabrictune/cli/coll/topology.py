"""`fabrictune coll topology`: how far the NICs of a host are from its GPUs, by NCCL's topology file."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.options import json_option
from fabrictune.cli.framework.output import print_json, print_lines, print_table
from fabrictune.foundation.units import format_rate
from fabrictune.foundation.wording import count

if TYPE_CHECKING:
    from fabrictune.collectives.nccl.topology_xml import HostTopology, TopologyDevice

SUCCESS = 0


@click.command()
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@json_option
def topology(file: Path, as_json: bool) -> int:
    """Say which NICs of a host are nearest to each of its GPUs, as NCCL sees them.

    FILE is what NCCL_TOPO_DUMP_FILE names, a file for NCCL_TOPO_FILE, or `-` for standard input; other lines around the
    topology are left out, so that a job's output can be piped in. Distances are NCCL's: PIX under one PCI switch, PXB
    through several, PHB through the host bridge, SYS between NUMA nodes.

    \b
    Example:
      fabrictune coll topology topo.xml
      NCCL_TOPO_DUMP_FILE=/dev/stdout ./all_reduce_perf -g 8 -e 8 | fabrictune coll topology -
    """
    from fabrictune.collectives.nccl.topology_xml import read_topology

    host = read_topology(file)
    if as_json:
        print_json(_values(host))
        return SUCCESS
    sizes = (
        count(host.num_numa_nodes, "NUMA node"),
        count(len(host.gpus), "GPU"),
        count(len(host.network_devices), "NIC"),
    )
    print_lines([", ".join(sizes)])
    rows = [
        (
            str(gpu.index),
            gpu.bus_id,
            str(gpu.numa),
            ", ".join(map(_name, nearest)) or "none",
            host.distance(gpu, nearest[0]).name if nearest else "",
            ", ".join(dict.fromkeys(map(_rate, nearest))),
        )
        for gpu in sorted(host.gpus, key=lambda gpu: gpu.index)
        for nearest in [host.nearest_devices(gpu)]
    ]
    print_table(("GPU", "PCI", "NUMA", "nearest NICs", "distance", "rate"), rows)
    print_lines(f"note: {note}" for note in host.notes)
    return SUCCESS


def _name(device: "TopologyDevice") -> str:
    return device.name or f"number {device.index}"


def _rate(device: "TopologyDevice") -> str:
    return format_rate(device.rate_bps) if device.rate_bps > 0 else "not said"


def _values(host: "HostTopology") -> dict[str, Any]:
    return {
        "num_numa_nodes": host.num_numa_nodes,
        "gpus": [
            {
                "gpu_index": gpu.index,
                "pci": gpu.bus_id,
                "numa_index": gpu.numa,
                "nics": [
                    {
                        "nic": _name(device),
                        "distance": host.distance(gpu, device).name,
                        "rate_bps": device.rate_bps if device.rate_bps > 0 else None,
                    }
                    for device in host.network_devices
                ],
            }
            for gpu in host.gpus
        ],
        "notes": list(host.notes),
    }
