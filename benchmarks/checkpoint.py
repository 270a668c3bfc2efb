"""Checkpoints: what a save holds up, what is read, and what storage makes of it.

One run of one rank on a CPU, whose rounds have three steps each: without a save, with one beside the steps, and with a
synchronous one of the same state (copied, written and synchronized to disk before the next step begins). Blocking time
is what the save held up its own thread: at the end of the step, and before the next update. The copy itself takes a
processor's time beside the step; on a machine whose processors are all busy the step is longer by as much, which the
row `step beside a save` shows.

Left out: what is read on resuming, which `tests/trainer_probe/checkpoint/test_resuming.py` counts.
"""

import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe

CHANGES: dict[str, object] = {
    "model": {"width": 256, "depth": 4, "num_heads": 8, "vocabulary": 2048, "sequence": 256},
    "degrees": {"num_batches": 4, "batch_size": 4},
    "num_traced_steps": 1,
}
NUM_ROUNDS = 10
Row = dict[str, Any]


def benchmarks(*, is_quick: bool = False) -> list[Row]:
    """Return blocking time against a synchronous save and a step, and MB/s to storage against a plain write."""
    num_rounds = 3 if is_quick else NUM_ROUNDS
    with tempfile.TemporaryDirectory() as folder:
        times = _run(Path(folder), num_rounds)
    rows = [
        _row("state of one rank", [times["num_bytes"][0] / 2**20], "MiB"),
        _row("step without a save", times["step_s"], "s"),
        _row("step beside a save", times["beside_s"], "s"),
        _row("synchronous save", times["synchronous_s"], "s"),
        _row("blocking time of a save", [value * 1e3 for value in times["blocked_s"]], "ms"),
        _row("blocking time of a synchronous save's", _ratios(times, "synchronous_s"), "%"),
        _row("blocking time of a step's", _ratios(times, "step_s"), "%"),
    ]
    for name in ("save", "floor"):
        speeds = [times["num_bytes"][0] / 1e6 / value for value in times[f"{name}_s"]]
        rows.append(_row({"save": "to disk by a save", "floor": "to disk by write and fsync"}[name], speeds, "MB/s"))
    return rows


def _ratios(times: dict[str, list[float]], name: str) -> list[float]:
    typical = statistics.median(times[name])
    return [100 * value / typical for value in times["blocked_s"]]


def _run(folder: Path, num_rounds: int) -> dict[str, list[float]]:
    import torch

    from fabrictune.collectives.startup.groups import GroupPlan
    from fabrictune.collectives.startup.process_groups import Member
    from fabrictune.trainer_probe.checkpoint.checkpointer import Checkpointer
    from fabrictune.trainer_probe.checkpoint.saves import SaveReport
    from fabrictune.trainer_probe.checkpoint.storages import open_storage
    from fabrictune.trainer_probe.checkpoint.tier import Tier
    from fabrictune.trainer_probe.comm import Comm
    from fabrictune.trainer_probe.training.hooks import Hook, Run
    from fabrictune.trainer_probe.training.input_pipeline import Machine, make_batches
    from fabrictune.trainer_probe.training.loop import train
    from fabrictune.trainer_probe.training.progress import Monitor, StepReport

    torch.set_num_threads(1)
    recipe = load_recipe(find_recipe("tiny"), {**CHANGES, "num_steps": 3 * num_rounds + 1})
    tokens = Path(make_batches(recipe, folder).spec.path)
    layout = recipe.degrees.layout
    comm = Comm(layout, Member(rank=0, plan=GroupPlan.of_layout(layout), process_groups={}, elapsed_s=0.0))
    saves: list[SaveReport] = []
    checkpointer = Checkpointer(
        comm, [Tier(storage=open_storage(str(folder / "kept")))], save_every=3, generation=1, on_report=saves.append
    )
    times: dict[str, list[float]] = {
        name: [] for name in ("step_s", "beside_s", "synchronous_s", "blocked_s", "save_s", "floor_s", "num_bytes")
    }

    def measure(run: Run, report: StepReport) -> None:
        """After steps 3, 6 ...: a save begins; step 4, 7 ... run beside it; then a synchronous one; then none."""
        if report.step == 0:
            return
        if run.step % 3 == 1:
            times["beside_s"].append(report.elapsed_ns / 1e9)
            checkpointer.wait(600)
            times["synchronous_s"].append(_save_now(run, folder / "now"))
            times["floor_s"].append(_write_floor(folder / "floor"))
        elif run.step % 3 == 0:
            times["step_s"].append(report.elapsed_ns / 1e9)

    watch = Monitor(on_step=lambda report: None, is_stopped=lambda: False)
    machine = Machine(ranks=(0,), tokens=tokens, job=folder.name)
    device = torch.device("cpu")
    train(recipe, comm, machine, watch, device, hooks=[Hook(after_step=measure), checkpointer.hook])
    checkpointer.close(600)
    times["num_bytes"] = [float(saves[0].written_bytes)]
    times["blocked_s"] = [save.blocked_ns / 1e9 for save in saves]
    times["save_s"] = [save.elapsed_s for save in saves]
    return times


def _save_now(run: Any, path: Path) -> float:
    """Copy a state, write it and synchronize it; returns for how long the training stood."""
    import torch
    from safetensors.torch import save_file

    began_s = time.perf_counter()
    state = run.state().clone()
    tensors: dict[str, torch.Tensor] = {
        f"{piece.weight}/{piece.part}/{piece.begin}/{name}": tensor
        for piece in state.pieces
        for name, tensor in piece.tensors.items()
    }
    save_file(tensors, path)
    _synchronize(path)
    return time.perf_counter() - began_s


def _write_floor(path: Path) -> float:
    """Write as many bytes at once, and synchronize them; returns how long it took."""
    content = bytes(path.with_name("now").stat().st_size)
    began_s = time.perf_counter()
    path.write_bytes(content)
    _synchronize(path)
    return time.perf_counter() - began_s


def _synchronize(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _row(name: str, values: list[float], unit: str) -> Row:
    ordered = sorted(values)
    spread = f"{len(ordered)} values, {ordered[0]:.3g} to {ordered[-1]:.3g}"
    return {"name": name, "value": statistics.median(ordered), "unit": unit, "spread": spread}
