"""From a Scenario to what an engine takes. This is the only place where the rooms are put together.

Mistakes that only show here (a rank more than the fabric has GPUs, a receiver that does not exist) name the line of the
scenario they come from, unless they lie in another file, which they then name.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from cc.interface import CompiledLaw
from fabrictune.scenario.binding import key_of
from fabrictune.scenario.fabrics import make_fabric
from fabrictune.scenario.laws import compile_chosen
from fabrictune.scenario.schema import Scenario
from fabrictune.scenario.traffic import TRAFFIC
from foundation.errors import InputError, Mistake
from foundation.traces import TrafficTrace
from topology.fabric import Fabric
from topology.network import Network
from topology.routing import build_network

_SETTING = re.compile(r"[a-z]\w*(\.[a-z]\w*)*")


@dataclass(frozen=True, kw_only=True)
class Composed:
    """A scenario's network and what it has to carry: enough for every analysis that runs no engine."""

    scenario: Scenario
    network: Network
    traffic: TrafficTrace


def compose_fabric(scenario: Scenario) -> Fabric:
    """Build or import the scenario's fabric; raises InputError."""
    with placed(scenario, "fabric"):
        return make_fabric(scenario.fabric)


def compose(scenario: Scenario) -> Composed:
    """Build the scenario's fabric, traffic and paths; raises InputError."""
    fabric = compose_fabric(scenario)
    with placed(scenario, "traffic"):
        queue_pairs, traffic = TRAFFIC[scenario.traffic.name].make(scenario.traffic.spec, fabric, scenario.seed)
    with placed(scenario, "routing"):
        network = build_network(fabric, queue_pairs, scenario.routing)
    return Composed(scenario=scenario, network=network, traffic=traffic)


def compose_law(scenario: Scenario, *, trust_code: bool) -> CompiledLaw:
    """Compile the scenario's law; raises LawError, and UntrustedCodeError for one outside the project without leave."""
    with placed(scenario, "law"):
        return compile_chosen(scenario.law, document=scenario.document, trust_code=trust_code)


@contextmanager
def placed(scenario: Scenario, key: str) -> Iterator[None]:
    """Give mistakes that name a setting under `key` its place in the scenario file."""
    try:
        yield
    except InputError as error:
        moved = [_placed(mistake, scenario, key) for mistake in error.mistakes]
        raise type(error)(*moved) from error


def _placed(mistake: Mistake, scenario: Scenario, key: str) -> Mistake:
    if not _SETTING.fullmatch(mistake.where):
        return mistake
    names = [key_of(name) for name in mistake.where.split(".") if name != key]
    return replace(mistake, where=scenario.where(key, *names))
