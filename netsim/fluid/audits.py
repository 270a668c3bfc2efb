"""Audits of a fluid: some of its transfers are replayed packet by packet, and their bounds follow from the difference.

A replay has a transfer that was drawn, those that meet it, and those that meet these, at the times of the run; replays
stand one behind another in one run of the packet engine, and in one of the fluid. Two transfers meet if data or
acknowledgements of one go through a port that the other's data go through, at the same time.

Shapes: F transfers over the fabric, A of them audited, Q queue pairs, H hops, C candidates.
Source: Papadopoulos et al., "Inductive Confidence Machines for Regression", ECML 2002 (split conformal prediction).
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from fabrictune.cc.interface import NEVER, CompiledLaw
from fabrictune.foundation.arrays import BoolArray, FloatArray, IntArray
from fabrictune.foundation.row_ranges import ranges
from fabrictune.foundation.seeds import stream
from fabrictune.foundation.traces import UNKNOWN, Dependencies, Medium, TrafficTrace
from fabrictune.netsim import _engine
from fabrictune.netsim.engine_inputs.inputs import EngineInputs
from fabrictune.netsim.fluid.kernel import Widening, Widenings, make_fluid, run_to_the_end, start

AUDITED_FRACTION = 0.02  # of the packets, where a run does not say it
MOST_IN_REPLAY = 16  # transfers
MOST_PACKETS = 4_000_000  # of all replays
REST_PS = 10**9  # between two replays, and half of the time that the first takes

Simulate = Callable[[EngineInputs, CompiledLaw], _engine.Simulation]


@dataclass(frozen=True, kw_only=True)
class Flows:
    """The transfers over the fabric that a run has finished, in the order of their starts."""

    qp_F: IntArray
    bytes_F: IntArray
    start_ps_F: IntArray
    finish_ps_F: IntArray

    def __len__(self) -> int:
        return len(self.qp_F)


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What replays found: the bounds that follow, and how many of the other half lie inside them."""

    widenings: Widenings
    num_audited: int = 0  # transfers
    num_judged: int = 0  # of them, those that were not used for the bounds
    num_inside: int = 0
    packets: int = 0

    def as_counts(self) -> dict[str, int]:
        """Return its counts, as `run.json` has them."""
        return {
            "audited_transfers": self.num_audited,
            "audited_counts": self.num_judged,
            "audited_counts_inside": self.num_inside,
            "packets": self.packets,
        }


def flows_of(fluid: _engine.Fluid, traffic: TrafficTrace) -> Flows:
    """Return what a run has sent over the fabric."""
    parts = [_flows_of_rows(fluid, traffic, begin, end) for begin, end in (*ranges(0, len(traffic)), (0, 0))]
    qp_F, bytes_F, start_ps_F, finish_ps_F = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order_F = np.argsort(start_ps_F, kind="stable")
    return Flows(
        qp_F=qp_F[order_F], bytes_F=bytes_F[order_F], start_ps_F=start_ps_F[order_F], finish_ps_F=finish_ps_F[order_F]
    )


def _flows_of_rows(fluid: _engine.Fluid, traffic: TrafficTrace, begin: int, end: int) -> tuple[IntArray, ...]:
    start_ps_N, finish_ps_N = (fluid.transfer_column(name, begin, end) for name in ("start_ps", "finish_ps"))
    qp_N, bytes_N, medium_N = (traffic.column(name, begin, end) for name in ("qp_N", "bytes_N", "medium_N"))
    is_flow_N = (medium_N == Medium.FABRIC) & (finish_ps_N >= 0)
    return tuple(column_N[is_flow_N] for column_N in (qp_N, bytes_N, start_ps_N, finish_ps_N))


def audit(
    inputs: EngineInputs, flows: Flows, law: CompiledLaw, *, fraction: float, seed: int, simulate: Simulate
) -> Audit:
    """Return the audit of a share of a run's packets; without flows there is nothing to audit, nor any doubt."""
    if not len(flows):
        return Audit(widenings=Widenings())
    replays = list(_draw(inputs, flows, fraction, seed))
    again = _laid_out(inputs, flows, replays)
    fluid = make_fluid(again)
    start(fluid)
    run_to_the_end(fluid)
    simulation = simulate(again, law)
    while simulation.advance(10**8) == _engine.Outcome.RUNNING:
        pass
    error_A, is_held_A = _errors(fluid, simulation, again.traffic)
    number_A = np.repeat(np.arange(len(replays)), [len(replay) for replay in replays])
    third_A = number_A % 3
    widenings = _wider(*(_widenings(error_A[third_A == one], is_held_A[third_A == one]) for one in (0, 1)))
    is_judged_A = third_A == 2
    return Audit(
        widenings=widenings,
        num_audited=len(error_A),
        num_judged=int(is_judged_A.sum()),
        num_inside=int(_is_inside(error_A, is_held_A, widenings)[is_judged_A].sum()),
        packets=int(again.totals.packets_Q.sum()),
    )


def _draw(inputs: EngineInputs, flows: Flows, fraction: float, seed: int) -> Iterator[IntArray]:
    """Yield the rows of each replay until the replays have their share of the packets; no row twice."""
    mtu_bytes = int(inputs.settings["mtu_bytes"])
    packets_F = np.maximum(1, -(-flows.bytes_F // mtu_bytes))
    left = min(fraction * float(packets_F.sum()), MOST_PACKETS)
    meeting = _Meeting(inputs, flows)
    is_taken_F = np.zeros(len(flows), bool)
    for row in stream(seed, "netsim", "fluid", "audits").permutation(len(flows)).tolist():
        if left <= 0:
            return
        if is_taken_F[row]:
            continue
        replay = meeting.around(row, is_taken_F)
        left -= float(packets_F[replay].sum())
        yield replay


class _Meeting:
    """Which transfers meet which."""

    def __init__(self, inputs: EngineInputs, flows: Flows) -> None:
        stride = int(inputs.settings["path_stride"])
        self._port_QDH = inputs["path"].reshape(-1, 2, stride)
        self._is_port_P1 = np.zeros(len(inputs["port_rate_bps"]) + 1, bool)  # the last stands for no port
        self._flows = flows
        self._longest_ps = int((flows.finish_ps_F - flows.start_ps_F).max())

    def around(self, row: int, is_taken_F: BoolArray) -> IntArray:
        """Return a row and those around it that are free, which are taken then."""
        replay = [row]
        is_taken_F[row] = True
        for member in replay:
            for other in self._neighbours(member).tolist():
                if len(replay) == MOST_IN_REPLAY:
                    return np.array(replay)
                if not is_taken_F[other]:
                    is_taken_F[other] = True
                    replay.append(other)
        return np.array(replay)

    def _neighbours(self, row: int) -> IntArray:
        flows = self._flows
        start_ps, finish_ps = int(flows.start_ps_F[row]), int(flows.finish_ps_F[row])
        first, end = np.searchsorted(flows.start_ps_F, [start_ps - self._longest_ps, finish_ps])
        candidates_C = first + np.flatnonzero(flows.finish_ps_F[first:end] > start_ps)
        data_H, answers_H = self._port_QDH[flows.qp_F[row]]
        ports_CDH = self._port_QDH[flows.qp_F[candidates_C]]
        is_near_C = self._use(ports_CDH, data_H) | self._use(ports_CDH[:, :1], answers_H)
        return np.asarray(candidates_C[is_near_C])

    def _use(self, ports_CDH: IntArray, ports_H: IntArray) -> BoolArray:
        """Return which of some paths go through one of some ports."""
        is_port_P1, none = self._is_port_P1, len(self._is_port_P1) - 1
        is_port_P1[:] = False
        is_port_P1[np.minimum(ports_H, none)] = True
        is_port_P1[none] = False
        return np.asarray(is_port_P1[np.minimum(ports_CDH, none)].any(axis=(1, 2)))


def _laid_out(inputs: EngineInputs, flows: Flows, replays: list[IntArray]) -> EngineInputs:
    """Return inputs that have the replays' transfers alone, one replay behind another, at rest in between."""
    starts, begin_ps = [], 0
    for replay in replays:
        start_ps_A, end_ps = flows.start_ps_F[replay], int(flows.finish_ps_F[replay].max())
        first_ps = int(start_ps_A.min())
        starts.append(start_ps_A - first_ps + begin_ps)
        begin_ps += (end_ps - first_ps) * 3 // 2 + REST_PS
    rows_A = np.concatenate(replays)
    traffic = _trace(flows.qp_F[rows_A], flows.bytes_F[rows_A], np.concatenate(starts))
    changed = {
        "num_transfers": len(traffic),
        "time_limit_ps": NEVER,
        "skips_repeats": True,
        "skips_at_mean_rates": False,
    }
    packets_Q = np.bincount(
        traffic.qp_N,
        weights=np.maximum(1, -(-traffic.bytes_N // inputs.settings["mtu_bytes"])),
        minlength=len(inputs.totals.packets_Q),
    )
    totals = replace(inputs.totals, packets_Q=packets_Q.astype(np.float64))
    return replace(inputs, settings={**inputs.settings, **changed}, traffic=traffic, totals=totals)


def _trace(qp_A: IntArray, bytes_A: IntArray, start_ps_A: IntArray) -> TrafficTrace:
    unknown_A = np.full(len(qp_A), UNKNOWN, np.int64)
    return TrafficTrace(
        source_N=np.zeros_like(unknown_A),
        destination_N=np.zeros_like(unknown_A),
        medium_N=np.full(len(qp_A), Medium.FABRIC, np.int64),
        qp_N=qp_A.astype(np.int64),
        bytes_N=bytes_A.astype(np.int64),
        start_ps_N=start_ps_A.astype(np.int64),
        delay_ps_N=np.zeros_like(unknown_A),
        operation_N=unknown_A,
        dependencies=Dependencies.from_lists([[]] * len(qp_A)),
    )


def _errors(
    fluid: _engine.Fluid, simulation: _engine.Simulation, traffic: TrafficTrace
) -> tuple[FloatArray, BoolArray]:
    """Return how much longer each transfer took in packets, in parts of what is uncertain, and which were held."""
    held_ps_A, latency_ps_A, uncertain_ps_A, fluid_ps_A = (
        fluid.transfer_column(name, 0, len(traffic)) for name in ("held_ps", "latency_ps", "uncertain_ps", "finish_ps")
    )
    done_ps_A = simulation.transfer_column("finish_ps", 0, len(traffic))
    late_ps_A = _own_time_ps(traffic, done_ps_A, latency_ps_A) - _own_time_ps(traffic, fluid_ps_A, latency_ps_A)
    error_A = late_ps_A / np.maximum(uncertain_ps_A, 1)
    return np.where(done_ps_A >= 0, error_A, np.inf), held_ps_A > 0


def _own_time_ps(traffic: TrafficTrace, finish_ps_A: IntArray, latency_ps_A: IntArray) -> IntArray:
    """Return how long each transfer took since it was ready and the one before it in its queue pair had been sent."""
    order_A = np.lexsort((traffic.start_ps_N, traffic.qp_N))
    has_previous_A = np.zeros(len(order_A), bool)
    has_previous_A[1:] = np.diff(traffic.qp_N[order_A]) == 0
    sent_ps_A = np.roll((finish_ps_A - latency_ps_A)[order_A], 1)
    begin_ps_A = np.empty_like(finish_ps_A)
    begin_ps_A[order_A] = np.maximum(traffic.start_ps_N[order_A], np.where(has_previous_A, sent_ps_A, 0))
    return np.asarray(finish_ps_A - begin_ps_A)


def _widenings(error_A: FloatArray, is_held_A: BoolArray) -> Widenings:
    return Widenings(alone=_widening(error_A[~is_held_A]), held=_widening(error_A[is_held_A]))


def _wider(one: Widenings, other: Widenings) -> Widenings:
    """Return the wider bounds of two; transfers of one replay are alike, so that one estimate alone is often low."""
    return Widenings(
        alone=Widening(
            early=max(one.alone.early, other.alone.early),
            late=max(one.alone.late, other.alone.late),
        ),
        held=Widening(early=max(one.held.early, other.held.early), late=max(one.held.late, other.held.late)),
    )


def _widening(error_A: FloatArray) -> Widening:
    """Return what puts 95 % of the errors inside, 2.5 % beyond each end; what few there are bound it themselves."""
    if not len(error_A):
        return Widening()
    return Widening(early=_quantile(-error_A), late=_quantile(error_A))


def _quantile(error_A: FloatArray) -> float:
    place = math.ceil(0.975 * (len(error_A) + 1)) - 1
    return max(0.0, float(np.sort(error_A)[min(place, len(error_A) - 1)]))


def _is_inside(error_A: FloatArray, is_held_A: BoolArray, widenings: Widenings) -> BoolArray:
    early_A = np.where(is_held_A, widenings.held.early, widenings.alone.early)
    late_A = np.where(is_held_A, widenings.held.late, widenings.alone.late)
    return np.asarray((-early_A <= error_A) & (error_A <= late_A))
