"""Effective time in closed form: a renewal process between returns to storage.

Failures are Poisson with rate a = m + s: those that memory survives, and those that go back to storage. With
U exponential of rate m, the time from one save in memory to the next has the transform

    R(s) = exp(-a L) + q (1 - exp(-a L)) g F,    F(s) = exp(-a (L + w)) / (1 - q g (1 - exp(-a (L + w)))),    q = m / a,

where L is a segment with its stall, w the time until memory has a save, F the same from a restart on, and g the
transform of a recovery that failures start anew. A storage cycle lasts 1 / s and its recovery. Durable are then
sum_n E[exp(-s T_n)] uploads, T_n the time of the n-th: a geometric series with the factors F R^(k-1) and R^k.
Shares of phases follow from PASTA: failures arrive at the same rate in every state.

Without memory m = 0 and this is Daly's exact expression, with the lag of a save that is written in the background.

Source: Daly, A higher order estimate of the optimum checkpoint interval (FGCS 2006), section 3; Wolff, Poisson Arrivals
See Time Averages (1982).

Left out: failures and stalls of storage itself; a failure during a planned stop loses what the same failure loses in
working time; steps are not cut to whole ones.

Shapes: as in model.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.trainer_probe.survival.job import PHASES
from fabrictune.trainer_probe.survival.model import MEMORY, STORAGE, FailureModel

EFFECTIVE, STALLS, RECOMPUTED = "effective", "checkpoint stalls", "recomputed"
PLANNED, FLAPS, SLOWER = "planned stops", "survived flaps", "slower steps"
PARTS = (EFFECTIVE, STALLS, RECOMPUTED, *PHASES, PLANNED, FLAPS, SLOWER)


@dataclass(frozen=True, kw_only=True, eq=False)
class Shares:
    """Shares of a job's time; the parts sum to one."""

    parts: Mapping[str, FloatArray]  # by name of PARTS, [D]
    recovery_CD: FloatArray  # of recoveries, by the cause that began them
    mttf_s_D: FloatArray

    @property
    def effective_D(self) -> FloatArray:
        """Return the effective time."""
        return self.parts[EFFECTIVE]


def time_shares(model: FailureModel) -> Shares:
    """Return what becomes of a job's time in the long run."""
    rates_CD, total_D = model.rates_CD, model.rates_CD.sum(axis=0)
    durable_CD = np.where(model.in_memory_C[:, None], rates_CD, 0.0)
    memory_D = durable_CD.sum(axis=0)
    storage_D = np.maximum(total_D - memory_D, 1e-12)
    times_CTPD = _phase_times(model, total_D)
    lasting_CTD = 1 - total_D * times_CTPD.sum(axis=2)  # E[exp(-a X)]: probability that no failure interrupts it
    in_storage_D = _share_in_storage_recovery(rates_CD - durable_CD, durable_CD, storage_D, lasting_CTD, total_D)
    begun_CTD = np.stack([durable_CD * (1 - in_storage_D), rates_CD - durable_CD + durable_CD * in_storage_D], axis=1)
    phases_PD = np.einsum("ctd,ctpd->pd", begun_CTD, times_CTPD)
    effective_D = _effective(model, memory_D, storage_D, durable_CD, lasting_CTD, in_storage_D)
    return Shares(
        parts=_parts(model, effective_D, phases_PD),
        recovery_CD=np.einsum("ctd,ctpd->cd", begun_CTD, times_CTPD),
        mttf_s_D=1 / total_D,
    )


def _phase_times(model: FailureModel, total_D: FloatArray) -> FloatArray:
    """Return the mean time in each phase of a recovery until it ends or a failure interrupts it, [C, T, P, D]."""
    durations = model.durations_CTVP
    begin = np.cumsum(durations, axis=-1) - durations
    times = np.exp(-begin[..., None] * total_D) * -np.expm1(-durations[..., None] * total_D) / total_D
    return np.asarray(np.einsum("vd,ctvpd->ctpd", model.variants_VD, times))


def _share_in_storage_recovery(
    lost_CD: FloatArray, durable_CD: FloatArray, storage_D: FloatArray, lasting_CTD: FloatArray, total_D: FloatArray
) -> FloatArray:
    entered_D = (lost_CD * (1 - lasting_CTD[:, STORAGE])).sum(axis=0) / total_D
    kept_D = (durable_CD * (1 - lasting_CTD[:, STORAGE])).sum(axis=0) / total_D
    return np.asarray(entered_D / (1 - kept_D))


def _effective(
    model: FailureModel,
    memory_D: FloatArray,
    storage_D: FloatArray,
    durable_CD: FloatArray,
    lasting_CTD: FloatArray,
    in_storage_D: FloatArray,
) -> FloatArray:
    """Return the durable work of a storage cycle over its length."""
    job, total_D = model.job, memory_D + storage_D
    share_D = memory_D / total_D  # q
    of_memory_D = (durable_CD * lasting_CTD[:, MEMORY]).sum(axis=0) / np.maximum(memory_D, 1e-300)
    recovery_D = of_memory_D / (1 - share_D * (1 - of_memory_D))  # g
    segment_D = job.segment_s * model.stretch_D + job.save_stall_s
    reached_D, fresh_D = np.exp(-total_D * segment_D), np.exp(-total_D * (segment_D + job.copy_s))
    after_D = fresh_D / (1 - share_D * recovery_D * (1 - fresh_D))  # F
    next_D = reached_D + share_D * (1 - reached_D) * recovery_D * after_D  # R
    count = job.saves_per_upload
    series_D = after_D * next_D ** (count - 1) / (1 - next_D**count)
    durable_s_D = count * job.segment_s * np.exp(-storage_D * job.write_s) * series_D
    return np.asarray(durable_s_D * storage_D * (1 - in_storage_D))


def _parts(model: FailureModel, effective_D: FloatArray, phases_PD: FloatArray) -> dict[str, FloatArray]:
    """Return the shares; what was worked and is not durable is recomputed, with the stalls in it."""
    job = model.job
    parts = {
        EFFECTIVE: effective_D,
        STALLS: effective_D * job.save_stall_s / job.segment_s,
        **dict(zip(PHASES, phases_PD, strict=True)),
        PLANNED: effective_D * model.planned_D,
        FLAPS: effective_D * model.flaps_fraction,
        SLOWER: effective_D * job.slowdown_fraction,
    }
    parts[RECOMPUTED] = 1 - sum(parts.values(), np.zeros_like(effective_D))
    return {name: parts[name] for name in PARTS}
