"""The fluid engine: `run` moves one traffic trace at max-min fair shares, without packets but in audits."""

from fabrictune.cc.interface import CompiledLaw
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.traces import TrafficTrace
from fabrictune.netsim.config.capture import CaptureConfig
from fabrictune.netsim.config.fluid import FluidConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.engine_inputs.inputs import make_engine_inputs
from fabrictune.netsim.faults.timeline import NO_FAULTS, FaultTimeline
from fabrictune.netsim.fluid.limits import require_shares
from fabrictune.netsim.fluid.run import run_fluid
from fabrictune.netsim.packet import make_simulation
from fabrictune.topology.network import Network

NOT_HERE = {
    "adapter": "no packet is sent again; the engine 'packet' has its timers",
    "probe": "there are no queues to sample; the engine 'packet' has them",
    "capture": "there are no packets to capture; the engine 'packet' has them",
}


def run(
    network: Network,
    traffic: TrafficTrace,
    law: CompiledLaw,
    config: FluidConfig,
    *,
    seed: int = 0,
    probe: ProbeConfig | None = None,
    capture: CaptureConfig | None = None,
    faults: FaultTimeline = NO_FAULTS,
    rules: RuleSettings = CATALOG_SETTINGS,
    progress: Progress | None = None,
) -> RunRecord:
    """Move all traffic at its shares until every transfer is done, the time limit, or Ctrl-C.

    The record has the tables `fabric` and `transfers`. Of the law its headers count, and its audits run under it.
    Raises InputError for what shares do not know, LawError when the law misbehaves in an audit.
    """
    require_shares(config, faults=faults, probe=probe, capture=capture)
    config = config.with_marking()
    on_wire = config.with_telemetry() if law.uses_telemetry else config
    inputs = make_engine_inputs(network, traffic, law, on_wire, seed=seed, probe=None)
    return run_fluid(
        network,
        law,
        on_wire,
        inputs,
        engine="fluid",
        audited_fraction=config.audits_fraction,
        seed=seed,
        simulate=make_simulation,
        progress=progress,
    )
