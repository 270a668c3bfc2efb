"""The record of a plan."""

import io
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from fabrictune.foundation.checks import CheckReport, run_check, skip_check
from fabrictune.foundation.finding_rules.collectives import MEMORY_EXCEEDED
from fabrictune.foundation.records import Columns, Confidence, Finding, RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.foundation.units import PS_PER_S, format_bytes
from fabrictune.trainer_probe.planning.memory import MemoryPlan
from fabrictune.trainer_probe.planning.plan import Plan
from fabrictune.trainer_probe.planning.schedules import bubble_fraction, compare_schedules

TRACE_FILE = "job_trace.parquet"


def make_record(plan: Plan, *, started: float) -> RunRecord:
    """Return a record of kind "train plan"; `started` is `time.perf_counter` at the start.

    The file `job_trace.parquet` contains the whole job's requests, a JobTrace.
    """
    recipe, content = plan.recipe, io.BytesIO()
    plan.trace.write(content)
    record = RunRecord(
        kind="train plan",
        run={
            "name": recipe.name,
            "question": recipe.question,
            "configuration": {
                **recipe.settings(),
                **{f"hardware.{key}": value for key, value in vars(plan.hardware).items()},
            },
            "outcome": summary(plan),
            **describe_run(seed=recipe.seed, started=started),
        },
        tables={
            "volumes": _volumes(plan),
            "memory": _memory(plan),
            "step_parts": _step_parts(plan),
            "step_operations": _step_operations(plan),
            "schedules": to_columns("schedules", [asdict(costs) for costs in compare_schedules(plan.recipe)]),
        },
        files={TRACE_FILE: content.getvalue()},
    )
    return record.with_checks(check_memory(plan.memory, plan.hardware.memory_bytes))


def summary(plan: Plan) -> dict[str, float]:
    """Return the figures of a step."""
    return {
        "num_ranks": plan.recipe.degrees.layout.world_size,
        "num_requests": plan.trace.num_requests,
        "num_tokens": plan.num_tokens,
        "tokens_per_s": plan.num_tokens * PS_PER_S / plan.at_best.step_ps,
        "model_flops_per_gpu": plan.model_flops,
        "hardware_flops_per_gpu": plan.hardware_flops,
        "most_memory_bytes": max(memory.total_bytes for memory in plan.memory),
        "bubble_fraction": bubble_fraction(plan.recipe),
        "played_bubble_fraction": plan.bubble_fraction,
        "step_ps": plan.at_best.step_ps,
        "mfu_fraction": plan.mfu_fraction,
        "achievable_fraction": plan.achievable_fraction,
    }


def check_memory(memory_P: Sequence[MemoryPlan], available_bytes: int | None) -> CheckReport:
    """Return the check of the memory of GPUs at each place against what a GPU has; None skips it."""
    subject = f"GPUs of {len(memory_P):,} places of the pipeline"
    if available_bytes is None:
        return skip_check(MEMORY_EXCEEDED.id, subject, "the memory of a GPU is not given")
    most = format_bytes(max(memory.total_bytes for memory in memory_P))
    expected = f"at most {format_bytes(available_bytes)} each"
    findings = _exceeded_memory(memory_P, available_bytes)
    return run_check(MEMORY_EXCEEDED.id, subject, findings, expected=expected, actual=f"at most {most}")


def _exceeded_memory(memory_P: Sequence[MemoryPlan], available_bytes: int) -> Iterable[Finding]:
    """Yield a finding for the pipeline place with the most memory, where that is more than a GPU has."""
    most = max(memory_P, key=lambda memory: memory.total_bytes)
    if most.total_bytes > available_bytes:
        yield MEMORY_EXCEEDED.finding(
            entity=f"GPUs at place {memory_P.index(most)} of the pipeline",
            expected=f"at most {format_bytes(available_bytes)}",
            actual=f"{format_bytes(most.total_bytes)}, of which activations {format_bytes(most.activations_bytes)}",
            confidence=Confidence.PREDICTED,
            evidence=("table memory",),
        )


def _volumes(plan: Plan) -> Columns:
    rows = [
        {"place": place, **asdict(volume), "operation": volume.operation.name.lower()}
        for place in range(plan.recipe.degrees.layout.pp)
        for volume in plan.volumes(place)
    ]
    return to_columns("volumes", rows)


def _memory(plan: Plan) -> Columns:
    rows = [
        {"place": place, "flops": flops, **asdict(memory)}
        for place, (flops, memory) in enumerate(zip(plan.flops_P.tolist(), plan.memory, strict=True))
    ]
    return to_columns("memory", rows)


def _step_parts(plan: Plan) -> Columns:
    """Return the parts of a step: work of the busiest place, bubble, and what each axis alone adds."""
    parts = {
        "products": plan.bound_ps("products"),
        **{bound: plan.bound_ps(bound) for bound in ("attention", "launch") if plan.bound_ps(bound)},
        "memory traffic": plan.bound_ps("memory"),
        "bubble": plan.without_network.step_ps - plan.work_ps,
        **{f"added by {axis}": plan.added_ps(axis) for axis in plan.recipe.degrees.layout.axes},
        "step": plan.at_best.step_ps,
    }
    return to_columns("step_parts", [{"part": part, "duration_ps": time_ps} for part, time_ps in parts.items()])


def _step_operations(plan: Plan) -> Columns:
    rows = [{"place": place, **asdict(row)} for place, own in enumerate(plan.operations) for row in own]
    return to_columns("step_operations", rows)
