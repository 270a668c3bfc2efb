"""Bytes that one GPU moves for the published 175B model at TP 8 and PP 8, in bf16 with micro-batches of one sample.

The requests are those of `parallel.volumes`, which tests hold against the ledgers of real processes.
"""

from fabrictune.foundation.cases import Case, around, exactly
from fabrictune.foundation.extras import require_extra
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.traces import Operation
from fabrictune.trainer_probe.model.sublayers import Volumes
from fabrictune.trainer_probe.model.table import PRESETS
from fabrictune.trainer_probe.parallel.degrees import Degrees
from fabrictune.trainer_probe.parallel.volumes import step_volumes
from fabrictune.trainer_probe.planning.hardware import HardwareSpec
from fabrictune.trainer_probe.planning.operation_costs import RooflineCosts
from fabrictune.trainer_probe.recipes.schema import Recipe

_MODEL = PRESETS["175B"]
_DEGREES = Degrees(layout=ParallelLayout(tp=8, pp=8, dp=4), virtual=6, num_batches=8)
_LARGE = Degrees(layout=ParallelLayout(tp=8, pp=8, dp=192), virtual=6, num_batches=8)
_MIDDLE = 3  # of the pipeline: a rank with neither the embedding nor the head
_BF16_BYTES = 2


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        Case(
            name="trainer_probe.tensor-gather-bytes",
            source="closed form: 7/8 of s b h bf16 numbers reach each of 8 GPUs; 44.0 MB",
            unit="MB",
            **around(44.0, 0.001),
            run=lambda: _one_gather() * 7 / 8 / 1e6,
        ),
        Case(
            name="trainer_probe.pipeline-border-bytes",
            source="HPN (SIGCOMM'24), Table 3: 6 MB between pipeline stages (GPT-3 175B, TP 8, PP 8)",
            unit="MiB",
            **exactly(6.0),
            run=lambda: _one_border() / 2**20,
        ),
        Case(
            name="trainer_probe.data-reduce-bytes",
            source="HPN (SIGCOMM'24), Table 3: 5.5 GB for data parallelism (GPT-3 175B, TP 8, PP 8), as printed",
            unit="GB",
            expected=5.5,
            low=5.4,  # here a rank without embedding and head, which have the rest
            high=5.55,
            run=lambda: _volumes(_DEGREES)["dp", Operation.REDUCE_SCATTER] / 1e9,
        ),
        Case(
            name="trainer_probe.ledger-of-one-of-12288",
            source="closed form: a step's bytes on one rank of TP 8, PP 8, DP 192, run without the others",
            unit="B",
            **exactly(sum(_volumes(_LARGE).values())),
            run=_ledger_bytes,
        ),
    )


def _volumes(degrees: Degrees) -> Volumes:
    return step_volumes(_MODEL, degrees, place=_MIDDLE, element_bytes=_BF16_BYTES)


def _ledger_bytes() -> float:
    """Return the bytes that the trainer asks for in a step of the large layout, on tensors without values."""
    require_extra("torch", extra="train", where="trainer")
    from fabrictune.trainer_probe.planning.dry_run import plan_rank

    rank = _LARGE.layout.rank(tp=5, dp=100, pp=_MIDDLE)
    recipe = Recipe(name="large", model=_MODEL, degrees=_LARGE, precision="bfloat16")
    return float(plan_rank(recipe, rank, RooflineCosts(HardwareSpec())).trace.bytes_N.sum())


def _one_gather() -> float:
    """Return the bytes of one gathering: a parallel layer makes three a micro-batch."""
    num_layers = _MODEL.depth // _DEGREES.layout.pp
    return _volumes(_DEGREES)["tp", Operation.ALL_GATHER] / (3 * num_layers * _DEGREES.num_batches)


def _one_border() -> float:
    """Return the bytes that cross one border of a stage for a micro-batch: two borders a stage."""
    return _volumes(_DEGREES)["pp", Operation.SEND] / (2 * _DEGREES.virtual * _DEGREES.num_batches)
