"""Plans of whole jobs against closed forms and what was published.

The step at best must lie between the products alone, at the best rate measured on the GPU, and what MegaScale took.
"""

import math
from functools import cache

from fabrictune.foundation.cases import Case, around, exactly
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.units import PS_PER_S
from fabrictune.trainer_probe.model.gpt import GptSpec
from fabrictune.trainer_probe.model.spec import flops_per_token
from fabrictune.trainer_probe.model.table import PRESETS
from fabrictune.trainer_probe.parallel.degrees import Degrees
from fabrictune.trainer_probe.parallel.volumes import step_volumes
from fabrictune.trainer_probe.planning.hardware import HardwareSpec
from fabrictune.trainer_probe.planning.plan import Plan, make_plan
from fabrictune.trainer_probe.recipes.schema import Recipe

_HARDWARE = HardwareSpec()
_PRODUCTS_ONLY = HardwareSpec(memory_bytes_per_s=math.inf)
_LAYOUT = ParallelLayout(tp=8, pp=8, dp=192)
_DEGREES = Degrees(layout=_LAYOUT, virtual=6, num_batches=32)
_LARGE = Recipe(name="large", model=PRESETS["175B"], degrees=_DEGREES, precision="bfloat16")
_EQUAL = Recipe(  # its head, of two ids, is 1/6000 of a layer's products, so that all stages are equal
    name="equal",
    model=GptSpec(width=256, depth=8, num_heads=4, vocabulary=2, sequence=64),
    degrees=Degrees(layout=ParallelLayout(pp=4), virtual=2, num_batches=8),
)
_TOKENS_PER_S = 1984.0e3  # MegaScale (NSDI'24), Table 2: 12,288 GPUs, 6,144 samples a step


def cases() -> tuple[Case, ...]:
    """Return the cases; running one raises UnavailableError where torch is missing."""
    num_tokens = _DEGREES.samples_per_step * PRESETS["175B"].sequence
    products_s = num_tokens * flops_per_token(PRESETS["175B"]) / (_LAYOUT.world_size * _HARDWARE.achieved_flops_per_s)
    measured_s = num_tokens / _TOKENS_PER_S
    return (
        Case(
            name="trainer_probe.plan-bubble",
            source="Narayanan et al. (SC 2021), section 2.2: (p - 1) / (v m) of the work at p 4, v 2, m 8",
            unit="of the work",
            **around(3 / 16, 0.002),
            run=lambda: make_plan(_EQUAL, _PRODUCTS_ONLY).bubble_fraction,
        ),
        Case(
            name="trainer_probe.plan-bytes-of-12288",
            source="closed form: a step's bytes on all ranks of TP 8, PP 8, DP 192, 32 micro-batches",
            unit="B",
            **exactly(sum(map(_bytes_of_place, range(_LAYOUT.pp)))),
            run=lambda: float(_large().trace.templates.bytes_N.sum()) * _large().trace.num_instances,
        ),
        Case(
            name="trainer_probe.plan-step-at-best-of-12288",
            source="MegaScale (NSDI'24), Table 2: 6.34 s a step; 4.07 s are the products' at 86 % of the GPUs' peak",
            unit="s",
            expected=measured_s,
            low=products_s,
            high=measured_s,
            run=lambda: _large().at_best.step_ps / PS_PER_S,
        ),
    )


def _bytes_of_place(place: int) -> int:
    """Return the bytes of all ranks at a place of the pipeline."""
    volumes = step_volumes(PRESETS["175B"], _DEGREES, place=place, element_bytes=2)
    return sum(volumes.values()) * _LAYOUT.tp * _LAYOUT.dp


@cache
def _large() -> Plan:
    return make_plan(_LARGE, _HARDWARE)
