"""Permutation: every NIC sends to one other and receives from one other, drawn at random."""

from dataclasses import dataclass, field

import numpy as np

from fabrictune.foundation.seeds import stream
from fabrictune.netsim.workloads.table import GeneratedTraffic, WorkloadSpec, one_message_each, raise_input_error
from fabrictune.topology.fabric import Fabric


@dataclass(frozen=True, kw_only=True)
class PermutationSpec(WorkloadSpec):
    """Every NIC sends one message to a partner drawn at random."""

    message_bytes: int = field(metadata={"help": "size of each message"})


def make_permutation(spec: PermutationSpec, fabric: Fabric, seed: int) -> GeneratedTraffic:
    """Return the queue pairs and transfers of a random permutation without fixed points; raises InputError."""
    num_nics = fabric.num_nics
    if num_nics < 2:
        raise_input_error("permutation", f"a fabric of {num_nics} NIC", "2 NICs or more")
    ring_N = stream(seed, "netsim", "permutation").permutation(num_nics)
    destination_N = np.empty(num_nics, np.int64)
    destination_N[ring_N] = np.roll(ring_N, -1)
    return one_message_each(np.arange(num_nics), destination_N, spec.message_bytes, priority=spec.priority)
