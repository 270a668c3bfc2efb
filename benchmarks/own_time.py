"""Processor time of spans and of the NIC monitor themselves, measured where it is spent.

Steps with spans against steps without differ by less than steps differ by themselves (`spans.py`). Here the recorder's
hooks are timed inside the steps that they are part of, by the clock of their thread, which neither neighbours nor waits
change; passes and the monitor's samples likewise, alone. A second training whose hooks do nothing is timed the same
way: what it shows is the cost of timing, and the noise.

Expected, and written down before the first run: hooks below 1 % of a step's processor time with an interval that ends
below it, those that do nothing below 0.1 %; the monitor at 10 ms below 1 % of a machine's processors for 27 counters.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.spans import CHANGES, Row
from fabrictune.rdma_bench.monitor.monitoring import Monitor
from fabrictune.rdma_bench.monitor.sources import NicSources
from fabrictune.topology.ecmp.estimates import estimate_mean
from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe
from fabrictune.trainer_probe.training.hooks import Hook

NUM_ROUNDS = 60
NUM_CALLS = 5000  # of a pass alone
INTERVAL_S, MONITORED_S = 0.01, 10.0


def benchmarks(*, is_quick: bool = False) -> list[Row]:
    """Return the shares of processor time that spans take of a step, and the monitor of the machine."""
    num_rounds = 8 if is_quick else NUM_ROUNDS
    with tempfile.TemporaryDirectory() as folder:
        recorded, idle = (_shares(Path(folder), num_rounds, records=records) for records in (True, False))
    counters, sample_us, core = _monitored(1.0 if is_quick else MONITORED_S)
    machine = core / len(os.sched_getaffinity(0))
    return [
        _row("own time of spans in a step", recorded, "%"),
        _row("the same of hooks that do nothing (noise)", idle, "%"),
        _row("a sample of a NIC's counter", [sample_us / max(1, counters)], "us"),
        _row(f"monitor of {counters} counters at 10 ms, of a core", [100 * core], "%"),
        _row(f"monitor of {counters} counters at 10 ms, of the machine", [100 * machine], "%"),
    ]


class _Meter:
    """Processor time that its thread spends in some calls."""

    def __init__(self) -> None:
        self.taken_ns = 0

    def timed(self, call: Callable[..., None] | None) -> Callable[..., None] | None:
        """Return a call whose time is added, None for none."""
        return None if call is None else partial(self._call, call)

    def hook(self, hook: Hook) -> Hook:
        """Return a hook whose calls are timed, but those around passes."""
        return replace(
            hook,
            before_step=self.timed(hook.before_step),
            after_step=self.timed(hook.after_step),
            before_update=self.timed(hook.before_update),
            after_update=self.timed(hook.after_update),
        )

    def _call(self, call: Callable[..., None], *arguments: Any) -> None:
        began_ns = time.thread_time_ns()
        call(*arguments)
        self.taken_ns += time.thread_time_ns() - began_ns


def _shares(folder: Path, num_rounds: int, *, records: bool) -> list[float]:
    """Return the share of each step's processor time, in percent, that hooks take in it, passes' readings included."""
    import torch

    from benchmarks.spans import comm_of_one
    from fabrictune.trainer_probe.data.batches import Batches
    from fabrictune.trainer_probe.model.forward import MicroBatch
    from fabrictune.trainer_probe.spans.recorder import recording
    from fabrictune.trainer_probe.training.input_pipeline import make_batches
    from fabrictune.trainer_probe.training.training import Training

    torch.set_num_threads(1)
    recipe = load_recipe(find_recipe("tiny"), {**CHANGES, "num_steps": num_rounds + 2})
    spec = make_batches(recipe, folder).spec
    tokens = torch.zeros((recipe.degrees.batch_size, recipe.model.sequence), dtype=torch.int64)
    taken = [MicroBatch(tokens_BS=tokens, targets_BS=tokens)] * recipe.degrees.num_batches
    comm, meter = comm_of_one(), _Meter()
    with ExitStack() as stack:
        hooks: Iterable[Hook] = (_idle_hook(), _idle_hook())
        pass_ns = 0.0
        if records:
            recorder = stack.enter_context(recording(comm, folder / "spans"))
            hooks, pass_ns = recorder.around(()), _pass_ns()
        training = Training(
            recipe,
            comm,
            torch.device("cpu"),
            batches=lambda: Batches(spec),
            hooks=tuple(map(meter.hook, hooks)),
        )
        comm.restart_ledger()
        if records:
            recorder.begin()
        shares = []
        for _ in range(num_rounds + 1):
            meter.taken_ns, began_ns = 0, time.process_time_ns()
            training.run_step(lambda: taken)
            step_ns = time.process_time_ns() - began_ns
            shares.append(100 * (meter.taken_ns + 2 * recipe.degrees.num_batches * pass_ns) / step_ns)
    return shares[1:]


def _idle_hook() -> Hook:
    def nothing(*arguments: Any) -> None:
        """Do nothing."""

    return Hook(before_step=nothing, after_step=nothing, before_update=nothing, after_update=nothing)


def _pass_ns() -> float:
    """Return what the readings around one pass cost."""
    from fabrictune.trainer_probe.spans.passes import TimedPass, TimedPasses

    class Nothing:
        def forward(self, *arguments: Any) -> Any:
            return None

    kept: list[TimedPass] = []
    bare: Any = Nothing()
    timed = TimedPasses(bare, 0, time.perf_counter_ns, lambda: kept)
    batch: Any = None
    taken = []
    for call in (lambda: bare.forward(batch, None, ""), lambda: timed.forward(batch, None, "stage0.batch0")):
        began_ns = time.thread_time_ns()
        for _ in range(NUM_CALLS):
            call()
        taken.append((time.thread_time_ns() - began_ns) / NUM_CALLS)
    return taken[1] - taken[0]


def _monitored(duration_s: float) -> tuple[int, float, float]:
    """Return a monitor's counters, the time of a sample in us, and its share of a core."""
    sources = NicSources(("lo", *(path.name for path in Path("/sys/class/net").glob("*") if path.name != "lo")))
    monitor = Monitor(sources=sources, interval_s=INTERVAL_S)
    monitor.run(duration_s)
    counters, cost = len(sources.counters), monitor.cost
    sources.close()
    return counters, 1e6 * cost.processor_s / max(1, cost.num_samples), cost.processor_s / cost.num_samples / INTERVAL_S


def _row(name: str, values: list[float], unit: str) -> Row:
    middle = estimate_mean(values) if len(values) > 1 else None
    interval = "" if middle is None else f", mean {middle.value:.3g} ({middle.low:.3g} to {middle.high:.3g}, 95 %)"
    spread = f"{len(values)} values, {min(values):.3g} to {max(values):.3g}{interval}"
    return {"name": name, "value": statistics.median(values), "unit": unit, "spread": spread}
