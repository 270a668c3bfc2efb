"""A real job of 8 processes of which one is stopped by turns: is it found, and is its gain the predicted one?

The ranks train a tiny model over tp 2, dp 2, pp 2. Each pass also waits for a fixed time in small pieces, as a host
waits for its GPU: 8 ranks that computed on 2 cores would all slow one another. After some steps the parent stops rank
5 for 40 of every 160 ms (SIGSTOP, SIGCONT); the undisturbed steps before are the measured step without the straggler.

Expected, and written down before the first run: rank 5 alone is named for slow work, with 20 to 50 % excess, and the
predicted gain is within 20 % of the measured one.

Run: `python -m benchmarks.studies.planted_stragglers.paced [--steps N]`
"""

import argparse
import os
import signal
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fabrictune.foundation.span_lines import MAX_LINE_BYTES, SpanHeader
from fabrictune.foundation.span_reader import read_spans
from fabrictune.foundation.span_writer import span_file
from fabrictune.observability.stragglers.diagnosis import Diagnosis, diagnose
from fabrictune.trainer_probe.launcher.processes import Arrays
from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe
from fabrictune.trainer_probe.recipes.schema import Recipe
from fabrictune.trainer_probe.training.input_pipeline import Machine
from fabrictune.trainer_probe.training.local import run_locally
from fabrictune.trainer_probe.training.progress import Channel, Monitor, StepReport

if TYPE_CHECKING:
    from fabrictune.collectives.startup.process_groups import Member
    from fabrictune.trainer_probe.parallel.passes import Passes

STRAGGLER = 5
STOPPED_S, RUNNING_S = 0.04, 0.12
PIECE_S, FORWARD_PIECES, BACKWARD_PIECES = 0.005, 8, 16
WARM_UP = 3  # steps that are not looked at, of both phases
CHANGES: dict[str, object] = {
    "model": {"width": 16, "depth": 4, "num_heads": 2, "vocabulary": 258, "sequence": 16},
    "degrees": {"layout": {"tp": 2, "dp": 2, "pp": 2}, "num_batches": 4, "batch_size": 1},
}


class PacedPasses:
    """Passes that also take a time of their own, in small pieces, as a host waits for its GPU."""

    def __init__(self, passes: "Passes") -> None:
        self._passes = passes

    def forward(self, *arguments: Any) -> Any:
        """Run the forward pass."""
        _wait(FORWARD_PIECES)
        return self._passes.forward(*arguments)

    def backward(self, *arguments: Any) -> Any:
        """Run the backward pass."""
        _wait(BACKWARD_PIECES)
        return self._passes.backward(*arguments)

    def weight_gradients(self) -> None:
        """Add what the backward pass has kept."""
        self._passes.weight_gradients()


def try_paced(num_steps: int) -> tuple[Diagnosis, float]:
    """Return the diagnosis of the disturbed half of a job, and the gain that its undisturbed half measures."""
    recipe = load_recipe(find_recipe("tiny"), {**CHANGES, "num_steps": 2 * num_steps})
    with tempfile.TemporaryDirectory() as folder:
        spans = Path(folder) / "spans"
        turns = _Turns(spans, first_step=num_steps)
        run_locally(recipe, partial(_paced_rank, recipe, spans), turns.on_step, timeout_s=120)
        turns.end()
        whole = read_spans(spans)
    is_step = (whole.kind_N == 0) & (whole.rank_N == 0)
    times_S = (whole.end_ns_N - whole.start_ns_N)[is_step]
    before, during = times_S[WARM_UP:num_steps].mean(), times_S[num_steps + WARM_UP :].mean()
    disturbed = whole.where(whole.step_N >= num_steps + WARM_UP - 1)
    return diagnose(disturbed), float(1 - before / during)


def main() -> None:
    """Run the trial and print what it shows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=15, help="undisturbed, and as many disturbed")
    found, measured = try_paced(parser.parse_args().steps)
    ratio_R = np.nanmedian(found.ratio_RS, axis=1)
    print("own work over peers':", " ".join(f"{ratio:.3f}" for ratio in ratio_R))
    for one in found.stragglers:
        gain = "n/a" if one.gain_fraction is None else f"{one.gain_fraction:.1%}"
        print(f"{one.cause} {one.ranks} {one.pattern}: excess {one.excess_fraction:.1%}, predicted gain {gain}")
    print(f"measured gain {measured:.1%}; median step {found.step_ns / 1e6:.1f} ms")


class _Turns:
    """Stops and starts of the straggler, from a step on."""

    def __init__(self, spans: Path, *, first_step: int) -> None:
        self._spans, self._first_step = spans, first_step
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None

    def on_step(self, report: StepReport) -> None:
        """Begin once the last undisturbed step has ended."""
        if report.step + 1 >= self._first_step and self._thread is None:
            with span_file(self._spans, STRAGGLER).open("rb") as file:
                pid = SpanHeader.parse(file.readline(MAX_LINE_BYTES)).pid
            self._thread = threading.Thread(target=self._take_turns, args=(pid,), daemon=True)
            self._thread.start()

    def end(self) -> None:
        """End the turns."""
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()

    def _take_turns(self, pid: int) -> None:
        try:
            while not self._is_over.wait(RUNNING_S):
                os.kill(pid, signal.SIGSTOP)
                self._is_over.wait(STOPPED_S)
                os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:  # it has ended
            return


def _paced_rank(
    recipe: Recipe, spans: Path, member: "Member", machine: Machine, channel: Channel[StepReport]
) -> Arrays:
    from fabrictune.trainer_probe.training.hardware import device_of
    from fabrictune.trainer_probe.training.hooks import Hook
    from fabrictune.trainer_probe.training.loop import train
    from fabrictune.trainer_probe.training.timed_comm import timed_comm

    device = device_of(recipe)
    comm = timed_comm(recipe.degrees.layout, member, device)
    monitor = Monitor(on_step=channel.send, is_stopped=channel.is_stopped)
    train(recipe, comm, machine, monitor, device, hooks=[Hook(passes_of=PacedPasses)], spans=spans)
    return {}


def _wait(pieces: int) -> None:
    for _ in range(pieces):
        time.sleep(PIECE_S)


if __name__ == "__main__":
    main()
