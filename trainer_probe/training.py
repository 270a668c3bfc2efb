"""A whole small training run on this machine: its processes started, its ledgers brought together."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from foundation.layout import ParallelLayout
from foundation.traces import CommTrace
from trainer_probe.config import TrainingSpec
from trainer_probe.launcher import launch
from trainer_probe.ledger import merge

if TYPE_CHECKING:
    from collectives.startup.process_groups import Member


@dataclass(frozen=True, kw_only=True)
class Training:
    """What a run leaves. Gradients and parameters are those after the last step, by rank and parameter name."""

    trace: CommTrace  # the ledgers of all ranks
    gradients: tuple[Mapping[str, NDArray[np.float64]], ...]
    parameters: tuple[Mapping[str, NDArray[np.float64]], ...]


def train(spec: TrainingSpec, dp: int, num_steps: int, *, timeout_s: float = 120.0) -> Training:
    """Train on `dp` processes of this machine; raises UnavailableError where torch is missing or a rank fails."""
    layout = ParallelLayout(dp=dp)
    with tempfile.TemporaryDirectory(prefix="fabrictune-ledgers-") as name:
        folder = Path(name)
        target = partial(_train_rank, layout, spec, num_steps, folder)
        found = launch(layout, target, timeout_s=timeout_s)
        trace = merge([CommTrace.read(folder / f"{rank}.parquet") for rank in range(dp)])
    return Training(
        trace=trace,
        gradients=tuple(_select(arrays, "gradient.") for arrays in found),
        parameters=tuple(_select(arrays, "parameter.") for arrays in found),
    )


def _train_rank(
    layout: ParallelLayout, spec: TrainingSpec, num_steps: int, folder: Path, member: "Member"
) -> dict[str, NDArray[Any]]:
    """Run in the rank's own process; leaves its ledger in `folder`."""
    from trainer_probe.comm import Comm
    from trainer_probe.step import DataParallelTrainer

    comm = Comm(layout, member)
    trainer = DataParallelTrainer(spec, comm)
    comm.restart_ledger()
    for step in range(num_steps):
        trainer.run_step(step)
    comm.ledger().write(folder / f"{member.rank}.parquet")
    return trainer.state()


def _select(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[np.float64]]:
    return {name.removeprefix(prefix): values for name, values in arrays.items() if name.startswith(prefix)}
