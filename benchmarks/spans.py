"""Spans: what recording them costs a step, and a request.

Three trainings of one rank take steps in turn: one that records, and two that do not, whose ratio is the noise (A/A).
Each has its processor's time, which neighbours on a busy machine hardly change. One rank makes few requests: their cost
is measured alone, the ledger's door with it, and counted for the 7,300 requests of a step of 175b that takes 6.34 s.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe

CHANGES: dict[str, object] = {
    "model": {"width": 128, "depth": 4, "num_heads": 4, "vocabulary": 1024, "sequence": 128},
    "degrees": {"num_batches": 4, "batch_size": 2},
}
NUM_ROUNDS = 40
NUM_REQUESTS = 5000
PUBLISHED_REQUESTS, PUBLISHED_STEP_S = 7300, 6.34  # of a step of 175b on 12,288 GPUs (MegaScale, table 2)
Row = dict[str, Any]


def benchmarks(*, is_quick: bool = False) -> list[Row]:
    """Return the cost of spans in a step, its noise, and the cost of a request."""
    with tempfile.TemporaryDirectory() as folder:
        recorded, other = _paired(Path(folder), 5 if is_quick else NUM_ROUNDS)
        door_us, record_us = _requests(Path(folder), NUM_REQUESTS // 10 if is_quick else NUM_REQUESTS)
    published = [100e-6 * (door_us + record_us) * PUBLISHED_REQUESTS / PUBLISHED_STEP_S]
    return [
        _row("step with spans beyond one without", recorded, "%"),
        _row("step without beyond another without (A/A)", other, "%"),
        _row("a request in the ledger", [door_us], "us"),
        _row("a request as a span", [record_us], "us"),
        _row("both of 7,300 requests in a step of 6.34 s", published, "%"),
    ]


def _paired(folder: Path, num_rounds: int) -> tuple[list[float], list[float]]:
    """Return by how many percent a step with spans, and one of a second training without, exceed one without."""
    import torch

    from fabrictune.trainer_probe.data.batches import Batches
    from fabrictune.trainer_probe.model.forward import MicroBatch
    from fabrictune.trainer_probe.spans.recorder import recording
    from fabrictune.trainer_probe.training.input_pipeline import make_batches
    from fabrictune.trainer_probe.training.training import Training

    torch.set_num_threads(1)
    recipe = load_recipe(find_recipe("tiny"), {**CHANGES, "num_steps": num_rounds + 2})
    spec = make_batches(recipe, folder).spec
    shape = recipe.degrees.batch_size, recipe.model.sequence
    tokens = torch.zeros(shape, dtype=torch.int64)
    taken = [MicroBatch(tokens_BS=tokens, targets_BS=tokens)] * recipe.degrees.num_batches
    steps: list[Callable[[], object]] = []
    with ExitStack() as stack:
        for is_recorded in (True, False, False):
            comm = comm_of_one()
            recorder = stack.enter_context(recording(comm, folder / "spans")) if is_recorded else None
            training = Training(
                recipe,
                comm,
                torch.device("cpu"),
                batches=lambda: Batches(spec),
                hooks=() if recorder is None else recorder.around(()),
            )
            comm.restart_ledger()
            if recorder is not None:
                recorder.begin()
            steps.append(partial(training.run_step, lambda: taken))
        times = [[_cpu_s(step) for step in (steps if round_ % 2 else steps[::-1])] for round_ in range(num_rounds + 1)]
    ordered = [row if round_ % 2 else row[::-1] for round_, row in enumerate(times)][1:]
    return (
        [100 * (recorded / bare - 1) for recorded, bare, _ in ordered],
        [100 * (other / bare - 1) for _, bare, other in ordered],
    )


def _requests(folder: Path, number: int) -> tuple[float, float]:
    """Return the time of a request's door, and of making it a span, in us."""
    import torch

    from fabrictune.trainer_probe.spans.recorder import SpanRecorder
    from fabrictune.trainer_probe.training.progress import StepReport

    comm = comm_of_one()
    comm.restart_ledger()
    recorder = SpanRecorder(comm, folder / "requests")
    recorder.begin()
    (first, last), tensor = recorder.around(()), torch.zeros(1)
    report: StepReport = None  # type: ignore[assignment]  # that the recorder does not look at
    run: Any = None

    def request() -> None:
        for place in range(number):
            comm.all_reduce(tensor, axis="dp", tag=f"stage0.batch{place % 8}.layer").wait()

    assert first.before_step is not None
    assert last.after_step is not None
    first.before_step(run, 0)
    door_s = _cpu_s(request)
    last.after_step(run, report)
    record_s = _cpu_s(recorder.close)
    return 1e6 * door_s / number, 1e6 * record_s / number


def comm_of_one() -> Any:
    """Return the communication of a rank alone."""
    from fabrictune.collectives.startup.groups import GroupPlan
    from fabrictune.collectives.startup.process_groups import Member
    from fabrictune.foundation.layout import ParallelLayout
    from fabrictune.trainer_probe.comm import Comm

    layout = ParallelLayout()
    return Comm(layout, Member(rank=0, plan=GroupPlan.of_layout(layout), process_groups={}, elapsed_s=0.0))


def _cpu_s(call: Callable[[], object]) -> float:
    began_s = time.process_time()
    call()
    return time.process_time() - began_s


def _row(name: str, values: list[float], unit: str) -> Row:
    ordered = sorted(values)
    spread = f"{len(ordered)} values, {ordered[0]:.3g} to {ordered[-1]:.3g}"
    return {"name": name, "value": statistics.median(ordered), "unit": unit, "spread": spread}
