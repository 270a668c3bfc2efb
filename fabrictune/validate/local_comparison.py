"""Table of measured collectives and steps beside their predictions, with the parts and the interval of each.

Collectives are those of steps that wait for each at once; a step is shown in both ways of waiting.

Shapes: N requests, C collectives, S steps, G kinds of collectives.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.records import Columns
from fabrictune.foundation.traces import Operation
from fabrictune.validate.calibration import Calibration, calibrate
from fabrictune.validate.comparison import CollectiveTimes, step_times
from fabrictune.validate.gloo_model import Parts, link_ps, parts_of
from fabrictune.validate.local_measurement import LocalMeasurement
from fabrictune.validate.resampling import bounds, drawn_rounds
from fabrictune.validate.summary import OVERLAPPED_STEP, PARTS, STEP


@dataclass(frozen=True, kw_only=True)
class CollectiveKinds:
    """Kinds of collectives, an operation and a size each, with the kind and the page faults of each request."""

    operation_G: tuple[Operation, ...]
    bytes_G: IntArray
    kind_N: IntArray
    page_faults_N: FloatArray  # the median of their kind where they were not counted

    def parts(self, calibration: Calibration) -> tuple[Parts, ...]:
        """Return the parts of each kind, without page faults."""
        rows = zip(self.operation_G, self.bytes_G.tolist(), strict=True)
        return tuple(parts_of(operation, size, 0, calibration) for operation, size in rows)

    def total_ps_N(self, calibration: Calibration) -> FloatArray:
        """Return the time of each request's collective."""
        total_ps_G = np.array([parts.total_ps for parts in self.parts(calibration)])
        return np.asarray(total_ps_G[self.kind_N] + self.page_faults_N * calibration.page_ps, np.float64)

    def software_ps_N(self, calibration: Calibration) -> IntArray:
        """Return what each request takes beside its messages on the calibrated link."""
        link_ps_G = np.array([link_ps(size, calibration) for size in self.bytes_G.tolist()])
        beside_ps_N = self.total_ps_N(calibration) - link_ps_G[self.kind_N]
        return np.asarray(np.maximum(np.rint(beside_ps_N), 0), np.int64)


def collective_kinds(measurement: LocalMeasurement) -> CollectiveKinds:
    """Return the kinds of a measured training's collectives."""
    trace, is_own_N = measurement.trace, ~measurement.is_overlapped_N
    kinds, kind_N = np.unique(np.stack([trace.operation_N, trace.bytes_N], axis=1), axis=0, return_inverse=True)
    kind_N = kind_N.ravel()
    faults_N = measurement.page_faults_N
    usual_G = np.array([np.median(faults_N[is_own_N & (kind_N == kind)]) for kind in range(len(kinds))])
    return CollectiveKinds(
        operation_G=tuple(Operation(operation) for operation in kinds[:, 0].tolist()),
        bytes_G=kinds[:, 1],
        kind_N=kind_N,
        page_faults_N=np.where(is_own_N, faults_N, usual_G[kind_N]),
    )


def calibrated(measurement: LocalMeasurement, rounds: IntArray | None = None) -> Calibration:
    """Return the calibration from some rounds of probes, or from all of them."""
    probe_ps_PK = measurement.probe_ps_PK if rounds is None else measurement.probe_ps_PK[:, rounds]
    return calibrate(measurement.probe_P, measurement.bytes_P, probe_ps_PK, measurement.page_bytes)


def comparison_table(
    measurement: LocalMeasurement, times: CollectiveTimes, kinds: CollectiveKinds, *, seed: int, is_busy: bool
) -> Columns:
    """Return a row for each collective waited for at once, and behind them one for each step."""
    steps, calibration = step_times(measurement.trace, times), calibrated(measurement)
    is_own_C = ~measurement.is_overlapped_N[times.first_C]
    is_own_S = np.isin(steps.step_S, times.step_C[is_own_C])
    place_C = np.searchsorted(steps.step_S, times.step_C)

    def with_steps(value_C: FloatArray) -> FloatArray:
        return np.concatenate([value_C[is_own_C], np.bincount(place_C, value_C, len(steps.step_S))])

    def both(value_C: IntArray, value_S: IntArray) -> IntArray:
        return np.concatenate([value_C[is_own_C], value_S])

    parts_G, kind_C = kinds.parts(calibration), kinds.kind_N[times.first_C]
    parts = {name: np.array([getattr(parts, name) for parts in parts_G])[kind_C] for name in PARTS[:-1]}
    parts["page_ps"] = kinds.page_faults_N[times.first_C] * calibration.page_ps
    draws = drawn_rounds(measurement.step_K, seed, is_busy=is_busy)
    low_ps_C, high_ps_C = _deviations(measurement, times, kinds, draws)
    measured_ps = both(times.measured_ps_C, steps.measured_ps_S)
    simulated_ps = both(times.simulated_ps_C, steps.simulated_ps_S)
    names = np.array(times.operation_C)[is_own_C]
    return {
        "step": both(times.step_C, steps.step_S),
        "operation": np.concatenate([names, np.where(is_own_S, STEP, OVERLAPPED_STEP)]),
        "bytes": both(times.bytes_C, steps.bytes_S),
        "measured_ps": measured_ps,
        "simulated_ps": simulated_ps,
        "simulated_low_ps": simulated_ps + with_steps(low_ps_C),
        "simulated_high_ps": simulated_ps + with_steps(high_ps_C),
        "ratio": simulated_ps / measured_ps,
        **{name: np.rint(with_steps(value_C)).astype(np.int64) for name, value_C in parts.items()},
        "work_ps": both(np.zeros_like(times.bytes_C), steps.work_ps_S),
    }


def _deviations(
    measurement: LocalMeasurement, times: CollectiveTimes, kinds: CollectiveKinds, draws: Iterator[IntArray]
) -> tuple[FloatArray, FloatArray]:
    """Return how far below and above its prediction the 90 % interval of each collective reaches."""

    def predict(rounds: IntArray | None) -> FloatArray:
        return kinds.total_ps_N(calibrated(measurement, rounds))[times.first_C]

    low_ps_C, high_ps_C = bounds(predict, draws)
    predicted_ps_C = predict(None)
    return np.minimum(low_ps_C - predicted_ps_C, 0.0), np.maximum(high_ps_C - predicted_ps_C, 0.0)
