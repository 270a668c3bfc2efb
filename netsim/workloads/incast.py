"""Incast: many NICs send to one at the same time."""

from dataclasses import dataclass, field

import numpy as np

from fabrictune.netsim.workloads.table import GeneratedTraffic, WorkloadSpec, one_message_each, raise_input_error
from fabrictune.topology.fabric import Fabric


@dataclass(frozen=True, kw_only=True)
class IncastSpec(WorkloadSpec):
    """`senders` NICs each send one message to `receiver`."""

    senders: int = field(metadata={"help": "how many NICs send; the first ones that are not the receiver"})
    message_bytes: int = field(metadata={"help": "size of each message"})
    receiver: int = field(default=0, metadata={"help": "NIC that receives"})


def make_incast(spec: IncastSpec, fabric: Fabric, seed: int) -> GeneratedTraffic:
    """Return the queue pairs and transfers of an incast; raises InputError."""
    if not 0 <= spec.receiver < fabric.num_nics:
        raise_input_error("incast.receiver", f"NIC {spec.receiver}", f"0 to {fabric.num_nics - 1}, the fabric's NICs")
    if not 1 <= spec.senders < fabric.num_nics:
        raise_input_error(
            "incast.senders", f"{spec.senders} senders", f"1 to {fabric.num_nics - 1}, the fabric's other NICs"
        )
    others = np.delete(np.arange(fabric.num_nics), spec.receiver)
    source_N = others[: spec.senders]
    return one_message_each(source_N, np.full(spec.senders, spec.receiver), spec.message_bytes, priority=spec.priority)
