"""What network is enough for a scenario: its own engine on variants, one thing changed at a time.

The variants are runs of a sweep's folder: each is kept as soon as it is done and known by its content. Seeds are the
draws: every ratio of two steps is of one seed, since seeds slow all variants alike.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fabrictune.foundation.checks import run_check
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.finding_rules.simulation import POINT_UNFINISHED
from fabrictune.foundation.layout import AXES
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.records import Confidence, Finding, RunRecord, describe_run
from fabrictune.foundation.units import format_rate
from fabrictune.scenario.engines import engine_of
from fabrictune.scenario.jobs import JobSpec
from fabrictune.scenario.schema import Scenario
from fabrictune.scenario.traffic import CommTraceSpec
from fabrictune.sweeps.axes import SweepAxis
from fabrictune.sweeps.executors import Executor
from fabrictune.sweeps.options import axis_of
from fabrictune.sweeps.points import Point, PointMaker
from fabrictune.sweeps.results import Measured
from fabrictune.sweeps.runner import run_points
from fabrictune.sweeps.schema import Objective, Sweep
from fabrictune.sweeps.store import SweepFolder
from fabrictune.topology.builders.clos_plan import ClosSpec
from fabrictune.topology.ecmp.estimates import Estimate, estimate_mean, exactly_known
from fabrictune.topology.placement import PLACEMENTS
from fabrictune.validate.whatif_points import (
    NIC_RATE,
    OVERSUBSCRIPTION,
    TORS,
    Knee,
    Refusal,
    WhatIfPoint,
    knee_amount,
    spread_of_seeds,
)
from fabrictune.validate.whatif_record import whatif_record

NEVER = "transfers never complete"
RATE_FACTORS = (0.25, 0.5, 1, 2, 4)
OVERSUBSCRIPTIONS = (8, 4, 2, 1)
LAWS = ("none", "dcqcn", "swift", "hpcc", "timely")


@dataclass(frozen=True, kw_only=True)
class Variant:
    """Keys of a scenario, changed together."""

    value: str
    amount: float  # 0 where the family has no order
    change: Mapping[str, Any]


Families = Mapping[str, Sequence[Variant]]


def families_of(scenario: Scenario) -> Families:
    """Return what can be changed of a scenario's network."""
    families: dict[str, Sequence[Variant]] = {}
    fabric, traffic = scenario.fabric.spec, scenario.traffic.spec
    if isinstance(fabric, ClosSpec):
        families[NIC_RATE] = [_rates(fabric, factor) for factor in RATE_FACTORS]
        families[OVERSUBSCRIPTION] = [
            Variant(value=f"{ratio}:1", amount=1 / ratio, change={"fabric.oversubscription": ratio})
            for ratio in OVERSUBSCRIPTIONS
        ]
        links = fabric.nics_per_host * fabric.ports_per_nic
        families[TORS] = [
            Variant(value=str(tors), amount=0.0, change={"fabric.tors_per_set": tors}) for tors in _halves(links)
        ]
    if isinstance(traffic, JobSpec):
        families["placement"] = [_setting("traffic.placement", name) for name in PLACEMENTS]
    if "law" not in engine_of(scenario).ignores:
        families["law"] = [_setting("law", name) for name in LAWS]
    return families


def families_named(texts: Sequence[str]) -> Families:
    """Return families from texts `KEY=VALUE;VALUE`, by their keys; raises InputError."""
    families: dict[str, Sequence[Variant]] = {}
    for text in texts:
        axis = axis_of(text)
        if axis.key == "seed":
            raise InputError(Mistake(where=f"--vary {text}", found="'seed'", next_step="say how many with --seeds"))
        amounts = [axis.position(value) if axis.has_order else 0.0 for value in axis.values]
        families[axis.key] = [
            Variant(value=str(value), amount=amount, change={axis.key: value})
            for value, amount in zip(axis.values, amounts, strict=True)
        ]
    return families


def whatif_scenario(
    scenario: Scenario,
    families: Families,
    folder: SweepFolder,
    executor: Executor,
    *,
    num_seeds: int,
    is_asked: bool = False,
    trust_code: bool = False,
    progress: Progress | None = None,
) -> RunRecord:
    """Return the record of a scenario's variants.

    Raises InputError where the scenario itself gives no result, and where it refuses all of a family that was asked
    for.
    """
    started = time.perf_counter()
    assert scenario.document is not None, "the scenario came from a file"
    variants = [(family, variant) for family, own in families.items() for variant in own]
    maker = PointMaker(_sweep(scenario, num_seeds), scenario, trust_code=trust_code)
    base = maker.make_changed({})
    if base.refusal:
        raise InputError(Mistake(where=str(scenario.document.path), found=base.refusal))
    points = [base, *(maker.make_changed(variant.change) for _, variant in variants)]
    if is_asked:
        _refuse_families(variants, points[1:])
    as_it_is, *measured = run_points(points, folder, executor, progress=progress)
    metric = metric_of(scenario)
    if _values(as_it_is, metric) is None:
        raise InputError(
            Mistake(
                where=str(scenario.document.path),
                found=as_it_is.failure or NEVER,
                next_step="run it alone with `sim run` first",
            )
        )
    results = [_result("as it is", Variant(value="", amount=0.0, change={}), as_it_is, as_it_is, metric)]
    results += [
        _result(family, variant, result, as_it_is, metric)
        for (family, variant), result in zip(variants, measured, strict=True)
    ]
    rows = [result for result in results if isinstance(result, WhatIfPoint)]
    own: dict[str, list[tuple[Variant, Measured]]] = {family: [] for family in families}
    for (family, variant), result in zip(variants, measured, strict=True):
        own[family].append((variant, result))
    record = whatif_record(
        {**describe_run(seed=scenario.seed, started=started), "name": scenario.name, "what": "scenario"},
        rows,
        [result for result in results if isinstance(result, Refusal)],
        [knee for family, tried in own.items() if (knee := _knee(family, tried, metric)) is not None],
        [
            f"measured is {metric} in the engine {scenario.engine.name!r}; runs a variant: {num_seeds}",
            "one thing is changed at a time, all else is as the scenario has it",
            *_notes(families, rows, num_seeds),
        ],
    )
    return record.with_checks(
        run_check(
            POINT_UNFINISHED.id,
            f"{len(points)} variants",
            (_unfinished(result, metric) for result in results if isinstance(result, Refusal) and result.is_unfinished),
            expected=f"{metric} of every variant that ran",
        )
    )


def _unfinished(refusal: Refusal, metric: str) -> Finding:
    return POINT_UNFINISHED.finding(
        entity=f"{refusal.family} {refusal.value}",
        expected=f"a result for {metric}",
        actual=refusal.reason,
        confidence=Confidence.PREDICTED,
        evidence=("table network_refusals",),
    )


def _refuse_families(variants: Sequence[tuple[str, Variant]], points: Sequence[Point]) -> None:
    """Raise InputError for families of which the scenario has no variant."""
    refusals: dict[str, list[str]] = {}
    for (family, _), point in zip(variants, points, strict=True):
        refusals.setdefault(family, []).append(point.refusal)
    mistakes = [Mistake(where=f"--vary {family}", found=own[0]) for family, own in refusals.items() if all(own)]
    if mistakes:
        raise InputError(*mistakes)


def metric_of(scenario: Scenario) -> str:
    """Return what is compared."""
    return "step_time" if isinstance(scenario.traffic.spec, CommTraceSpec) else "makespan"


def _sweep(scenario: Scenario, num_seeds: int) -> Sweep:
    """Return the sweep that the variants are runs of, whose points are not on its axis."""
    assert scenario.document is not None, "the scenario came from a file"
    return Sweep(
        name=scenario.name,
        scenario=scenario.document.path,
        vary=(SweepAxis(key="law", values=LAWS),),
        seeds=num_seeds,
        objectives=(Objective(metric=metric_of(scenario)),),
    )


def _notes(families: Families, points: Sequence[WhatIfPoint], num_seeds: int) -> Iterator[str]:
    if NIC_RATE in families:
        yield "with the NICs' rate that of the uplinks changes: oversubscription stays"
    if num_seeds == 1:
        yield "one run a variant: intervals have no width; --seeds 3 gives them one"
    elif all(point.step_low_ps == point.step_high_ps for point in points):
        yield "no variant depends on the seed: intervals have no width, and what the model leaves out is not in them"


def _rates(fabric: ClosSpec, factor: float) -> Variant:
    nic_bps, uplink_bps = (round(rate * factor) for rate in (fabric.nic_rate_bps, fabric.uplink_rate_bps))
    change = {"fabric.nic_rate": f"{nic_bps} bps", "fabric.uplink_rate": f"{uplink_bps} bps"}
    return Variant(value=format_rate(nic_bps), amount=float(nic_bps), change=change)


def _halves(number: int) -> list[int]:
    """Return the powers of two that divide a number."""
    return [part for part in (2**power for power in range(number.bit_length())) if number % part == 0]


def _setting(key: str, value: str) -> Variant:
    return Variant(value=value, amount=0.0, change={key: value})


def _values(measured: Measured, metric: str) -> list[float] | None:
    """Return a metric of each seed's run, None where one has none."""
    if measured.failure:
        return None
    values = [run.run["metrics"].get(metric, {}).get("value") for run in measured.runs]
    return None if None in values else [float(value) for value in values]


def _estimate(values: Sequence[float]) -> Estimate:
    return estimate_mean(values) if len(values) > 1 else exactly_known(values[0])


def _result(
    family: str, variant: Variant, measured: Measured, as_it_is: Measured, metric: str
) -> WhatIfPoint | Refusal:
    steps_ps, base_ps = _values(measured, metric), _values(as_it_is, metric)
    if steps_ps is None or base_ps is None:
        reason = measured.failure.splitlines()[0] if measured.failure else NEVER
        return Refusal(family=family, value=variant.value, reason=reason, is_unfinished=not measured.failure)
    step = _estimate(steps_ps)
    change = _estimate([own / other - 1 for own, other in zip(steps_ps, base_ps, strict=True)])
    return WhatIfPoint(
        family=family,
        value=variant.value,
        amount=variant.amount,
        step_ps=step.value,
        step_low_ps=step.low,
        step_high_ps=step.high,
        change_fraction=change.value,
        change_low_fraction=change.low,
        change_high_fraction=change.high,
        is_base=[task.id for task in measured.point.tasks] == [task.id for task in as_it_is.point.tasks],
        shares=dict(_shares(measured, step.value)),
    )


def _shares(measured: Measured, step_ps: float) -> Iterator[tuple[str, float]]:
    """Yield each axis with the share of the step that ranks wait for it."""
    for axis in AXES:
        exposed_ps = _values(measured, f"exposed_communication.{axis}")
        if exposed_ps is not None:
            yield axis, float(np.mean(exposed_ps)) / step_ps


def _knee(family: str, tried: Sequence[tuple[Variant, Measured]], metric: str) -> Knee | None:
    """Return where an ordered family stops to matter, None for others and for those with fewer than two results."""
    found = [
        (variant.amount, steps_ps)
        for variant, measured in tried
        if variant.amount > 0 and (steps_ps := _values(measured, metric)) is not None
    ]
    if len(found) < 2:
        return None
    found.sort(key=lambda result: result[0])
    amount_V = np.array([amount for amount, _ in found])
    step_VD = np.array([steps_ps for _, steps_ps in found])
    if step_VD[0].mean() < step_VD[-1].mean():  # less of it is the more ample network
        amount_V, step_VD = amount_V[::-1], step_VD[::-1]
    is_between = family == NIC_RATE
    ratio_VD = step_VD / step_VD[-1]
    amount = knee_amount(amount_V, ratio_VD.mean(axis=1), is_between=is_between)
    knees = [knee_amount(amount_V, ratio_V, is_between=is_between) for ratio_V in ratio_VD.T]
    low, high = spread_of_seeds(amount, knees)
    return Knee(
        family=family, amount=amount, low=low, high=high, most=float(amount_V[-1]), is_tried_value=not is_between
    )
