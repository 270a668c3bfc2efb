"""Sampled ports and queue pairs."""

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.topology.network import NO_PORT

MAX_SAMPLES = 20_000_000  # of ports, and of queue pairs


def probed_ports(path_QDH: IntArray, num_ports: int, probe: ProbeConfig | None) -> IntArray:
    """Return the ports to sample, ascending."""
    if probe is None or probe.interval_ns is None:
        return np.zeros(0, np.int64)
    if probe.ports == "all":
        return np.arange(num_ports)
    data_QH = path_QDH[:, 0]
    num_paths_P = np.bincount(data_QH[data_QH != NO_PORT], minlength=num_ports)
    busiest = np.argsort(-num_paths_P, kind="stable")[: probe.num_busiest]
    return np.sort(busiest[num_paths_P[busiest] > 0])


def probed_flows(num_pairs: int, probe: ProbeConfig | None) -> IntArray:
    """Return the queue pairs to sample, ascending; raises InputError for one that is not there."""
    if probe is None or probe.interval_ns is None:
        return np.zeros(0, np.int64)
    if probe.all_flows:
        return np.arange(num_pairs)
    flows = np.unique(np.array(probe.flows, np.int64))
    if len(flows) and flows[-1] >= num_pairs:
        raise InputError(
            Mistake(
                where="probe.flows", found=f"{flows[-1]}", allowed=f"a row of the network's {num_pairs} queue pairs"
            )
        )
    return flows
