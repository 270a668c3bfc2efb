"""A training step over all three axes: this rank's stages, their operators, their shards, and their order.

The loss is a mean over all tokens of the step, so that summed gradients equal those of a single process. The
optimizer's update of the shards is a callback.
"""

from collections.abc import Callable, Sequence
from functools import partial

import torch

from fabrictune.foundation.errors import InputError
from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.data_parallel.costs import check_strategy
from fabrictune.trainer_probe.data_parallel.gathering_order import GatheringOrder
from fabrictune.trainer_probe.data_parallel.spec import DataParallelSpec
from fabrictune.trainer_probe.data_parallel.stage import Setting
from fabrictune.trainer_probe.data_parallel.table import STRATEGIES
from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.forward import MicroBatch, RunLayer, part_of
from fabrictune.trainer_probe.model.operators import Operators
from fabrictune.trainer_probe.model.recomputation import RecomputedContext
from fabrictune.trainer_probe.model.spec import ModelSpec
from fabrictune.trainer_probe.optimizers.segments import Shard
from fabrictune.trainer_probe.parallel.deadlock_check import proved_programs
from fabrictune.trainer_probe.parallel.degrees import Degrees, check_degrees
from fabrictune.trainer_probe.parallel.passes import ChunkPasses, Passes
from fabrictune.trainer_probe.parallel.pipeline import PipelineRank, Stage, run_pipeline
from fabrictune.trainer_probe.parallel.program import pairs_of
from fabrictune.trainer_probe.parallel.ring_attention import ring_pairs
from fabrictune.trainer_probe.parallel.schedules.table import schedule_of
from fabrictune.trainer_probe.parallel.tensor import make_operators
from fabrictune.trainer_probe.parallel.weight_products import KeptProducts
from fabrictune.trainer_probe.policies import Compilation, OverlapPolicy, Recompute

CPU = torch.device("cpu")
_DEFAULT = DataParallelSpec()

Batches = Sequence[MicroBatch] | Callable[[], Sequence[MicroBatch]]


class ParallelTrainer:
    """One rank's part of training a model, made by all ranks at once, since it makes their communicators too.

    Raises InputError where degrees, model and strategy do not fit, or where the pipeline could deadlock. Before the
    first step, weights outside of this rank's shards have no values yet; `complete` gathers them. `passes_of` may wrap
    a stage's passes, as a plan does to run each of them once.
    """

    def __init__(
        self,
        model: ModelSpec,
        degrees: Degrees,
        comm: Comm,
        policy: OverlapPolicy,
        dtype: torch.dtype = torch.float64,
        device: torch.device = CPU,
        passes_of: Callable[[Passes], Passes] = lambda passes: passes,
        data_parallel: DataParallelSpec = _DEFAULT,
        recompute: Recompute = "none",
        compilation: Compilation = "none",
    ) -> None:
        check_degrees(model, degrees)
        if mistakes := list(check_strategy(data_parallel, degrees)):
            raise InputError(*mistakes)
        assert comm.layout == degrees.layout, "one layout"
        self._comm = comm
        self._num_tokens = degrees.samples_per_step * model.sequence
        shape, place = degrees.pipeline, comm.members("pp").index(comm.rank)
        make_stage = STRATEGIES[data_parallel.strategy]
        setting = Setting(comm=comm, policy=policy, dtype=dtype, device=device, spec=data_parallel)
        self.stages = {
            number: make_stage(ChunkSpec(model=model, number=number, num_chunks=shape.num_stages), setting)
            for number in range(place, shape.num_stages, shape.pp)
        }
        self._order = GatheringOrder(self.stages, policy)
        kept = KeptProducts() if schedule_of(shape).splits_backward else None
        self._operators = make_operators(
            comm, policy, degrees.tensor_chunks, kept, num_expert_chunks=degrees.expert_chunks
        )
        if recompute == "selective":
            self._operators.context = RecomputedContext(self._operators.context)
        compiled = _compiled_layers(model, self._operators) if compilation == "layers" else None
        programs = proved_programs(shape, is_decoupled=policy.overlaps("pp"))
        part = model.sequence // (degrees.layout.cp * degrees.layout.tp)
        self._rank = PipelineRank(
            shape=shape,
            program=programs[place],
            stages={
                number: self._stage(
                    number,
                    passes_of(
                        stage.wrap(
                            ChunkPasses(
                                chunk=stage.chunk,
                                weights=stage.weights,
                                operators=self._operators,
                                kept=kept,
                                recompute=recompute,
                                run_one=compiled,
                            )
                        )
                    ),
                )
                for number, stage in self.stages.items()
            },
            comm=comm,
            policy=policy,
            activation_PBD=torch.empty(part, degrees.batch_size, model.width, dtype=dtype, device=device),
        )
        comm.connect({"cp": ring_pairs(degrees.layout.cp), "pp": pairs_of(programs)}, device)

    @property
    def shards(self) -> tuple[Shard, ...]:
        """Values that an optimizer updates on this rank, and their gradients."""
        return tuple(shard for stage in self.stages.values() for shard in stage.shards)

    @property
    def routing_sums(self) -> tuple[float, float, float, float]:
        """This rank's balance losses in the last step, their tokens, its dropped choices and all choices."""
        return self._operators.experts.sums.numbers()

    def run_step(
        self, step: int, batches: Batches, update: Callable[[], None], *, loss_scale: float = 1.0
    ) -> torch.Tensor:
        """Train on this data-parallel rank's micro-batches; returns its share of the loss, zero without the last stage.

        With context parallelism its ranks take the same samples, and each its own tokens of them.

        `update` is called with summed gradients of the loss times `loss_scale`, and updates the shards' values. The
        next step, or `complete`, gathers the values of other ranks' shards. Where `batches` is a function, it is called
        once the first gather is under way.
        """
        self._comm.step = step
        self._order.start_step()
        taken = [part_of(batch, self._operators.context) for batch in (batches() if callable(batches) else batches)]
        scale = loss_scale / self._num_tokens
        self._operators.experts.loss_weight = scale
        self._operators.experts.sums.reset()
        loss = run_pipeline(self._rank, taken, scale)
        self._order.finish_step()
        with torch.no_grad():
            update()
        return loss / loss_scale

    def complete(self) -> None:
        """Gather all values, so that every rank has its stages' whole weights."""
        for stage in self.stages.values():
            stage.complete()

    def _stage(self, number: int, passes: Passes) -> Stage:
        stage = self.stages[number]
        return Stage(
            passes=passes,
            is_last=stage.chunk.is_last,
            before_first_forward=partial(self._order.before_first_forward, number),
            after_last_backward=partial(self._order.after_last_backward, number),
        )


def _compiled_layers(model: ModelSpec, operators: Operators) -> RunLayer:
    """Return compiled layers; what only looks at torch's compiler makes its cache folder, and takes a second."""
    from fabrictune.trainer_probe.parallel.compiled_layers import CompiledLayers

    return CompiledLayers(model, operators)
