"""A scenario's faults on its network: names and times checked, and the paths that routing converges on."""

from typing import Any

from fabrictune.foundation.units import PS_PER_NS
from fabrictune.netsim.config.faults import Fault
from fabrictune.netsim.faults.timeline import FaultTimeline, changes, down_ports
from fabrictune.scenario.places import placed
from fabrictune.scenario.schema import Scenario
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.failures import follow_failures
from fabrictune.topology.network import Network


def faults_of(scenario: Scenario) -> tuple[Fault, ...]:
    """Return the faults in the order of the file."""
    return tuple(chosen.spec for chosen in scenario.faults)


def place_faults(scenario: Scenario, fabric: Fabric, config: Any) -> FaultTimeline:
    """Return the ports and times of the scenario's faults; raises InputError with the line of each that cannot be."""
    with placed(scenario):
        return FaultTimeline.of(fabric, faults_of(scenario), config)


def follow_faults(scenario: Scenario, network: Network, faults: FaultTimeline) -> Network:
    """Return the network with an epoch after each failure and repair, if routing converges."""
    if scenario.convergence_delay_ns is None:
        return network
    states = down_ports(changes(network.fabric, faults.intervals))
    return follow_failures(network, scenario.routing, states, delay_ps=scenario.convergence_delay_ns * PS_PER_NS)
