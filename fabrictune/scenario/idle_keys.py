"""Keys of a scenario that are set and have no effect, since they belong to something that is switched off.

`NEEDS` lists them: the fields of a spec, and what they need. A key that has its default value is never listed: it says
nothing that a reader could be misled by. What the specs refuse themselves, such as `buffer.headroom_pool` without a
shared buffer, is not here.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from fabrictune.cc.law_rules import handlers, reads_telemetry
from fabrictune.cc.laws import LAWS
from fabrictune.collectives.expansion import ExpansionSpec
from fabrictune.collectives.expert_routing import RoutingSpec
from fabrictune.foundation.documents import Key
from fabrictune.foundation.settings.binding import Chosen, settings_of
from fabrictune.foundation.settings.quantities import key_of
from fabrictune.netsim.config.adaptive_routing import ArsConfig
from fabrictune.netsim.config.fluid import FluidConfig
from fabrictune.netsim.config.host import HostConfig
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.path_choice import PathChoiceConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.config.switch import EcnConfig, PfcConfig, TrimmingConfig
from fabrictune.netsim.config.transport import CreditsConfig, RnrConfig, TransportConfig
from fabrictune.netsim.workloads.storage import StorageSpec
from fabrictune.netsim.workloads.table import WorkloadSpec
from fabrictune.scenario.experts import MoeSpec
from fabrictune.scenario.jobs import JobSpec, NeighboursSpec
from fabrictune.scenario.mixture import MixSpec, Part
from fabrictune.scenario.observed import ObservedSpec
from fabrictune.scenario.schema import Scenario
from fabrictune.scenario.traffic import CollectiveSpec, TrafficTraceSpec


@dataclass(frozen=True, kw_only=True)
class Need:
    """What some fields of a spec need to have an effect; a field in a nested spec is written `pfc.xoff_bytes`."""

    fields: Sequence[str]
    what: str  # as a file would say it
    is_met: Callable[[Any], bool]


def _compares_queues(choice: PathChoiceConfig) -> bool:
    return choice.mode == "adaptive" or (choice.mode == "flowlet" and choice.flowlet_port == "least-queue")


def _drops_early(config: PacketConfig) -> bool:
    return any((rule.ecn or config.ecn).not_capable == "drop" for rule in config.queues.priorities)


OF_PAUSES = ("xoff_bytes", "xon_bytes", "buffer_bytes", "headroom_bytes", "response_ns")

NEEDS: Mapping[type, Sequence[Need]] = {
    Scenario: (
        Need(fields=("convergence_delay_ns",), what="`faults`", is_met=lambda scenario: bool(scenario.faults)),
        Need(
            fields=("adapter",),
            what="the adapter's own timers, which `engine.transport.timeout` replaces",
            is_met=lambda scenario: not _has_own_timeout(scenario),
        ),
        Need(
            fields=("engine.cnp.interval_ns", "engine.cnp.generation_delay_ns", "engine.cnp.handling_delay_ns"),
            what="a law that takes CNPs",
            is_met=lambda scenario: _law_has(scenario, lambda module: "on_cnp" in handlers(module)),
        ),
        Need(
            fields=("engine.telemetry_bytes",),
            what="a law that reads telemetry",
            is_met=lambda scenario: _law_has(scenario, reads_telemetry),
        ),
        Need(
            fields=("engine.nvlink_rate_bps",),
            what="a job's traffic, whose ranks may share a host",
            is_met=lambda scenario: isinstance(scenario.traffic.spec, JobSpec | TrafficTraceSpec | MixSpec),
        ),
    ),
    EcnConfig: (
        Need(
            fields=("kmin_bytes", "kmax_bytes", "pmax_fraction", "not_capable"),
            what="`enabled: true`",
            is_met=lambda ecn: ecn.enabled,
        ),
    ),
    PfcConfig: (
        Need(
            fields=("xoff_bytes", "xon_bytes", "headroom_bytes", "response_ns", "quanta", "watchdog"),
            what="`enabled: true`",
            is_met=lambda pfc: pfc.enabled,
        ),
        Need(fields=("refresh",), what="`quanta`", is_met=lambda pfc: pfc.quanta is not None),
    ),
    TrimmingConfig: (
        Need(
            fields=("threshold_bytes", "last_hop_threshold_bytes", "trimmed_bytes", "priority"),
            what="`enabled: true`",
            is_met=lambda trimming: trimming.enabled,
        ),
    ),
    PathChoiceConfig: (
        Need(fields=("spray",), what="`mode: spray`", is_met=lambda choice: choice.mode == "spray"),
        Need(fields=("gap_ns", "flowlet_port"), what="`mode: flowlet`", is_met=lambda choice: choice.mode == "flowlet"),
        Need(
            fields=("queue_step_bytes", "queue_levels"),
            what="`mode: adaptive`, or `flowlet_port: least-queue`",
            is_met=_compares_queues,
        ),
        Need(
            fields=("ties",),
            what="`mode: adaptive` or `ars`, or `flowlet_port: least-queue`",
            is_met=lambda choice: choice.mode == "ars" or _compares_queues(choice),
        ),
        Need(fields=("ars",), what="`mode: ars`", is_met=lambda choice: choice.mode == "ars"),
        Need(
            fields=("entropy", "entropy_values"), what="`mode: entropy`", is_met=lambda choice: choice.mode == "entropy"
        ),
        Need(
            fields=("freeze_ns",),
            what="`mode: entropy` and `entropy: reps`",
            is_met=lambda choice: choice.mode == "entropy" and choice.entropy == "reps",
        ),
        Need(fields=("weights",), what="`mode: weighted`", is_met=lambda choice: choice.mode == "weighted"),
        Need(
            fields=("acknowledgements",), what="another `mode` than hash", is_met=lambda choice: choice.mode != "hash"
        ),
    ),
    ArsConfig: (
        Need(
            fields=("flowlet_idle_time_ns", "max_flows"),
            what="`assign_mode: per_flowlet_quality`",
            is_met=lambda ars: ars.assign_mode == "per_flowlet_quality",
        ),
        Need(
            fields=("past_load_min_fraction", "past_load_max_fraction"),
            what="`past_load_weight`",
            is_met=lambda ars: ars.past_load_weight > 0,
        ),
        Need(
            fields=("future_load_min_bytes", "future_load_max_bytes"),
            what="`future_load_weight`",
            is_met=lambda ars: ars.future_load_weight > 0,
        ),
    ),
    HostConfig: (
        Need(
            fields=("pcie_lanes", "max_payload_bytes", "memory", "nics_per_gpu", "nics_per_switch"),
            what="`pcie_generation`",
            is_met=lambda host: host.pcie_generation is not None,
        ),
        Need(fields=("nics_per_gpu",), what="`memory: gpu`", is_met=lambda host: host.memory == "gpu"),
        Need(fields=("nics_per_switch",), what="`memory: cpu`", is_met=lambda host: host.memory == "cpu"),
    ),
    RnrConfig: (
        Need(
            fields=("replenish_ns", "timer_code", "retries"),
            what="`receives`",
            is_met=lambda rnr: rnr.receives is not None,
        ),
    ),
    CreditsConfig: (
        Need(
            fields=("window_bytes", "grant_packets", "rate_fraction"),
            what="`enabled: true`",
            is_met=lambda config: config.enabled,
        ),
    ),
    TransportConfig: (
        Need(
            fields=("window_packets", "reorder_window_ns", "acknowledge_after_bytes"),
            what="`reliability: selective-repeat`",
            is_met=lambda transport: transport.is_selective,
        ),
        Need(
            fields=("timeout_exponent",),
            what="the adapter's own timers, which `timeout` replaces",
            is_met=lambda transport: transport.timeout_ns is None,
        ),
    ),
    PacketConfig: (
        Need(
            fields=("skip_precision_fraction",), what="`skip: bounded`", is_met=lambda config: config.skip == "bounded"
        ),
        Need(
            fields=("threads",),
            what="a run in packets, which `skip: fluid` replaces",
            is_met=lambda config: config.skip != "fluid" and not isinstance(config, FluidConfig),
        ),
        Need(
            fields=("pfc.xoff_bytes", "pfc.xon_bytes", "pfc.buffer_bytes"),
            what="ports with buffers of their own, which `buffer.size` replaces",
            is_met=lambda config: config.buffer.size_bytes is None,
        ),
        Need(
            fields=("nic.receive_buffer_bytes", "nic.xoff_bytes"),
            what="`nic.drain_rate` or `host.pcie_generation`",
            is_met=lambda config: config.nic.drain_rate_bps is not None or config.host.pcie_generation is not None,
        ),
        Need(
            fields=("ack_every_packets",),
            what="acknowledgements by packets, which `transport.acknowledge_after` replaces",
            is_met=lambda config: not config.transport.coalesces,
        ),
        Need(fields=("nic.ecn_capable",), what="a priority with `ecn.not_capable: drop`", is_met=_drops_early),
    ),
    FluidConfig: (
        Need(
            fields=("ecn", "cnp", "transport", *(f"pfc.{name}" for name in OF_PAUSES)),
            what="packets, which the engine `fluid` has in `audits` alone",
            is_met=lambda config: config.audits_fraction > 0,
        ),
    ),
    ProbeConfig: (
        Need(
            fields=("ports", "num_busiest", "all_flows", "flows"),
            what="`interval`",
            is_met=lambda probe: probe.interval_ns is not None,
        ),
    ),
    Part: (Need(fields=("job",), what="a job's traffic", is_met=lambda part: isinstance(part.traffic.spec, JobSpec)),),
    StorageSpec: (
        Need(fields=("interval_ns",), what="more than one burst", is_met=lambda storage: storage.bursts > 1),
    ),
    JobSpec: (
        Need(fields=("placement_seed",), what="`placement: random`", is_met=lambda job: job.placement == "random"),
        Need(
            fields=("hosts", "first_host"),
            what="a strategy of `placement`, which its file replaces",
            is_met=lambda job: not isinstance(job.placement, Path),
        ),
        Need(fields=("layout.ep",), what="traffic along ep or edp", is_met=lambda job: _has_expert_traffic(job)),
    ),
    ExpansionSpec: (
        Need(
            fields=("qp_use",),
            what="more than one queue pair per connection",
            is_met=lambda expansion: expansion.qps_per_connection > 1,
        ),
    ),
    NeighboursSpec: (
        Need(
            fields=tuple(f"expansion.{name}" for name in ("algorithm", "channels", "slice_bytes", "qp_use", "pxn")),
            what="a workload of collectives",
            is_met=lambda job: False,
        ),
    ),
    MoeSpec: (
        Need(
            fields=("expansion.algorithm", "expansion.channels"),
            what="a workload of collectives",
            is_met=lambda job: False,
        ),
        Need(
            fields=("expansion.slice_bytes",),
            what="`deduplication: node`",
            is_met=lambda job: job.deduplication == "node",
        ),
        Need(fields=("dispatch",), what="a `phase` with dispatch", is_met=lambda job: job.phase != "combine"),
        Need(fields=("combine",), what="a `phase` with combine", is_met=lambda job: job.phase != "dispatch"),
        Need(fields=("expert_compute_ns",), what="`phase: both`", is_met=lambda job: job.phase == "both"),
    ),
    RoutingSpec: (
        Need(
            fields=("num_groups",),
            what="fewer `chosen_groups`",
            is_met=lambda experts: experts.groups_of_token < experts.num_groups,
        ),
    ),
}

# Fields of a spec that need something elsewhere in the scenario, which `is_met` is given.
NEEDS_ELSEWHERE: Mapping[type, Sequence[Need]] = {
    kind: (
        Need(
            fields=("priority",),
            what="a list of `engine.queues.priorities`, and is seen in a `capture` alone: data have one class",
            is_met=lambda scenario: _tells_priorities_apart(scenario),
        ),
    )
    for kind in (WorkloadSpec, TrafficTraceSpec, ObservedSpec, ExpansionSpec)
}


def idle_keys(scenario: Scenario) -> Iterator[tuple[tuple[Key, ...], str]]:
    """Yield the path of each key that is set and has no effect, and what it needs."""
    seen = set()
    for path, what in _idle(scenario, scenario, ()):
        if path not in seen:
            seen.add(path)
            yield path, what


def idle_notes(scenario: Scenario) -> tuple[str, ...]:
    """Return a sentence for each key that is set and has no effect, with its place."""
    return tuple(f"{scenario.where(*path)} has no effect without {what}" for path, what in idle_keys(scenario))


def _idle(scenario: Scenario, spec: Any, path: tuple[Key, ...]) -> Iterator[tuple[tuple[Key, ...], str]]:
    for all_needs, place in ((NEEDS, spec), (NEEDS_ELSEWHERE, scenario)):
        for need in (need for kind, needs in all_needs.items() if isinstance(spec, kind) for need in needs):
            if not need.is_met(place):
                for name in need.fields:
                    if _is_set(spec, name.split(".")):
                        yield (*path, *(key_of(part) for part in name.split("."))), need.what
    for field, _ in settings_of(type(spec)):
        for key, value in _nested(key_of(field.name), getattr(spec, field.name)):
            yield from _idle(scenario, value, (*path, *key))


def _is_set(spec: Any, names: Sequence[str]) -> bool:
    """Return whether a field has another value than its default."""
    *outer, name = names
    for part in outer:
        spec = getattr(spec, part, None)  # of another engine
        spec = spec.spec if isinstance(spec, Chosen) else spec
    if not hasattr(spec, name):
        return False
    default = next(field for field in dataclasses.fields(spec) if field.name == name)
    known = default.default if default.default_factory is dataclasses.MISSING else default.default_factory()
    return bool(getattr(spec, name) != known)


def _nested(key: str, value: Any) -> Iterator[tuple[tuple[Key, ...], Any]]:
    """Yield the specs that a field holds, each with the keys that lead to it."""
    if isinstance(value, tuple):
        for place, entry in enumerate(value):
            for rest, spec in _nested(key, entry):
                yield (key, place, *rest[1:]), spec
    elif isinstance(value, Chosen):
        if dataclasses.is_dataclass(value.spec):
            yield (key,), value.spec
    elif dataclasses.is_dataclass(value):
        yield (key,), value


def _has_expert_traffic(job: JobSpec) -> bool:
    if isinstance(job, MoeSpec):
        return True
    axes = job.axes if isinstance(job, NeighboursSpec) else (job.axis,) if isinstance(job, CollectiveSpec) else ()
    return "ep" in axes or "edp" in axes


def _law_has(scenario: Scenario, has: Callable[[ModuleType], bool]) -> bool:
    """Return whether the law has it; one from outside the project may."""
    module = LAWS.get(scenario.law.name)
    return module is None or has(module)


def _tells_priorities_apart(scenario: Scenario) -> bool:
    config = scenario.engine.spec
    return scenario.capture is not None or not isinstance(config, PacketConfig) or bool(config.queues.priorities)


def _has_own_timeout(scenario: Scenario) -> bool:
    config = scenario.engine.spec
    return isinstance(config, PacketConfig) and config.transport.timeout_ns is not None
