"""The unequal load of a NIC's two ports under dual-ToR, where aggregation switches hash between its ToRs.

HPN saw about three times as much on one port as on the other in production, before its planes were separated. With two
flows into a NIC each chance does the same: both on one port, or one on each, are equally likely, so the fuller port
carries 1.5 flows on average and the emptier 0.5.

Source: Qian et al., "Alibaba HPN", SIGCOMM'24, section 6.1 and figure 13.
"""

import numpy as np

from fabrictune.foundation.cases import Case, around
from fabrictune.topology.builders.clos import build_clos
from fabrictune.topology.builders.hpn import HpnSpec
from fabrictune.topology.ecmp.collisions import find_collisions
from fabrictune.topology.fabric import NO_NIC
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.path_tracing import PathTracer
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.routing import data_headers

NUM_SEEDS = 60  # of 128 NICs each: the ratio's standard error is 4 / sqrt(7680) = 0.05
FLOWS_PER_NIC = 2


def cases() -> tuple[Case, ...]:
    """Return the case of dual-ToR."""
    return (
        Case(
            name="topology.dual-tor-port-imbalance",
            source="HPN (SIGCOMM'24) 6.1, figure 13: about 3 times in a plain CLOS; of two flows, 1.5 over 0.5",
            unit="fuller over emptier port",
            trust="C",
            **around(3.0, 0.07),
            run=_imbalance,
        ),
    )


def _imbalance() -> float:
    """Return the flows on the fuller port of every NIC over those on its emptier, over rings between two segments."""
    fabric = build_clos(
        HpnSpec(num_hosts=16, hosts_per_tor_set=8, tiers=2, planes=1, uplinks_per_tor=8, uplinks_per_aggregation=None)
    )
    source_Q = np.repeat(np.arange(fabric.num_nics), FLOWS_PER_NIC)
    destination_Q = (source_Q + fabric.num_nics // 2) % fabric.num_nics  # the same NIC of the other segment
    queue_pairs = make_queue_pairs(source_Q, destination_Q)
    routes, headers = PathTracer(fabric, source_Q, destination_Q), data_headers(fabric, queue_pairs)
    port_P = np.nonzero(fabric.port_nic_P != NO_NIC)[0]
    into_C2 = fabric.port_peer_P[port_P[np.argsort(fabric.port_nic_P[port_P], kind="stable")]].reshape(-1, 2)
    load_SC2 = np.stack(
        [
            find_collisions(fabric, queue_pairs, routes.paths(headers, HashSpec(seed=seed))).num_flows_P[into_C2]
            for seed in range(NUM_SEEDS)
        ]
    )
    return float(load_SC2.max(axis=2).sum() / load_SC2.min(axis=2).sum())
