"""Links that were busy too long: beside the worst, those that are half as late."""

import numpy as np
import pytest

from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Dependencies, Operation
from fabrictune.testbed.paths import Flow
from fabrictune.testbed.plan import plan_testbed
from fabrictune.testbed.port_watch import PortUse
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.lookup import find_port
from fabrictune.validate.busy_links import busy_links
from fabrictune.validate.step_plan import StepPlan
from fabrictune.validate.testbed_training import StepEvent

NUM_HOSTS = 4
FABRIC = plan_testbed(
    build_clos(ClosSpec(num_hosts=NUM_HOSTS, hosts_per_tor_set=NUM_HOSTS, nics_per_host=1, tiers=2, uplinks_per_tor=1)),
    rate_bps=8_000_000,
)
UP = [find_port(FABRIC, f"host{host}:nic0", where="") for host in range(NUM_HOSTS)]
DOWN = [int(FABRIC.port_peer_P[port]) for port in UP]


def plan() -> StepPlan:
    """Return a step with one gathering round a ring of four hosts."""
    ranks = np.arange(NUM_HOSTS)
    requests = CommTrace(
        groups=(tuple(ranks.tolist()),),
        rank_N=ranks,
        operation_N=np.full(NUM_HOSTS, Operation.ALL_GATHER),
        group_N=np.zeros(NUM_HOSTS, np.int64),
        peer_N=np.full(NUM_HOSTS, UNKNOWN),
        bytes_N=np.full(NUM_HOSTS, 1_000_000),
        compute_before_ps_N=np.zeros(NUM_HOSTS, np.int64),
        step_N=np.zeros(NUM_HOSTS, np.int64),
        axis_N=("dp",) * NUM_HOSTS,
        policy_N=("none",) * NUM_HOSTS,
        tag_N=("",) * NUM_HOSTS,
        dependencies=Dependencies.none(NUM_HOSTS),
    )
    paths: dict[Flow, tuple[int, ...]] = {}
    for source in range(NUM_HOSTS):
        target = (source + 1) % NUM_HOSTS
        flow = Flow(source_nic=source, destination_nic=target, source_port=1, destination_port=2)
        paths |= {flow: (UP[source], DOWN[target]), flow.reverse: (UP[target], DOWN[source])}
    return StepPlan(requests=requests, paths=paths, num_ports=FABRIC.num_ports)


@pytest.mark.parametrize(("second", "num_named"), [(1.9, 2), (1.6, 2), (1.4, 1)])
def test_beside_the_worst_link_only_those_half_as_late_are_named(second: float, num_named: int) -> None:
    """One NIC is busy twice as long as its bytes take; what waits for it comes in bursts at another."""
    own = plan()
    planned_s_P = own.wire_bytes_P * 8 / FABRIC.port_rate_bps_P
    factor_P = np.ones(FABRIC.num_ports)
    factor_P[[UP[0], UP[2]]] = 2.0, second
    use = PortUse(sent_bytes_P=own.wire_bytes_P, busy_s_P=factor_P * planned_s_P, num_readings=100)
    events = [StepEvent(step=step, seconds=2.0, began_s=0.0, waited_s=0.0, use=use, plan=own) for step in range(5)]
    named = [link.port for link in busy_links(FABRIC, events, CATALOG_SETTINGS)]
    assert named == [UP[0], UP[2]][:num_named]
