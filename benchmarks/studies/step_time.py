"""Where a step's time goes, by arithmetic on the operations that the trainer dispatches; nothing is measured.

The first table holds the plan of the 175B recipe against MegaScale's Table 2, row by row: the paper's step over the
plan's, at rates measured on an A100; once as the trainer is, and once with weights' products added to gradients in an
operation of their own, since the paper does not say which it does. The second lists what stands between the trainer
and 55 % MFU on H100s, with a 400 Gbps NIC each: what each line takes of the step, and the MFU that is left with it and
all lines above. No number is fitted; the rates are those of the hardware profiles.

Source: MegaScale (NSDI'24), Table 2.

Run: `python -m benchmarks.studies.step_time`
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from fabrictune.foundation.units import PS_PER_S
from fabrictune.hardware.files import bundled_profile
from fabrictune.trainer_probe.planning.hardware import HardwareSpec
from fabrictune.trainer_probe.planning.plan import Plan, make_plan
from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe

TABLE_2 = (  # samples of a step, GPUs, MegaScale's step in seconds
    (768, 256, 32.0),
    (768, 512, 16.5),
    (768, 768, 11.5),
    (768, 1024, 8.9),
    (6144, 3072, 23.66),
    (6144, 6144, 12.21),
    (6144, 8192, 9.56),
    (6144, 12288, 6.34),
)
NUM_LINES = 20  # of operations bound by memory
TARGET_FRACTION = 0.55  # MFU that MegaScale reports on 12,288 GPUs
H100_NIC_BPS = 400e9
_RANKS_OF_A_REPLICA = 64


def main() -> None:
    """Print both tables, line by line."""
    for line in published_steps(TABLE_2):
        print(line, flush=True)
    print()
    print("\n".join(step_lines(plan_175b(6144, 12288, h100()))))


def h100() -> HardwareSpec:
    """Return the rates of a cluster of H100s."""
    return HardwareSpec.of_profile(bundled_profile("h100"), nic_rate_bps=H100_NIC_BPS)


def plan_175b(num_samples: int, num_gpus: int, hardware: HardwareSpec, *, is_fused: bool = True) -> Plan:
    """Return the plan of the 175B recipe on a number of GPUs, with or without gradients accumulated in products."""
    dp = num_gpus // _RANKS_OF_A_REPLICA
    changes = {
        "degrees.layout.dp": dp,
        "degrees.num_batches": num_samples // dp,
        "data_parallel.gradient_accumulation_fusion": is_fused,
    }
    return make_plan(load_recipe(find_recipe("175b"), changes), hardware)


def published_steps(rows: Sequence[tuple[int, int, float]]) -> Iterator[str]:
    """Yield a table of the published steps and the planned ones."""
    yield "| samples | GPUs | published step | planned step | ratio | gradients added apart | ratio |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for num_samples, num_gpus, published_s in rows:
        plans = [plan_175b(num_samples, num_gpus, HardwareSpec(), is_fused=is_fused) for is_fused in (True, False)]
        planned_s = [plan.at_best.step_ps / PS_PER_S for plan in plans]
        cells = [cell for step_s in planned_s for cell in (f"{step_s:.3f} s", f"{published_s / step_s:.3f}")]
        yield f"| {num_samples:,} | {num_gpus:,} | {published_s:.2f} s | {' | '.join(cells)} |"


def step_lines(plan: Plan) -> Iterator[str]:
    """Yield a table of what a step's time consists of, and of the MFU that is left after each line."""
    ideal_s, total_s = plan.model_flops / plan.hardware.peak_flops_per_s, 0.0
    yield "| line | time | of the step | MFU with the lines so far |"
    yield "| --- | --- | --- | --- |"
    step_s = plan.at_best.step_ps / PS_PER_S
    for line, duration_s in parts_of_step(plan):
        total_s += duration_s
        yield f"| {line} | {duration_s * 1e3:,.1f} ms | {duration_s / step_s:.1%} | {ideal_s / total_s:.1%} |"
    yield f"| step at best | {step_s * 1e3:,.1f} ms | 100.0% | {plan.mfu_fraction:.1%} |"
    target_s = ideal_s / TARGET_FRACTION
    slack_s = target_s - step_s
    kind = "left for launches, slower products and shared links" if slack_s > 0 else "to be saved"
    yield f"| {TARGET_FRACTION:.0%} MFU | {target_s * 1e3:,.1f} ms | | {slack_s * 1e3:+,.1f} ms {kind} |"


def parts_of_step(plan: Plan) -> Iterator[tuple[str, float]]:
    """Yield the name and seconds of each part: model operations, other products, memory traffic, waiting.

    Axes that overlap hide behind one another, so the last line is what they add together beyond each alone.
    """
    rows = plan.operations[plan.busiest_place]
    ideal_ps = plan.model_flops / plan.hardware.peak_flops_per_s * PS_PER_S
    achieved_ps = plan.model_flops / plan.hardware.achieved_flops_per_s * PS_PER_S
    yield "model FLOPs at the peak", ideal_ps / PS_PER_S
    yield "products slower than the peak", (achieved_ps - ideal_ps) / PS_PER_S
    yield "products of the busiest place beyond the mean", (plan.bound_ps("products") - achieved_ps) / PS_PER_S
    traffic = Counter[tuple[str, str]]()
    for row in rows:
        if row.bound == "memory":
            traffic["", "the optimizer"] += row.duration_ps if row.part == "optimizer" else 0
            traffic[row.part, row.operation] += 0 if row.part == "optimizer" else row.duration_ps
    shown = traffic.most_common(NUM_LINES)
    for (part, operation), duration_ps in shown:
        yield f"{part} {operation}".strip(), duration_ps / PS_PER_S
    num_others, others_ps = len(traffic) - len(shown), traffic.total() - sum(duration_ps for _, duration_ps in shown)
    yield f"{max(num_others, 0)} other operations bound by memory", others_ps / PS_PER_S
    added_ps = {axis: plan.added_ps(axis) for axis in plan.trace.layout.axes}
    waiting_ps = plan.without_network.step_ps - plan.work_ps
    yield "bubble", waiting_ps / PS_PER_S
    for axis, duration_ps in added_ps.items():
        yield f"added by {axis}", duration_ps / PS_PER_S
    together_ps = plan.at_best.step_ps - plan.without_network.step_ps - sum(added_ps.values())
    yield "added by axes together", together_ps / PS_PER_S


if __name__ == "__main__":
    main()
