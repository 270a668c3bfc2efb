"""What share of one GPU's peak the trainer uses (MFU), its layers compiled or not, and where the rest of a step goes.

The model is that of the recipe `single-gpu` (width 4096, bfloat16, master copies in single precision); a step is
everything from the batch to changed weights, the gradients' clipping among them. Time that a GPU spends on kernels is
put down to products of matrices, attention, and all else; what is left of the wall time it stood idle. Nothing is
measured where torch finds no GPU.

Run: `python -m benchmarks.run trainer_gpu`
"""

import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from fabrictune.collectives.startup.groups import GroupPlan
from fabrictune.collectives.startup.process_groups import Member
from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.gpus import find_peak
from fabrictune.trainer_probe.model.forward import MicroBatch
from fabrictune.trainer_probe.model.spec import model_flops_utilisation
from fabrictune.trainer_probe.optimizers.norms import clip_factor
from fabrictune.trainer_probe.optimizers.optimizer import make_optimizer
from fabrictune.trainer_probe.parallel.trainer import ParallelTrainer
from fabrictune.trainer_probe.policies import POLICIES, Compilation
from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe
from fabrictune.trainer_probe.recipes.schema import Recipe

DEVICE = torch.device("cuda", 0)

TakeStep = Callable[[], object]

NUM_STEPS, WARM_UP_STEPS, PROFILED_STEPS = 10, 3, 2
FORMS: Mapping[str, Compilation] = {"eager": "none", "compiled": "layers"}
KINDS = (  # of kernels, by a pattern of their names; the first that is found
    ("attention", re.compile(r"flash|fmha|flex|attention", re.IGNORECASE)),
    ("products", re.compile(r"gemm|cutlass|nvjet|xmma|matmul", re.IGNORECASE)),
    ("other-kernels", re.compile("")),
)


def benchmarks() -> list[dict[str, Any]]:
    """Return the share of the peak and of a step's time by kind of kernel, as rows of benchmarks/results.json."""
    if not torch.cuda.is_available():
        print("  torch finds no GPU: nothing measured")
        return []
    recipe = load_recipe(find_recipe("single-gpu"))
    return [row for form, compilation in FORMS.items() for row in _measure(recipe, form, compilation)]


def _measure(recipe: Recipe, form: str, compilation: Compilation) -> Iterator[dict[str, Any]]:
    take_step = _make_step(recipe, compilation)
    for _ in range(WARM_UP_STEPS):
        take_step()
    took_s = [_time_s(take_step) for _ in range(NUM_STEPS)]
    shares = [_utilisation(recipe, seconds) for seconds in took_s]
    yield {
        "name": f"trainer_probe.gpu.{form}.mfu",
        "value": 100 * statistics.median(shares),
        "unit": "% of peak",
        "spread": f"{100 * min(shares):.1f} to {100 * max(shares):.1f} over {NUM_STEPS} steps",
    }
    for kind, share in _profile(take_step).items():
        spread = f"of the wall time of {PROFILED_STEPS} steps"
        yield {"name": f"trainer_probe.gpu.{form}.{kind}", "value": 100 * share, "unit": "%", "spread": spread}
    torch.cuda.empty_cache()


def _make_step(recipe: Recipe, compilation: Compilation) -> TakeStep:
    layout = recipe.degrees.layout
    dtype: torch.dtype = getattr(torch, recipe.precision_name)
    comm = Comm(layout, Member(rank=0, plan=GroupPlan.of_layout(layout), process_groups={}, elapsed_s=0.0))
    trainer = ParallelTrainer(
        recipe.model, recipe.degrees, comm, POLICIES[recipe.overlap], dtype, DEVICE, compilation=compilation
    )
    optimizer = make_optimizer(trainer.shards, recipe.optimizer, comm)
    shape = (recipe.degrees.num_batches, recipe.degrees.batch_size, recipe.model.sequence + 1)
    ids_MBS = torch.randint(recipe.model.vocabulary, shape, device=DEVICE)
    batches = [MicroBatch(tokens_BS=ids[:, :-1], targets_BS=ids[:, 1:]) for ids in ids_MBS]

    def update() -> None:
        _, factor = clip_factor(trainer.shards, recipe.optimizer.max_gradient_norm, comm)
        optimizer.step(recipe.schedule.peak, factor)

    return lambda: trainer.run_step(0, batches, update)


def _time_s(take_step: TakeStep) -> float:
    torch.cuda.synchronize()
    started = time.perf_counter()
    take_step()
    torch.cuda.synchronize()
    return time.perf_counter() - started


def _utilisation(recipe: Recipe, seconds: float) -> float:
    peak = find_peak(torch.cuda.get_device_name(), recipe.precision_name)
    assert peak is not None, "a GPU whose peak is known"
    tokens_per_s = recipe.degrees.samples_per_step * recipe.model.sequence / seconds
    return model_flops_utilisation(recipe.model, tokens_per_s=tokens_per_s, num_gpus=1, peak_flops_per_s=peak)


def _profile(take_step: TakeStep) -> Mapping[str, float]:
    """Return the shares of wall time by kind of kernel, and idle."""
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as trace:
        wall_s = sum(_time_s(take_step) for _ in range(PROFILED_STEPS))
    shares = Counter[str]()
    for event in trace.key_averages():
        if event.self_device_time_total and event.device_type == torch.autograd.DeviceType.CUDA:
            kind = next(kind for kind, pattern in KINDS if pattern.search(event.key))
            shares[kind] += event.self_device_time_total / 1e6 / wall_s
    return {**shares, "idle": 1 - sum(shares.values())}
