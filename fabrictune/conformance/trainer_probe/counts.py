"""Parameters and operations of the published models, and the utilisation that follows from a published rate.

Of MegaScale's Table 2 the rows of Megatron-LM are taken: MegaScale's own count only what a window leaves, which
is not published.
"""

from functools import partial

from fabrictune.foundation.cases import Case, around
from fabrictune.trainer_probe.model.gpt import published_parameters
from fabrictune.trainer_probe.model.spec import model_flops_utilisation
from fabrictune.trainer_probe.model.table import PRESETS

_PEAK_FLOPS_PER_S = 312e12  # of the GPU, bf16
_ROUNDING_POINTS = 0.1  # rates are printed with three digits or more, utilisations with one decimal
_MEGATRON_ROWS = (  # GPUs, tokens a second, MFU in per cent
    (256, 39.3e3, 53.0),
    (512, 74.1e3, 49.9),
    (768, 103.8e3, 46.7),
    (1024, 132.7e3, 44.7),
    (3072, 433.6e3, 48.7),
    (6144, 851.6e3, 47.8),
    (8192, 1027.9e3, 43.3),
    (12288, 1466.8e3, 41.2),
)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        *(_parameters(name, billions) for name, billions in (("175B", 175.0), ("530B", 530.0))),
        *(_utilisation(*row) for row in _MEGATRON_ROWS),
    )


def _parameters(name: str, billions: float) -> Case:
    return Case(
        name=f"trainer_probe.parameters-{name.lower()}",
        source="MegaScale (NSDI'24), Table 1: the shape must have the parameters that name it",
        unit="thousand million",
        **around(billions, 0.005),
        run=lambda: published_parameters(PRESETS[name]) / 1e9,
    )


def _utilisation(num_gpus: int, tokens_per_s: float, percent: float) -> Case:
    measured = partial(
        model_flops_utilisation,
        PRESETS["175B"],
        tokens_per_s=tokens_per_s,
        num_gpus=num_gpus,
        peak_flops_per_s=_PEAK_FLOPS_PER_S,
    )
    return Case(
        name=f"trainer_probe.mfu-megatron-{num_gpus}",
        source="MegaScale (NSDI'24), Table 2: MFU from tokens a second and the operations of a token",
        unit="% of 312 Tflop/s",
        expected=percent,
        low=percent - _ROUNDING_POINTS,
        high=percent + _ROUNDING_POINTS,
        run=lambda: 100 * measured(),
    )
