"""What network is enough for a recipe, in closed form: rates of NICs, and how many GPUs of a host have one.

One dry run is priced on all variants at once (`trainer_probe/prediction`). What hosts that are slow add is scaled with
the step. Values with one source are off together; each source is moved to either end of its 90 % interval, and its
steps on all variants with it, so that a change and a knee have intervals of their own.

Left out: requests that share a link, and so oversubscription, placements and laws, which need a scenario.

Shapes: V variants, A axes, S sources.
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.extras import require_extra
from fabrictune.foundation.records import RunRecord, describe_run
from fabrictune.foundation.units import PS_PER_S, format_rate
from fabrictune.hardware.profile import HardwareProfile
from fabrictune.trainer_probe.planning.record import check_memory
from fabrictune.trainer_probe.prediction.elasticities import with_value
from fabrictune.trainer_probe.prediction.intervals import interval
from fabrictune.trainer_probe.prediction.predictor import Prediction, predict
from fabrictune.trainer_probe.prediction.prices import AXIS_CAUSES, Variant, price_program
from fabrictune.trainer_probe.prediction.timeline import time_program
from fabrictune.trainer_probe.recipes.schema import Recipe
from fabrictune.validate.whatif_points import (
    NIC_RATE,
    RAILS,
    Knee,
    WhatIfPoint,
    knee_amount,
    spread_of_sources,
)
from fabrictune.validate.whatif_record import whatif_record

RATE_FACTORS = (0.125, 0.25, 0.5, 1, 2, 4, 8)
LEAST_SPREAD = 0.001  # of the step, of sources that are moved


@dataclass(frozen=True, kw_only=True)
class Network:
    """A variant of the network between hosts."""

    family: str
    value: str
    amount: float
    factor: float  # on the rate out of a GPU


def networks_of(profile: HardwareProfile) -> list[Network]:
    """Return the network as it is, then its variants."""
    rate_bps, num_gpus = profile.network.nic_rate_bps, profile.host.num_gpus
    rates = [
        Network(family=NIC_RATE, value=format_rate(rate_bps * factor), amount=rate_bps * factor, factor=factor)
        for factor in RATE_FACTORS
    ]
    halves = [num_gpus >> power for power in reversed(range(num_gpus.bit_length())) if num_gpus % (1 << power) == 0]
    rails = [
        Network(family=RAILS, value=f"{nics} of {num_gpus} GPUs", amount=nics, factor=nics / num_gpus)
        for nics in halves
    ]
    return [Network(family="as it is", value="", amount=0.0, factor=1.0), *rates, *rails]


def whatif_recipe(recipe: Recipe, profile: HardwareProfile) -> RunRecord:
    """Return the record of a recipe's step on variants of a profile's network.

    Raises UnavailableError where torch is missing, and InputError.
    """
    started = time.perf_counter()
    require_extra("torch", extra="train", where="trainer")
    from fabrictune.trainer_probe.prediction.dry_run import write_program

    base = predict(recipe, write_program(recipe), profile)
    networks = networks_of(profile)
    steps = _Steps.of(base, networks)
    span = interval(base)
    points = [
        _point(network, steps, row, (span.low_s / span.step_s, span.high_s / span.step_s))
        for row, network in enumerate(networks)
    ]
    record = whatif_record(
        {**describe_run(seed=0, started=started), "name": recipe.name, "what": "recipe", "hardware": profile.name},
        points,
        [],
        list(_knees(networks, steps)),
        [
            f"{recipe.name} on {profile.name}: {recipe.degrees.layout.world_size:,} GPUs, "
            f"{recipe.degrees.layout.describe()}; overlap {recipe.overlap}",
            "no request shares a link: oversubscription, placement and laws need a scenario",
            "the interval of a step has the relative width that it has for the job as it is; changes have their own",
            "latencies and the time of a message stay as they are, whatever the rate",
        ],
    )
    return record.with_checks(check_memory(base.memory, profile.gpu.memory.capacity_bytes))


@dataclass(frozen=True, kw_only=True)
class _Steps:
    """Steps on all variants: as the profile has it, without each axis, and with each source at either end."""

    step_s_V: FloatArray
    free_s_AV: FloatArray
    axes: tuple[str, ...]
    moved_s_S2V: FloatArray

    @classmethod
    def of(cls, base: Prediction, networks: Sequence[Network]) -> "_Steps":
        """Return the steps of a program on all networks at once."""
        degree = base.recipe.degrees.layout.degree
        axes = tuple(axis for axis in AXIS_CAUSES if degree(axis) > 1)  # type: ignore[arg-type]
        moved = [profile for pair in _moved_profiles(base) for profile in pair]
        own = [_on(base.profile, network) for network in networks]
        variants = [
            *(Variant(profile=profile) for profile in own),
            *(Variant(profile=profile, free_axis=axis) for axis in axes for profile in own),
            *(Variant(profile=_on(profile, network)) for profile in moved for network in networks),
        ]
        schedule_s = time_program(base.program, price_program(base.program, variants)).step_K
        stretch = (base.step_s - base.fixed_s) / float(schedule_s[0])
        step_s = schedule_s * stretch + base.fixed_s
        num = len(networks)
        return cls(
            step_s_V=step_s[:num],
            free_s_AV=step_s[num : num * (1 + len(axes))].reshape(len(axes), num),
            axes=axes,
            moved_s_S2V=step_s[num * (1 + len(axes)) :].reshape(len(moved) // 2, 2, num),
        )


def _on(profile: HardwareProfile, network: Network) -> HardwareProfile:
    rate_bps = profile.network.nic_rate_bps * network.factor
    return replace(profile, network=replace(profile.network, nic_rate_bps=rate_bps))


def _moved_profiles(base: Prediction) -> Iterator[tuple[HardwareProfile, HardwareProfile]]:
    """Yield the profile with each source's values at either end of their intervals, where that moves the step."""
    names = base.profile.field_names()
    sources: dict[str, list[tuple[list[str], float]]] = {}
    spreads: dict[str, float] = {}
    for value in base.elasticities:
        path = [*value.key.split(".")[:-1], names[value.key]]
        sources.setdefault(value.source, []).append((path, value.uncertainty))
        spreads[value.source] = spreads.get(value.source, 0.0) + abs(value.elasticity) * value.uncertainty
    for source, values in sources.items():
        if spreads[source] >= LEAST_SPREAD:
            yield _moved(base.profile, values, -1), _moved(base.profile, values, 1)


def _moved(profile: HardwareProfile, values: Sequence[tuple[list[str], float]], sign: int) -> HardwareProfile:
    """Return the profile with values their uncertainty times larger or smaller; shares stay at most one."""
    for path, uncertainty in values:
        spec = profile
        for name in path:
            spec = getattr(spec, name)
        value = float(spec) * (1 + uncertainty) ** sign  # type: ignore[arg-type]
        value = min(value, 1.0) if path[-1].endswith("_fraction") else value
        profile = with_value(profile, path, round(value) if isinstance(spec, int) else value)
    return profile


def _point(network: Network, steps: _Steps, row: int, ends: tuple[float, float]) -> WhatIfPoint:
    step_s, low, high = float(steps.step_s_V[row]), *ends
    change = step_s / float(steps.step_s_V[0]) - 1
    moved_S2 = steps.moved_s_S2V[:, :, row] / steps.moved_s_S2V[:, :, 0] - 1 - change
    shares = 1 - steps.free_s_AV[:, row] / step_s
    return WhatIfPoint(
        family=network.family,
        value=network.value,
        amount=network.amount,
        step_ps=step_s * PS_PER_S,
        step_low_ps=step_s * low * PS_PER_S,
        step_high_ps=step_s * high * PS_PER_S,
        change_fraction=change,
        change_low_fraction=change - math.hypot(*np.maximum(-moved_S2.min(axis=1), 0.0)),
        change_high_fraction=change + math.hypot(*np.maximum(moved_S2.max(axis=1), 0.0)),
        is_base=network.factor == 1,
        shares={axis: float(share) for axis, share in zip(steps.axes, shares, strict=True)},
    )


def _knees(networks: Sequence[Network], steps: _Steps) -> Iterator[Knee]:
    for family, is_between in ((NIC_RATE, True), (RAILS, False)):
        rows = [row for row, network in enumerate(networks) if network.family == family]
        if len(rows) < 2:
            continue
        amount_V = np.array([networks[row].amount for row in rows])

        def knee(step_s_V: FloatArray, amount_V: FloatArray = amount_V, is_between: bool = is_between) -> float:
            return knee_amount(amount_V, step_s_V / step_s_V[-1], is_between=is_between)

        amount = knee(steps.step_s_V[rows])
        pairs = [(knee(pair_2V[0]), knee(pair_2V[1])) for pair_2V in steps.moved_s_S2V[:, :, rows]]
        low, high = spread_of_sources(amount, pairs)
        yield Knee(
            family=family, amount=amount, low=low, high=high, most=float(amount_V[-1]), is_tried_value=not is_between
        )
