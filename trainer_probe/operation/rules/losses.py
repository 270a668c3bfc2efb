"""Losses that are no numbers, or far above the last ones.

A loss that is not finite ends what training is worth; a spike is named and nothing is ended. The last loss is compared
with those before it by a robust z-score, so that earlier spikes do not hide it.
"""

import math
from statistics import median

from fabrictune.trainer_probe.operation.decisions import Diagnosis
from fabrictune.trainer_probe.operation.rules.thresholds import deviation
from fabrictune.trainer_probe.operation.rules.view import View

NEGLIGIBLE = 0.01  # of the median: a rise by less is none, however quiet the losses were


def find_not_a_number(view: View) -> Diagnosis | None:
    """Return the diagnosis of the first loss that is not finite."""
    step, loss = next(((step, loss) for step, loss in view.snapshot.losses if not math.isfinite(loss)), (-1, 0.0))
    if step < 0:
        return None
    return Diagnosis(
        cause="not a number",
        entity=f"step {step}",
        nodes=tuple(sorted(set(view.snapshot.node_of_rank.values()))),
        evidence=(f"the loss of step {step} is {loss}",),
        quiet_s=0.0,
        is_fatal=True,
        step=step,
        error=f"loss {loss}",
    )


def find_spike(view: View) -> Diagnosis | None:
    """Return the diagnosis of a last loss far above those before it."""
    losses = view.snapshot.losses
    if len(losses) <= view.settings.min_losses:
        return None
    step, last = losses[-1]
    before = [loss for _, loss in losses[:-1] if math.isfinite(loss)]
    if len(before) < view.settings.min_losses or not math.isfinite(last):
        return None
    center = median(before)
    scale = max(deviation(before), NEGLIGIBLE * abs(center), 1e-12)
    score = (last - center) / scale
    if score <= view.settings.spike_deviations:
        return None
    return Diagnosis(
        cause="loss spike",
        entity=f"step {step}",
        evidence=(f"the loss of step {step} is {last:.4g}, {score:.1f} deviations above the median {center:.4g}",),
        quiet_s=0.0,
        is_fatal=False,
        step=step,
    )
