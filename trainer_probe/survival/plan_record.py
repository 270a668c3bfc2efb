"""The record of a planned job's survival, and its answer in sentences."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.records import RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.foundation.units import NS_PER_S, PS_PER_S, format_duration
from fabrictune.trainer_probe.survival.checks import check_plan
from fabrictune.trainer_probe.survival.draws import ends_90
from fabrictune.trainer_probe.survival.failures import S_PER_DAY
from fabrictune.trainer_probe.survival.plan import SurvivalPlan

KIND = "train survive"
_LEAST_GAIN = 0.0005  # of all time, below which no knob is worth a sentence
_NUM_TOLD = 3


def make_plan_record(
    plan: SurvivalPlan, *, name: str, seed: int, started: float, rules: RuleSettings = CATALOG_SETTINGS
) -> RunRecord:
    """Return a record of kind "train survive"; `started` is `time.perf_counter` at the start."""
    record = RunRecord(
        kind=KIND,
        run={
            "name": name,
            "configuration": configuration(plan),
            "outcome": outcome(plan),
            **describe_run(seed=seed, started=started),
            "notes": assumptions(plan),
        },
        tables={
            "survival_parts": to_columns("survival_parts", _part_rows(plan)),
            "survival_causes": to_columns("survival_causes", _cause_rows(plan)),
            "survival_intervals": to_columns("survival_intervals", _interval_rows(plan)),
            "survival_knobs": to_columns("survival_knobs", _knob_rows(plan)),
        },
    )
    return record.with_checks(check_plan(plan, rules))


def configuration(plan: SurvivalPlan) -> dict[str, Any]:
    """Return every setting of the plan."""
    values: dict[str, Any] = {"failures": plan.table.name, "source": plan.table.source, "spread_factor": plan.spread}
    for key, value in asdict(plan.job).items():
        if isinstance(value, Mapping):
            values |= {f"{key}.{inner}": one for inner, one in value.items()}
        elif value is not None:
            values[key] = value
    return values


def outcome(plan: SurvivalPlan) -> dict[str, Any]:
    """Return the figures of the plan; each that follows from the rates has the ends of its interval beside it."""
    effective, low, high = plan.interval(plan.shares.effective_D)
    mttf, mttf_low, mttf_high = plan.interval(plan.shares.mttf_s_D)
    sweep, runs = plan.sweep, plan.runs
    figures: dict[str, Any] = {
        "effective_fraction": effective,
        "effective_fraction_low": low,
        "effective_fraction_high": high,
        "mttf_s": mttf,
        "mttf_s_low": mttf_low,
        "mttf_s_high": mttf_high,
        "num_failures": plan.job.duration_s / mttf,
        "best_interval_s": sweep.best_s,
        "best_interval_s_low": sweep.best_low_s,
        "best_interval_s_high": sweep.best_high_s,
        "near_best_s_low": sweep.near_low_s,
        "near_best_s_high": sweep.near_high_s,
        "young_s": sweep.young_s,
        "daly_s": sweep.daly_s,
        "num_runs": 0 if runs is None else len(runs.effective_R),
    }
    if (flaps := plan.job.flaps) is not None:
        num_flaps = flaps.per_link_day * plan.job.num_gpus * plan.job.duration_s / S_PER_DAY
        figures["num_flaps_survived"] = num_flaps * (1 - flaps.killed_fraction)
        figures["num_flaps_fatal"] = num_flaps * flaps.killed_fraction
    if runs is not None:
        single_low, single_high = ends_90(runs.effective_R)
        change_R = runs.effective_R - plan.closed_R
        figures |= {
            "simulated_fraction": runs.mean,
            "simulated_error_fraction": runs.half_width,
            "single_run_fraction_low": single_low,
            "single_run_fraction_high": single_high,
            "simulated_change_fraction": float(change_R.mean()),
            "simulated_change_error_fraction": 1.645 * float(change_R.std(ddof=1)) / len(change_R) ** 0.5,
        }
    return figures


def assumptions(plan: SurvivalPlan) -> list[str]:
    """Return what the plan assumes, each a sentence."""
    job = plan.job
    lines = [
        "failures come independently of each other and of age, also while the job recovers; a failure then starts the "
        "recovery anew",
        "phases of a recovery take their mean time, and a save is complete when its time to write has passed",
        *plan.table.notes,
    ]
    if plan.spread == 1:
        lines.append(
            f"the rates are those of {plan.table.name}; another cluster's differ by more than the interval says"
        )
    else:
        lines.append(f"rates of another cluster differ by up to {plan.spread:g} times, for all causes alike")
    if job.memory is None:
        lines.append("no checkpoint is kept in memory: every failure goes back to storage")
    elif job.memory.is_copied:
        lines.append("a checkpoint in memory survives the loss of one node, and of several at once it does not")
    lines.append(
        f"a node is a spare again {format_duration(job.repair_s * PS_PER_S)} after its failure"
        if job.spares
        else f"no spares: each lost node takes {format_duration(job.node_s * PS_PER_S)}"
    )
    if plan.table.causes and any(cause.is_planned for cause in plan.table.causes):
        lines.append("planned stops save first and lose no work; detection and diagnosis do not apply")
    if job.flaps is not None:
        lines.append(
            f"flaps last {format_duration(job.flaps.mean_s * PS_PER_S)} on average, exponentially; {job.flaps.basis}"
        )
    if plan.runs is None and plan.asked_runs:
        lines.append("not simulated: too many failures for single events; the closed form stands alone")
    elif plan.runs is not None and len(plan.runs.effective_R) < plan.asked_runs:
        lines.append(f"simulated {len(plan.runs.effective_R)} runs of {plan.asked_runs}: many failures in each")
    return lines


def advice(plan: SurvivalPlan) -> list[str]:
    """Return which knob first, in plain words."""
    gains = [gain for gain in plan.gains if gain.gain >= _LEAST_GAIN][:_NUM_TOLD]
    if not gains:
        return ["no knob gains as much as 0.05 points by itself"]
    lines = []
    for place, gain in zip(("first", "then", "then"), gains, strict=False):
        points = f"{100 * gain.gain:+.2f} points ({100 * gain.low:+.2f} to {100 * gain.high:+.2f})"
        lines.append(f"{place}: {gain.knob.name}, {gain.knob.now} to {gain.knob.then}: {points}")
    return lines


def _part_rows(plan: SurvivalPlan) -> list[dict[str, Any]]:
    return [
        {"part": name, **_ends("share_fraction", plan.interval(values_D))}
        for name, values_D in plan.shares.parts.items()
    ]


def _cause_rows(plan: SurvivalPlan) -> list[dict[str, Any]]:
    return [
        {
            "cause": cause.name,
            **_ends("num_failures", (cause.failures, cause.failures_low, cause.failures_high)),
            "recovery_fraction": cause.recovery_fraction,
            "recomputed_fraction": cause.recomputed_fraction,
        }
        for cause in plan.causes
    ]


def _interval_rows(plan: SurvivalPlan) -> list[dict[str, Any]]:
    sweep = plan.sweep
    columns = (sweep.interval_s_G, sweep.effective_G, sweep.low_G, sweep.high_G)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [{"interval_ns": round(every_s * NS_PER_S), **_ends("effective_fraction", ends)} for every_s, *ends in rows]


def _knob_rows(plan: SurvivalPlan) -> list[dict[str, Any]]:
    return [
        {
            "knob": gain.knob.name,
            "now": gain.knob.now,
            "then": gain.knob.then,
            "why": gain.knob.why,
            "effective_fraction": gain.effective,
            **_ends("gain_fraction", (gain.gain, gain.low, gain.high)),
            "tenth_gain_fraction": -1.0 if gain.tenth_gain is None else gain.tenth_gain,
        }
        for gain in plan.gains
    ]


def _ends(name: str, values: Any) -> dict[str, float]:
    value, low, high = values
    return {name: value, f"{name}_low": low, f"{name}_high": high}
