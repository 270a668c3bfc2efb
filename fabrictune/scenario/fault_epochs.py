"""A scenario's faults on its network: names and times checked, and the paths that routing converges on."""

import warnings

from fabrictune.foundation.errors import FabrictuneWarning
from fabrictune.foundation.units import PS_PER_NS
from fabrictune.netsim.config.faults import Fault
from fabrictune.netsim.faults.timeline import changes, down_ports, spells
from fabrictune.scenario.places import placed
from fabrictune.scenario.schema import Scenario
from fabrictune.topology.failures import follow_failures
from fabrictune.topology.network import Network


def faults_of(scenario: Scenario) -> tuple[Fault, ...]:
    """Return the faults in the order of the file."""
    return tuple(chosen.spec for chosen in scenario.faults)


def with_faults(scenario: Scenario, network: Network) -> Network:
    """Return the network with an epoch after each failure and repair, if routing converges.

    Raises InputError with the line of each fault that cannot be.
    """
    with placed(scenario):
        held = spells(network.fabric, faults_of(scenario), scenario.engine)
    if scenario.convergence_delay_ns is None:
        return network
    if not scenario.faults:
        warnings.warn("convergence_delay has no effect without faults", FabrictuneWarning, stacklevel=2)
    states = down_ports(changes(network.fabric, held))
    return follow_failures(network, scenario.routing, states, delay_ps=scenario.convergence_delay_ns * PS_PER_NS)
