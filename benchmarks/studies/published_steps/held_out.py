"""Published steps of other models, systems and hardware, predicted once with nothing fitted.

The rows were chosen before the first run by rules: of llm-foundry's tables for GPUs with 80 GB in bf16, all of 2,048
tokens and a billion parameters or more; the four of selective recomputation; Llama 3 405B without context parallelism.
What a source does not say is assumed: eager kernels for llm-foundry, with FlashAttention's first kernel on A100s and
the second on H100s; 400 Gbps NICs for H100s; for Llama 3 128 layers in 16 places of eight chunks, where it has 126.

Source: mosaicml/llm-foundry at 061f2c7c, scripts/train/benchmarking/README.md; Korthikanti et al., 2022, Tables 3 and
5, whose MFU NVIDIA/Megatron-LM repeats; The Llama 3 herd of models, 2024, Table 4.

Run: `python -m benchmarks.studies.published_steps.held_out`
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from benchmarks.studies.published_steps.systems import program_of
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.hardware.files import bundled_profile
from fabrictune.hardware.profile import HardwareProfile
from fabrictune.hardware.software import Kernel, SoftwareSpec
from fabrictune.trainer_probe.data_parallel.spec import DataParallelSpec
from fabrictune.trainer_probe.model.gpt import GptSpec
from fabrictune.trainer_probe.model.spec import flops_per_token
from fabrictune.trainer_probe.parallel.degrees import Degrees
from fabrictune.trainer_probe.prediction.intervals import interval
from fabrictune.trainer_probe.prediction.predictor import predict
from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe
from fabrictune.trainer_probe.recipes.schema import Recipe

TOKENS = 2048
MPT = {  # width, depth, heads
    "1b": (2048, 24, 16),
    "3b": (2560, 32, 20),
    "7b": (4096, 32, 32),
    "13b": (5120, 40, 40),
    "30b": (7168, 48, 56),
    "70b": (8192, 80, 64),
}
FOUNDRY = (  # GPU, model, GPUs, samples of a micro-batch, micro-batches, recomputed, tokens a second
    ("h100", "70b", 64, 8, 4, True, 66523),
    ("h100", "70b", 32, 2, 16, True, 28242),
    ("h100", "30b", 32, 14, 3, True, 73860),
    ("h100", "30b", 16, 10, 3, True, 36209),
    ("h100", "30b", 8, 3, 21, True, 16022),
    ("h100", "13b", 64, 2, 1, False, 307209),
    ("h100", "13b", 32, 2, 1, False, 153960),
    ("h100", "13b", 16, 2, 1, False, 76280),
    ("h100", "13b", 8, 2, 1, False, 38336),
    ("h100", "7b", 8, 6, 1, False, 85144),
    ("h100", "3b", 64, 6, 3, False, 1441663),
    ("h100", "3b", 32, 6, 3, False, 736701),
    ("h100", "3b", 16, 10, 3, False, 386285),
    ("h100", "1b", 64, 20, 1, False, 2841754),
    ("h100", "1b", 32, 20, 1, False, 1444183),
    ("h100", "1b", 16, 20, 1, False, 736596),
    ("h100", "1b", 8, 14, 1, False, 363645),
    ("a100", "70b", 64, 8, 4, True, 26274),
    ("a100", "70b", 32, 2, 16, True, 11962),
    ("a100", "30b", 8, 3, 21, True, 7330),
    ("a100", "13b", 8, 2, 3, False, 18097),
    ("a100", "7b", 8, 6, 2, False, 37130),
    ("a100", "3b", 8, 10, 2, False, 86491),
    ("a100", "1b", 8, 14, 4, False, 164109),
)
SELECTIVE = (  # name, width, depth, heads, places, chunks, micro-batches, samples of one, published MFU
    ("22B", 6144, 48, 64, 1, 1, 1, 4, 0.415),
    ("175B", 12288, 96, 96, 8, 3, 64, 1, 0.514),
    ("530B", 20480, 105, 128, 35, 3, 280, 1, 0.560),
    ("1T", 25600, 128, 160, 64, 1, 512, 1, 0.563),
)
LLAMA = ((64, 32, 0.43), (128, 16, 0.41))  # data-parallel ranks, micro-batches, published MFU
FIRST_KERNEL: Mapping[str, Kernel] = {"a100": "flash1", "h100": "flash2"}


@dataclass(frozen=True, kw_only=True)
class HeldOutStep:
    """A published step, with the recipe and the profile that stand for it."""

    name: str
    recipe: Recipe
    profile: HardwareProfile
    step_s: float


def held_out() -> Iterator[HeldOutStep]:
    """Yield the published steps."""
    yield from _foundry()
    yield from _selective()
    yield from _llama()


def main() -> None:
    """Print a row for each step, and their errors."""
    errors, num_inside = [], 0
    print("| step | published | predicted | error | interval of 90 % | inside |")
    print("| --- | --- | --- | --- | --- | --- |")
    for step in held_out():
        span = interval(predict(step.recipe, program_of(step.recipe), step.profile))
        is_inside = span.low_s <= step.step_s <= span.high_s
        errors.append(span.step_s / step.step_s - 1)
        num_inside += is_inside
        print(
            f"| {step.name} | {step.step_s:.3f} s | {span.step_s:.3f} s | {errors[-1]:+.1%} | "
            f"{span.low_s:.3f} to {span.high_s:.3f} s | {'yes' if is_inside else 'no'} |",
            flush=True,
        )
    mean, worst = sum(map(abs, errors)) / len(errors), max(map(abs, errors))
    print(f"mean error {mean:.1%}, worst {worst:.1%}; {num_inside} of {len(errors)} inside their intervals")


def _foundry() -> Iterator[HeldOutStep]:
    for gpu, name, num_gpus, batch_size, num_batches, is_recomputed, tokens_per_s in FOUNDRY:
        width, depth, num_heads = MPT[name]
        recipe = Recipe(
            name=f"mpt-{name}",
            model=GptSpec(
                width=width, depth=depth, num_heads=num_heads, vocabulary=50368, sequence=TOKENS, block="serial"
            ),
            degrees=Degrees(layout=ParallelLayout(dp=num_gpus), num_batches=num_batches, batch_size=batch_size),
            data_parallel=DataParallelSpec(strategy="zero3"),
            overlap="dp",
            recompute="full" if is_recomputed else "none",
            precision="bfloat16",
        )
        tokens = num_gpus * num_batches * batch_size * TOKENS
        title = f"MPT {name}, {num_gpus} {gpu}"
        profile = _with_kernel(gpu, FIRST_KERNEL[gpu])
        yield HeldOutStep(name=title, recipe=recipe, profile=profile, step_s=tokens / tokens_per_s)


def _selective() -> Iterator[HeldOutStep]:
    for name, width, depth, num_heads, pp, virtual, num_batches, batch_size, mfu in SELECTIVE:
        recipe = Recipe(
            name=f"selective-{name.lower()}",
            model=GptSpec(
                width=width, depth=depth, num_heads=num_heads, vocabulary=51200, sequence=TOKENS, block="serial"
            ),
            degrees=Degrees(
                layout=ParallelLayout(tp=8, pp=pp), virtual=virtual, num_batches=num_batches, batch_size=batch_size
            ),
            data_parallel=DataParallelSpec(strategy="ddp", gradient_precision="float32"),
            overlap="tp",
            recompute="selective",
            precision="bfloat16",
        )
        profile = _with_kernel("a100", "unfused")
        yield HeldOutStep(
            name=f"Megatron-LM {name}, selective recomputation, {8 * pp} a100",
            recipe=recipe,
            profile=profile,
            step_s=_step_of(recipe, profile, mfu),
        )


def _llama() -> Iterator[HeldOutStep]:
    for dp, num_batches, mfu in LLAMA:
        changes = {
            "model.depth": 128,
            "degrees.layout.pp": 16,
            "degrees.layout.dp": dp,
            "degrees.virtual": 8,
            "degrees.num_batches": num_batches,
            "degrees.tensor_chunks": 1,
        }
        recipe, profile = load_recipe(find_recipe("405b"), changes), bundled_profile("h100")
        title = f"Llama 3 405B, {8 * 16 * dp} h100"
        yield HeldOutStep(name=title, recipe=recipe, profile=profile, step_s=_step_of(recipe, profile, mfu))


def _step_of(recipe: Recipe, profile: HardwareProfile, mfu: float) -> float:
    """Return the seconds of a step with an MFU, by the papers' count."""
    num_tokens = recipe.degrees.samples_per_step * recipe.model.sequence
    flops = flops_per_token(recipe.model) * num_tokens / recipe.degrees.layout.world_size
    return flops / (mfu * profile.gpu.peak_flops_per_s)


def _with_kernel(name: str, kernel: Kernel) -> HardwareProfile:
    profile = bundled_profile(name)
    sources = {**profile.sources, "software": "assumed: the kernel of its time"}
    return replace(profile, software=SoftwareSpec(attention=kernel), sources=sources)


if __name__ == "__main__":
    main()
