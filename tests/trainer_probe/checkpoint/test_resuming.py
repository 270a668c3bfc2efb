"""Runs that are killed and go on, and what their ranks read; real processes."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("torch")

import torch
from safetensors.torch import load_file

from fabrictune.foundation.records import RunRecord
from fabrictune.trainer_probe.checkpoint.checkpointer import Checkpointer
from fabrictune.trainer_probe.checkpoint.listing import newest
from fabrictune.trainer_probe.checkpoint.names import CheckpointId
from fabrictune.trainer_probe.checkpoint.reader import open_state
from fabrictune.trainer_probe.checkpoint.restoring import restore
from fabrictune.trainer_probe.checkpoint.storages import open_storage
from fabrictune.trainer_probe.checkpoint.tier import Tier
from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.data.batches import Batches
from fabrictune.trainer_probe.launcher.processes import launch
from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe
from fabrictune.trainer_probe.training.hardware import device_of
from fabrictune.trainer_probe.training.input_pipeline import Machine, make_batches
from fabrictune.trainer_probe.training.loop import train
from fabrictune.trainer_probe.training.progress import Monitor, StepReport
from fabrictune.trainer_probe.training.training import Training
from tests.patience import patience
from tests.trainer_probe.checkpoint.written import recipe_of
from tests.trainer_probe.optimizers.flat_models import comm_of_one
from tests.trainer_probe.training.alone import machine_of_one

if TYPE_CHECKING:
    from fabrictune.collectives.startup.process_groups import Member

SETTINGS: Mapping[str, str] = {
    "model": '{"width": 16, "depth": 2, "num_heads": 2, "vocabulary": 258, "sequence": 16}',
    "degrees": '{"layout": {"dp": 2}, "num_batches": 2, "batch_size": 2}',
    "precision": "float64",
    "num_steps": "8",
    "num_traced_steps": "1",
}
Arrays = dict[str, NDArray[Any]]


def save_and_restore(tokens: Path, place: str, member: "Member") -> Arrays:
    """Save ddp's state after each of two steps, and take it up twice: read by one rank of a group, and by each."""
    recipe = replace(recipe_of({"layout": {"tp": 2, "dp": 2}}, "ddp"), num_steps=2)
    comm, storage = Comm(recipe.degrees.layout, member), open_storage(place)
    machine = Machine(ranks=tuple(range(4)), tokens=tokens, job=Path(place).parent.name)
    checkpointer = Checkpointer(comm, [Tier(storage=storage)], save_every=1, generation=1, when_busy="wait")
    watch = Monitor(on_step=lambda report: None, is_stopped=lambda: False)
    train(recipe, comm, machine, watch, device_of(recipe), hooks=[checkpointer.hook])
    is_saved = checkpointer.close(patience(60))
    comm.exchange_bytes(b"saved")
    found: Arrays = {"saved": np.array(is_saved)}
    for name, is_shared in (("shared", True), ("each", False)):
        training = Training(recipe, comm, device_of(recipe), batches=lambda: Batches(recipe.batches(tokens)))
        restored = restore(training, [storage], is_shared=is_shared)
        assert restored is not None
        found[f"{name} read_bytes"] = np.array(restored.read_bytes)
        found |= {
            f"{name}/{piece.weight}/{piece.part}/{piece.begin}/{kind}": tensor.numpy()
            for piece in training.pieces()
            for kind, tensor in piece.tensors.items()
        }
    return found


def test_one_rank_reads_what_a_group_holds(tmp_path: Path) -> None:
    """In ddp over dp 2 each byte is read once and sent to the other; read by each, those of all are read again.

    Weights replicated over tp 2 are read once by each tensor-parallel rank's group. The states are the same.
    """
    recipe = recipe_of({"layout": {"tp": 2, "dp": 2}}, "ddp")
    tokens = Path(make_batches(recipe, tmp_path).spec.path)
    place = str(tmp_path / "kept")
    ranks = launch(recipe.degrees.layout, partial(save_and_restore, tokens, place), timeout_s=patience(120))
    checkpoint = newest([open_storage(place)])
    assert checkpoint == CheckpointId(step=2, generation=1)
    _, source = open_state([open_storage(place)], checkpoint)
    for found in ranks:
        assert bool(found["saved"])
        shared = {key.removeprefix("shared/"): array for key, array in found.items() if key.startswith("shared/")}
        assert len(shared) > 10
        for key, array in shared.items():
            np.testing.assert_array_equal(found[f"each/{key}"], array, strict=True)
    held = [sum(array.nbytes for key, array in found.items() if key.startswith("each/")) for found in ranks]
    assert int(ranks[0]["each read_bytes"]) == sum(held)
    assert int(ranks[0]["shared read_bytes"]) == sum(held) // 2
    assert source.read_bytes == 0


def command(folder: Path, *words: str) -> list[str]:
    settings = [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]
    out = ("--out", str(folder / "record"), "--checkpoint", str(folder / "kept"), "--save-every", "2")
    return [sys.executable, "-m", "fabrictune", "train", "run", "tiny", *settings, *out, *words]


def final_values(folder: Path) -> dict[str, torch.Tensor]:
    """All tensors of the last checkpoint."""
    (last,) = (path for path in (folder / "kept").iterdir() if path.name.startswith("step-00000008"))
    return {name: tensor for path in last.glob("*.safetensors") for name, tensor in load_file(path).items()}


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    """SIGKILL in the fifth step or later: `--resume` ends in the parameters and moments of the run never killed.

    Another layout that goes on from its checkpoint has its losses to 1e-12, in double precision.
    """
    killed, undisturbed = tmp_path / "killed", tmp_path / "undisturbed"
    subprocess.run(command(undisturbed), check=True, capture_output=True, timeout=patience(120))
    with subprocess.Popen(command(killed), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        is_late = False
        for line in process.stdout:
            is_late = is_late or line.split()[:1] == ["4"]
            if is_late and any((killed / "kept").glob("step-*/manifest.json")):  # a save may take longer than steps
                break
        os.kill(process.pid, signal.SIGKILL)
    again = subprocess.run(
        command(killed, "--resume"), check=True, capture_output=True, text=True, timeout=patience(120)
    )
    assert "resumed from step-0000000" in again.stderr
    expected, found = final_values(undisturbed), final_values(killed)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())
    record = RunRecord.read(killed / "record")
    assert record.run["next_step"] == 8
    assert record.run["data_state"] == RunRecord.read(undisturbed / "record").run["data_state"]
    finished = subprocess.run(
        command(killed, "--resume"), check=True, capture_output=True, text=True, timeout=patience(120)
    )
    assert "resumed from step-00000008" in finished.stderr

    changes: dict[str, object] = {
        "model": {"width": 16, "depth": 2, "num_heads": 2, "vocabulary": 258, "sequence": 16},
        "degrees": {"num_batches": 4, "batch_size": 2},
        "data_parallel.strategy": "zero3",
        "precision": "float64",
        "num_steps": 8,
        "num_traced_steps": 1,
    }
    recipe, reports = load_recipe(find_recipe("tiny"), changes), list[StepReport]()
    state = open_state([open_storage(str(undisturbed / "kept"))], CheckpointId(step=4, generation=1))
    watch = Monitor(on_step=reports.append, is_stopped=lambda: False)
    train(recipe, comm_of_one(), machine_of_one(recipe, tmp_path), watch, device_of(recipe), state=state)
    losses = RunRecord.read(undisturbed / "record").tables["training"]["loss"][4:]
    assert [report.step for report in reports] == [4, 5, 6, 7]
    np.testing.assert_allclose([report.loss for report in reports], losses, rtol=1e-12)
