"""Saves beside the steps of one rank, and what a training makes of them later."""

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
from safetensors.torch import load_file

from fabrictune.trainer_probe.checkpoint.checkpointer import Checkpointer
from fabrictune.trainer_probe.checkpoint.listing import newest
from fabrictune.trainer_probe.checkpoint.reader import open_state
from fabrictune.trainer_probe.checkpoint.saves import SaveReport
from fabrictune.trainer_probe.checkpoint.storages import open_storage
from fabrictune.trainer_probe.checkpoint.tier import Tier
from fabrictune.trainer_probe.state.train_state import TrainState, join
from fabrictune.trainer_probe.training.hardware import device_of
from fabrictune.trainer_probe.training.hooks import Hook, Run
from fabrictune.trainer_probe.training.loop import train
from fabrictune.trainer_probe.training.progress import Monitor, StepReport
from tests.patience import patience
from tests.trainer_probe.optimizers.flat_models import comm_of_one
from tests.trainer_probe.training.alone import machine_of_one, small

CHANGES: dict[str, object] = {"schedule": {"peak": 0.02, "num_steps": 4}, "num_traced_steps": 1}


def test_a_run_goes_on_from_its_newest_checkpoint_bit_by_bit(tmp_path: Path) -> None:
    """Saves after steps 1 and 3 of 4; from that of step 2 the later reports and the saved states are the same."""
    recipe = small(CHANGES)
    comm, machine, device = comm_of_one(), machine_of_one(recipe, tmp_path), device_of(recipe)
    storage = open_storage(str(tmp_path / "kept"))
    saves: list[SaveReport] = []
    states: dict[int, TrainState] = {}
    reports: list[StepReport] = []

    def keep(run: Run, report: StepReport) -> None:
        states[run.step] = run.state().clone()

    watch = Monitor(on_step=reports.append, is_stopped=lambda: False)
    checkpointer = Checkpointer(comm, [Tier(storage=storage)], save_every=2, generation=1, on_report=saves.append)
    train(recipe, comm, machine, watch, device, hooks=[Hook(after_step=keep), checkpointer.hook])
    assert checkpointer.close(patience(30))
    assert [(save.step, save.outcome, save.cause) for save in saves] == [(2, "saved", ""), (4, "saved", "")]
    assert sorted(storage.names()) == ["generation-00001.json", "step-00000002.g1", "step-00000004.g1"]
    for step in (2, 4):
        checkpoint = newest([storage], before_step=step + 1)
        assert checkpoint is not None
        head, _ = open_state([storage], checkpoint)
        assert head == states[step].head
        for piece in states[step].pieces:
            file = load_file(tmp_path / "kept" / str(checkpoint) / "rank-00000.safetensors")
            for name, tensor in piece.tensors.items():
                assert torch.equal(file[f"{piece.weight}/{piece.part}/{piece.begin}/{name}"], tensor)
    checkpoint = newest([storage], before_step=4)
    assert checkpoint is not None
    again = comm_of_one()
    train(recipe, again, replace(machine, job="again"), watch, device, state=open_state([storage], checkpoint))
    assert [report.step for report in reports] == [0, 1, 2, 3, 2, 3]
    assert [report.loss for report in reports[2:4]] == [report.loss for report in reports[4:]]
    assert join([states[4]])[0].num_updates == 4
