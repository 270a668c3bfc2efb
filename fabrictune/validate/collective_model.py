"""Model of a collective on a scenario's fabric, in steps from an absolute bound to the time on this fabric.

- *line*: the busiest NIC sends or receives its bytes, headers included, at its rate;
- *bound*: nothing is in the way but the collective's own messages, which wait for one another and for the cables;
- *fair*: flows that the scenario's hash puts on one link share it max-min fairly;
- *engine*: the packet engine's time, on request.

Each is at least as long as the one before, but for the engine, which knows nothing of the others. In addition there is
the alpha-beta cost of the algorithm, where it has one for a single channel.

Left out: the switches' links count as at least as fast as the NICs' in the bound; a group's ranks have one path a queue
pair, so scenarios that spray are shown by the engine alone.

Shapes: Q queue pairs, H hops, P ports, C NICs, R ranks.
"""

import warnings
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from fabrictune.collectives.expansion import ExpansionSpec
from fabrictune.collectives.flow_volumes import expand_to_flows
from fabrictune.collectives.jobs import collective_step
from fabrictune.collectives.lower_bound import UniformLinks, lower_bound_ps
from fabrictune.collectives.plans import CollectivePlan, local_size, make_plans
from fabrictune.collectives.schedule import GroupShape
from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.errors import FabrictuneWarning, Mistake, ScenarioError
from fabrictune.foundation.settings.binding import Chosen
from fabrictune.foundation.traces import CommTrace, Operation, TrafficTrace
from fabrictune.foundation.units import BITS_PER_BYTE, PS_PER_S
from fabrictune.scenario.composition import compose_fabric, notes_of_scenario
from fabrictune.scenario.jobs import JobSpec
from fabrictune.scenario.places import placed
from fabrictune.scenario.schema import Scenario
from fabrictune.scenario.traffic import AllReduceSpec, CollectiveSpec
from fabrictune.studies.simulation import simulate
from fabrictune.topology.ecmp.collisions import CollisionReport, analyze_collisions
from fabrictune.topology.fabric import NO_NIC
from fabrictune.topology.network import NO_PORT, QueuePairs
from fabrictune.topology.routing import build_network

MANY_QPS = 16  # of a connection: where collisions hardly shrink further


@dataclass(frozen=True, kw_only=True)
class Modelled:
    """One size; times of the collective in all groups at once."""

    size_bytes: int
    line_ps: float
    bound_ps: float
    fair_ps: float
    many_qps_ps: float  # fair, with MANY_QPS queue pairs a connection
    alpha_beta_ps: float | None
    engine_ps: float | None = None


@dataclass(frozen=True, kw_only=True)
class Flows:
    """The flows of a collective, and what each gets where all run at once."""

    bytes_Q: IntArray
    report: CollisionReport

    @property
    def slowdown(self) -> float:
        """Return how many times longer the slowest flow takes than with its NIC's rate to itself; 1 without flows."""
        if not len(self.bytes_Q):
            return 1.0
        alone_Q, shared_Q = self.bytes_Q / self.report.demand_bps_Q, self.bytes_Q / self.report.fair_rates()
        return max(1.0, float(shared_Q.max() / alone_Q.max()))


class CollectiveModel:
    """An operation on the job, placement and fabric of a scenario, at any size."""

    def __init__(self, scenario: Scenario, operation: Operation) -> None:
        """Compose the fabric; raises InputError, also for traffic that is no collective and for another engine."""
        self._notes: tuple[str, ...] = ()
        if scenario.packet_config().path_choice.mode != "hash":
            self._notes = ("engine.path_choice: `fair` takes the hash's paths; the engine alone knows other choices",)
            warnings.warn(self._notes[0], FabrictuneWarning, stacklevel=2)
        self.operation = operation
        self._scenario = scenario
        self._spec = _spec_of(scenario, operation)
        self.num_ranks = self._spec.layout.degree(self._spec.axis)
        with placed(scenario, "traffic", self._spec):
            self._fabric = compose_fabric(scenario)
            self._placement = self._spec.place_on(self._fabric)

    def at(self, size_bytes: int, *, with_engine: bool = False) -> Modelled:
        """Return the times of one size; raises InputError, and LawError if the engine is requested."""
        line_ps = self._line_ps(size_bytes)
        bound_ps = max(line_ps, self._bound_ps(size_bytes))
        slowdown, many_qps_slowdown = self._slowdowns
        return Modelled(
            size_bytes=size_bytes,
            line_ps=line_ps,
            bound_ps=bound_ps,
            fair_ps=bound_ps + line_ps * (slowdown - 1),
            many_qps_ps=bound_ps + line_ps * (min(slowdown, many_qps_slowdown) - 1),
            alpha_beta_ps=self._alpha_beta_ps(size_bytes),
            engine_ps=self._engine_ps(size_bytes) if with_engine else None,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What the model assumes, and what was assumed, guessed or left out when its fabric was read."""
        return (*self._notes, *notes_of_scenario(self._scenario), *self._fabric.notes)

    @property
    def qps_per_connection(self) -> int:
        """Return the queue pairs a connection has in the scenario."""
        return self._spec.expansion.qps_per_connection

    @property
    def line_rate_bps(self) -> float:
        """Return the rate of the slowest NIC of the job."""
        return float(self._nic_rate_bps_C[np.unique(self._placement.nic_R)].min())

    @property
    def group_shape(self) -> GroupShape:
        """Return how many ranks the first group has, and how many of them lie on each host."""
        group = _trace(self._spec).groups[0]
        return GroupShape(num_members=len(group), local_size=local_size(group, self._placement.host_R))

    @cached_property
    def _flows(self) -> Flows:
        """Return the flows of the scenario's queue pairs; paths do not depend on the size, if no flow is empty."""
        return self._route(self._spec.expansion)

    @cached_property
    def _slowdowns(self) -> tuple[float, float]:
        """Return the slowdown with the scenario's queue pairs, and with many."""
        many = replace(self._spec.expansion, qps_per_connection=max(MANY_QPS, self.qps_per_connection))
        return self._flows.slowdown, self._route(many).slowdown

    @cached_property
    def _nic_rate_bps_C(self) -> FloatArray:
        of_nic = self._fabric.port_nic_P != NO_NIC
        rate_bps_C = np.zeros(self._fabric.num_nics)
        np.add.at(rate_bps_C, self._fabric.port_nic_P[of_nic], self._fabric.port_rate_bps_P[of_nic])
        return rate_bps_C

    @cached_property
    def _links(self) -> UniformLinks:
        """Return what lies between two hosts at least: on the shortest path, hops no faster than a NIC and cables."""
        fabric, config, port_QH = self._fabric, self._scenario.packet_config(), self._flows.report.port_QH
        is_port_QH = port_QH != NO_PORT
        delay_ps_Q = np.where(is_port_QH, fabric.port_delay_ps_P[port_QH], 0).sum(axis=1)
        is_slow_QH = is_port_QH & (fabric.port_rate_bps_P[port_QH] <= self.line_rate_bps)
        return UniformLinks(
            rate_bps=self.line_rate_bps,
            num_hops=max(1, int(is_slow_QH.sum(axis=1).min(initial=port_QH.shape[1]))),
            delay_ps=float(delay_ps_Q.min()) if len(delay_ps_Q) else 0.0,
            mtu_bytes=config.mtu_bytes,
            overhead_bytes=config.wire_overhead_bytes,
            least_bytes=config.ack_bytes,
            nvlink_rate_bps=config.nvlink_rate_bps,
        )

    def _route(self, expansion: ExpansionSpec) -> Flows:
        """Return the flows of a buffer in which every flow has bytes."""
        size = expansion.channels * expansion.qps_per_connection * self.num_ranks**2
        queue_pairs, traffic = self._expand(replace(self._spec, message_bytes=size, expansion=expansion))
        with placed(self._scenario, "routing", self._scenario.routing):
            network = build_network(self._fabric, queue_pairs, self._scenario.routing)
        return Flows(bytes_Q=traffic.bytes_N, report=analyze_collisions(network))

    def _expand(self, spec: CollectiveSpec) -> tuple[QueuePairs, TrafficTrace]:
        with placed(self._scenario, "traffic", spec):
            return expand_to_flows(_trace(spec), self._placement, self._fabric, spec.expansion)

    def _line_ps(self, size_bytes: int) -> float:
        queue_pairs, traffic = self._expand(replace(self._spec, message_bytes=size_bytes))
        wire_Q = self._links.wire_bytes(traffic.bytes_N)
        busy_s_C = [
            np.bincount(nic_Q, wire_Q, minlength=self._fabric.num_nics) * BITS_PER_BYTE / self._nic_rate_bps_C
            for nic_Q in (queue_pairs.source_nic_Q, queue_pairs.destination_nic_Q)
        ]
        return float(np.max(busy_s_C)) * PS_PER_S

    def _bound_ps(self, size_bytes: int) -> float:
        """Return the longest of the bounds of all groups, each by itself."""
        trace, host_R = _trace(replace(self._spec, message_bytes=size_bytes)), self._placement.host_R
        expansion = self._spec.expansion
        plans = make_plans(trace, host_R, expansion.collective, expansion.slicing, is_written_out=False)
        shapes = (self._shape(plan, trace) for plan in plans)
        bounds = (
            lower_bound_ps(plan.schedule, shape, size_bytes, self._links)
            for plan, shape in zip(plans, shapes, strict=True)
        )
        return max(bounds, default=0.0)

    def _shape(self, plan: CollectivePlan, trace: CommTrace) -> GroupShape:
        """Return how a plan's groups lie on hosts; pairs that are partly on one host count as between two."""
        host_Cn = self._placement.host_R[trace.rank_N[plan.batch.request_Cn]]
        if plan.batch.operation == Operation.SEND:
            is_inside = bool((host_Cn[:, 0] == host_Cn[:, 1]).all())
            return GroupShape(num_members=2, local_size=2 if is_inside else 1)
        group = trace.groups[int(plan.batch.group_C[0])]
        return GroupShape(num_members=len(group), local_size=local_size(group, self._placement.host_R))

    def _alpha_beta_ps(self, size_bytes: int) -> float | None:
        expansion, links = self._spec.expansion, self._links
        if expansion.channels > 1:
            return None
        packet = np.array([links.mtu_bytes])
        payload_bps = links.rate_bps * links.mtu_bytes / float(links.wire_bytes(packet)[0])
        cost = expansion.collective.implementation_of(self.operation).cost(self.group_shape)
        return cost.time_ps(size_bytes, payload_bps, float(links.tail_ps(packet)[0]))

    def _engine_ps(self, size_bytes: int) -> float:
        spec = replace(self._spec, message_bytes=size_bytes)
        scenario = replace(self._scenario, traffic=Chosen(name="collective", spec=spec), expect=())
        record = simulate(scenario, with_collisions=False)
        return float(record.tables["transfers"]["finish_ps"].max())


def _trace(spec: CollectiveSpec) -> CommTrace:
    operation = Operation[spec.operation.upper()]
    return collective_step(spec.layout, spec.message_bytes, operation=operation, axis=spec.axis)


def _spec_of(scenario: Scenario, operation: Operation) -> CollectiveSpec:
    """Return the scenario's job with another operation; raises ScenarioError for traffic that is no collective."""
    spec = scenario.traffic.spec
    if not isinstance(spec, CollectiveSpec | AllReduceSpec):
        raise ScenarioError(
            Mistake(
                where=scenario.where("traffic", "workload"),
                found=f"workload {scenario.traffic.name!r}",
                allowed="collective, all_reduce",
                next_step="describe the job with one of them: layout, placement, expansion",
            )
        )
    job = {field.name: getattr(spec, field.name) for field in fields(JobSpec)}
    axis = spec.axis if isinstance(spec, CollectiveSpec) else "dp"
    return CollectiveSpec(**job, operation=operation.name.lower(), axis=axis, message_bytes=spec.message_bytes)
