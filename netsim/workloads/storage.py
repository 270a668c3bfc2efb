"""Storage bursts: periodic writes from all NICs to a few, as in checkpointing."""

from dataclasses import dataclass, field

import numpy as np

from fabrictune.foundation.units import PS_PER_NS
from fabrictune.netsim.engine_inputs.limits import LAST_INSTANT_PS
from fabrictune.netsim.workloads.table import GeneratedTraffic, WorkloadSpec, one_message_each, raise_input_error
from fabrictune.topology.fabric import Fabric

MAX_MESSAGES = 5_000_000


@dataclass(frozen=True, kw_only=True)
class StorageSpec(WorkloadSpec):
    """Every other NIC writes to one of the last `servers` NICs, `bursts` times."""

    servers: int = field(metadata={"help": "how many NICs receive; the fabric's last ones"})
    message_bytes: int = field(metadata={"help": "what each NIC writes in a burst"})
    bursts: int = field(default=1, metadata={"help": "how often"})
    interval_ns: int = field(default=0, metadata={"help": "from the beginning of a burst to the next one's"})


def make_storage(spec: StorageSpec, fabric: Fabric, seed: int) -> GeneratedTraffic:
    """Return the writes, NIC c's to server c modulo their number; raises InputError."""
    num_writers = fabric.num_nics - spec.servers
    if spec.servers < 1 or num_writers < 1:
        raise_input_error(
            "storage.servers", f"{spec.servers} of {fabric.num_nics} NICs", "1 or more, and fewer than all"
        )
    if not 1 <= spec.bursts * num_writers <= MAX_MESSAGES:
        raise_input_error(
            "storage.bursts", f"{spec.bursts} of {num_writers} messages", f"1 to {MAX_MESSAGES:,} messages in all"
        )
    if not 0 <= spec.interval_ns <= 10**14:
        raise_input_error("storage.interval", f"{spec.interval_ns} ns", "0 to 28 hours")
    last_ps = (spec.bursts - 1) * spec.interval_ns * PS_PER_NS
    if last_ps > LAST_INSTANT_PS:
        raise_input_error("storage.bursts", f"the last at {last_ps} ps", f"up to {LAST_INSTANT_PS} ps, 53 days")
    burst_N, source_N = (index.ravel() for index in np.mgrid[0 : spec.bursts, 0:num_writers])
    start_ps_N = burst_N * spec.interval_ns * PS_PER_NS
    return one_message_each(
        source_N,
        num_writers + source_N % spec.servers,
        spec.message_bytes,
        start_ps_N=start_ps_N,
        priority=spec.priority,
    )
