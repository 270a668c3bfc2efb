"""What a step is reported as: the same words for all ranks, summed over them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fabrictune.foundation.layout import AXES
from fabrictune.foundation.records import Columns

if TYPE_CHECKING:
    from fabrictune.trainer_probe.comm import Comm


@dataclass(frozen=True, kw_only=True)
class StepReport:
    """One step of a training. Exposed communication is what a rank waited for, averaged over ranks."""

    step: int
    loss: float  # mean over the step's tokens
    gradient_norm: float  # over all parameters, before clipping
    learning_rate: float
    is_skipped: bool  # its gradients were not finite, and nothing was changed
    elapsed_ns: int
    tokens_per_s: float
    mfu_fraction: float  # NaN where no peak is known
    exposed_ns: Mapping[str, int]  # by axis


@dataclass(frozen=True, kw_only=True)
class Sums:
    """What ranks know each a part of, added up."""

    loss: float
    num_stop_requests: int
    exposed_ns: Mapping[str, float]  # summed over ranks


def add_up(comm: "Comm", *, loss_share: float, asks_to_stop: bool, exposed_ns: Mapping[str, int]) -> Sums:
    """Return the sums over all ranks, on each of them; the shares of the loss are the same on tensor-parallel ranks."""
    import torch

    own = [loss_share / comm.layout.tp, float(asks_to_stop), *(float(exposed_ns.get(axis, 0)) for axis in AXES)]
    sums = torch.tensor(own, dtype=torch.float64)
    for axis in AXES:
        comm.all_reduce(sums, axis=axis, tag="driver.report").wait()
    loss, num_stop_requests, *exposed = sums.tolist()
    return Sums(loss=loss, num_stop_requests=round(num_stop_requests), exposed_ns=dict(zip(AXES, exposed, strict=True)))


def training_table(reports: Sequence[StepReport]) -> Columns:
    """Return the columns of the record's table `training`; a figure that is not known or not finite is -1."""
    columns = {
        "step": [report.step for report in reports],
        "loss": [_finite(report.loss) for report in reports],
        "gradient_norm": [_finite(report.gradient_norm) for report in reports],
        "learning_rate": [report.learning_rate for report in reports],
        "is_skipped": [int(report.is_skipped) for report in reports],
        "elapsed_ns": [report.elapsed_ns for report in reports],
        "tokens_per_s": [report.tokens_per_s for report in reports],
        "mfu_fraction": [_finite(report.mfu_fraction) for report in reports],
        **{f"exposed_{axis}_ns": [report.exposed_ns[axis] for report in reports] for axis in AXES},
    }
    return {name: np.array(values) for name, values in columns.items()}


def _finite(value: float) -> float:
    return value if math.isfinite(value) else -1.0
