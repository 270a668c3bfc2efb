"""The table of data-parallel strategies.

A strategy is one file that makes the weights of a stage. To add one, write the file, list it here, and its facts in
`costs.py`.
"""

from collections.abc import Callable, Mapping

from fabrictune.trainer_probe.data_parallel import ddp, zero1, zero2, zero3
from fabrictune.trainer_probe.data_parallel.spec import StrategyName
from fabrictune.trainer_probe.data_parallel.stage import Setting, StageWeights
from fabrictune.trainer_probe.model.chunks import ChunkSpec

STRATEGIES: Mapping[StrategyName, Callable[[ChunkSpec, Setting], StageWeights]] = {
    "ddp": ddp.make_stage,
    "zero1": zero1.make_stage,
    "zero2": zero2.make_stage,
    "zero3": zero3.make_stage,
}
