"""Table of engines: the inputs of each, its `run`, and the settings of a scenario that it ignores.

An engine is one module with its settings (a frozen dataclass) and its `run`, and one line in ENGINES. Its settings have
`time_limit_ns`, and `with_timers(TimerModel)` unless it ignores `adapter`.

Its record has `outcome` in its head and the tables `fabric` and `transfers`; metrics of tables and columns that it does
not write are unknown.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from fabrictune.foundation.finding_rules.settings import RuleSettings
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.traces import TrafficTrace
from fabrictune.netsim import packet
from fabrictune.netsim.config.capture import CaptureConfig
from fabrictune.netsim.config.fluid import FluidConfig
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.faults.timeline import FaultTimeline
from fabrictune.netsim.fluid import engine as fluid
from fabrictune.topology.network import Network


class RunFunction(Protocol):
    """An engine's `run`: simulates a traffic trace; raises InputError for what cannot be run, LawError."""

    def __call__(
        self,
        network: Network,
        traffic: TrafficTrace,
        law: Any,  # CompiledLaw, None for an engine that ignores laws
        config: Any,  # the engine's settings
        *,
        seed: int,
        probe: ProbeConfig | None,
        capture: CaptureConfig | None,
        faults: FaultTimeline,
        rules: RuleSettings,  # thresholds of findings
        progress: Progress | None,
    ) -> RunRecord: ...


@dataclass(frozen=True, kw_only=True)
class Engine:
    """One way to simulate a scenario."""

    spec: type  # its settings
    run: RunFunction
    ignores: frozenset[str] = frozenset()  # keys of a scenario that have no effect in it
    reasons: Mapping[str, str] = field(default_factory=dict)  # why one of them has none, and what to do instead


DEFAULT_ENGINE = "packet"
ENGINES: Mapping[str, Engine] = {
    DEFAULT_ENGINE: Engine(spec=PacketConfig, run=packet.run),
    "fluid": Engine(spec=FluidConfig, run=fluid.run, ignores=frozenset(fluid.NOT_HERE), reasons=fluid.NOT_HERE),
}
