"""All-to-all: every NIC sends a message to each other NIC, its right neighbour's first."""

from dataclasses import dataclass, field

import numpy as np

from fabrictune.netsim.workloads.table import GeneratedTraffic, WorkloadSpec, one_message_each, raise_input_error
from fabrictune.topology.fabric import Fabric

MAX_MESSAGES = 5_000_000


@dataclass(frozen=True, kw_only=True)
class AllToAllSpec(WorkloadSpec):
    """Every NIC sends `message_bytes` to each other NIC, all at once."""

    message_bytes: int = field(metadata={"help": "size of each message"})


def make_all_to_all(spec: AllToAllSpec, fabric: Fabric, seed: int) -> GeneratedTraffic:
    """Return n(n - 1) messages, the k-th of every NIC to the k-th behind it; raises InputError."""
    num_nics = fabric.num_nics
    if num_nics * (num_nics - 1) > MAX_MESSAGES:
        raise_input_error("all_to_all", f"a fabric of {num_nics} NICs", f"{MAX_MESSAGES:,} messages in all")
    step_N, source_N = (index.ravel() for index in np.mgrid[1 : max(num_nics, 1), 0:num_nics])
    return one_message_each(source_N, (source_N + step_N) % num_nics, spec.message_bytes, priority=spec.priority)
