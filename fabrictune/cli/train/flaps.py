"""Flaps of links in a planned job, by the timers of `fabrictune rdma timers`."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fabrictune.cli.rdma.predict import chosen_profile, retransmission_of
from fabrictune.foundation.units import NS_PER_S

if TYPE_CHECKING:
    from fabrictune.rdma_bench.timers.prediction import Prediction
    from fabrictune.trainer_probe.survival.failures import FailureTable
    from fabrictune.trainer_probe.survival.job import Flaps, SurvivalJob
    from fabrictune.trainer_probe.survival.knobs import Knob

NUM_QUANTILES = 400  # of a flap's duration
MOST_EXPONENT = 22  # beyond it a dead peer goes unnoticed for minutes


def flaps_of(settings: Mapping[str, Any]) -> "Flaps | None":
    """Return the flaps that options describe, None where they do not; raises InputError."""
    if not settings["flaps"]:
        return None
    return _flaps(_prediction(settings), settings)


def flap_knobs(job: "SurvivalJob", table: "FailureTable", settings: Mapping[str, Any]) -> "list[Knob]":
    """Return the timers as a knob: NCCL's default timeout where theirs is shorter, else the next longer one."""
    from fabrictune.rdma_bench.timers.prediction import RetransmissionSpec, predict_retransmission
    from fabrictune.trainer_probe.survival.knobs import Knob

    if job.flaps is None:
        return []
    now = _prediction(settings)
    if now.spec.timeout_exponent >= MOST_EXPONENT or math.isinf(now.longest_flap_ns):
        return []
    exponent = max(RetransmissionSpec().timeout_exponent, now.spec.timeout_exponent + 1)
    longer = predict_retransmission(replace(now.spec, timeout_exponent=exponent, retries=7), now.profile)
    changed = replace(job, flaps=_flaps(longer, settings))
    return [
        Knob(
            name="NCCL's timers",
            now=_setting(now),
            then=_setting(longer),
            why="rdma timers",
            changed=(changed, table),
        )
    ]


def _prediction(settings: Mapping[str, Any]) -> "Prediction":
    from fabrictune.rdma_bench.timers.prediction import predict_retransmission

    spec = retransmission_of(settings["timeout"], settings["retries"], settings["nccl"])
    return predict_retransmission(spec, chosen_profile(settings["profile"])[0])


def _flaps(prediction: "Prediction", settings: Mapping[str, Any]) -> "Flaps":
    """Return the flaps with what the timers make of them: a survived one lasts until the next retransmission."""
    from fabrictune.trainer_probe.survival.job import Flaps

    mean_s: float = settings["flap_s"]
    longest_s = prediction.longest_flap_ns / NS_PER_S
    survived = 1 - math.exp(-longest_s / mean_s)
    shares = ((number + 0.5) / NUM_QUANTILES for number in range(NUM_QUANTILES))
    durations_s = [-mean_s * math.log1p(-share * survived) for share in shares]
    stalls_s = [prediction.resumes_ns(min(lasts_s, longest_s) * NS_PER_S) / NS_PER_S for lasts_s in durations_s]
    killed = math.exp(-longest_s / mean_s)
    return Flaps(
        per_link_day=settings["flaps"],
        mean_s=mean_s,
        longest_s=longest_s,
        mean_stall_s=sum(stalls_s) / NUM_QUANTILES if survived else 0.0,
        basis=f"{_setting(prediction)} on {prediction.profile.name} survives {longest_s:.3g} s ({prediction.basis}): "
        f"{killed:.2%} of flaps end the job",
    )


def _setting(prediction: "Prediction") -> str:
    return f"timeout {prediction.spec.timeout_exponent}, {prediction.spec.retries} retries"
