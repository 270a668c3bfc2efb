"""The backend with NCCL's order: gloo's bits where a program ends, and where it would hang an error with the requests.

Eight layouts train over both backends; then messages go over one communicator a pair, as in one group of torch's.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fabrictune.foundation.errors import UnavailableError
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.trainer_probe.launcher.processes import launch
from fabrictune.trainer_probe.model.gpt import GptSpec
from fabrictune.trainer_probe.model.moe import MoeSpec
from fabrictune.trainer_probe.parallel.degrees import Degrees
from fabrictune.trainer_probe.policies import POLICIES

pytest.importorskip("torch")

import torch

from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.model.forward import MicroBatch
from fabrictune.trainer_probe.parallel.trainer import ParallelTrainer

if TYPE_CHECKING:
    from fabrictune.collectives.startup.process_groups import Member

Arrays = Mapping[str, NDArray[Any]]
SHAPE: dict[str, Any] = {"width": 16, "depth": 4, "num_heads": 4, "vocabulary": 12, "sequence": 8}
MODEL = GptSpec(**SHAPE, window=3)
MIXTURE = MoeSpec(**SHAPE, num_key_value_heads=2, feed_forward_width=12, num_experts=4)
DEGREES = {
    "pp4": Degrees(layout=ParallelLayout(pp=4), num_batches=5),
    "pp2-v2-dp2": Degrees(layout=ParallelLayout(pp=2, dp=2), virtual=2, num_batches=4),
    "cp4": Degrees(layout=ParallelLayout(cp=4), num_batches=2),
    "cp2-pp2-dp2": Degrees(layout=ParallelLayout(cp=2, pp=2, dp=2), num_batches=2),
    "tp2-pp2-v2-dp2": Degrees(layout=ParallelLayout(tp=2, pp=2, dp=2), virtual=2, num_batches=2, tensor_chunks=2),
    "zb-pp4": Degrees(layout=ParallelLayout(pp=4), num_batches=5, schedule="zb-h1"),
    "zb-tp2-pp2-dp2": Degrees(layout=ParallelLayout(tp=2, pp=2, dp=2), num_batches=3, schedule="zb-h1"),
    "tp2-pp2-dp2-ep2": Degrees(layout=ParallelLayout(tp=2, pp=2, dp=2, ep=2), num_batches=3, expert_chunks=2),
}
PAIR = Degrees(layout=ParallelLayout(pp=2), num_batches=2)
RING = Degrees(layout=ParallelLayout(cp=2))
GUARD_S = 60.0


def train_rank(degrees: Degrees, policies: tuple[str, ...], is_one_way: bool, member: "Member") -> Arrays:
    """Train two steps under each policy; returns losses, and every weight's values."""
    if not is_one_way:  # messages both ways over an axis' own group, whose pairs have one communicator each
        groups = dict(member.process_groups)
        both_ways = {name: groups[name.removesuffix("-down")] for name in groups}
        member = replace(member, process_groups=both_ways)
    found: dict[str, NDArray[Any]] = {}
    for name in policies:
        comm = Comm(degrees.layout, member)
        trainer = ParallelTrainer(MIXTURE if degrees.layout.ep > 1 else MODEL, degrees, comm, POLICIES[name])

        def descend(trainer: ParallelTrainer = trainer) -> None:
            for shard in trainer.shards:
                shard.values_E.sub_(shard.gradients_E, alpha=0.5)

        generator = torch.Generator().manual_seed(comm.members("dp").index(comm.rank))
        shape = (degrees.num_batches, degrees.batch_size, MODEL.sequence)
        for step in range(2):
            ids = torch.randint(MODEL.vocabulary, shape, generator=generator)
            batches = [MicroBatch(tokens_BS=batch, targets_BS=batch) for batch in ids]
            found[f"{name}/loss{step}"] = trainer.run_step(step, batches, descend).numpy()
        trainer.complete()
        for stage in trainer.stages.values():
            found |= {f"{name}/{weight}": value.detach().numpy() for weight, value in stage.weights.items()}
    return found


@pytest.mark.parametrize("name", DEGREES)
def test_training_is_the_same_to_the_last_bit_as_over_gloo(name: str) -> None:
    """Losses and weights after two steps, without overlap and with all of it."""
    work = partial(train_rank, DEGREES[name], ("none", "all"), True)
    layout = DEGREES[name].layout
    over_gloo, in_order = (launch(layout, work, backend=backend) for backend in ("gloo", "ordered"))
    for expected, found in zip(over_gloo, in_order, strict=True):
        assert found.keys() == expected.keys()
        assert all(np.array_equal(found[key], expected[key]) for key in expected)


@pytest.mark.parametrize("name", ["zb-pp4", "zb-tp2-pp2-dp2"])
def test_a_split_backward_pass_has_the_bits_of_1f1b(name: str) -> None:
    """Weights' gradients are added in the same order, only later."""
    degrees = DEGREES[name]
    plain = replace(degrees, schedule=None)
    split, whole = (launch(each.layout, partial(train_rank, each, ("all",), True)) for each in (degrees, plain))
    for expected, found in zip(whole, split, strict=True):
        assert found.keys() == expected.keys()
        assert all(np.array_equal(found[key], expected[key]) for key in expected)


@pytest.mark.parametrize(("degrees", "size"), [(PAIR, MODEL.sequence), (RING, 2 * MODEL.sequence // 2)])
def test_one_communicator_a_pair_stands_still(degrees: Degrees, size: int) -> None:
    """Both ranks have posted a receive, behind which their sends wait: over NCCL a hang, here an error at once.

    A pipeline's message has activations of the whole sequence, a ring's keys and values of half of it.
    """
    work = partial(train_rank, degrees, ("all",), False)
    with pytest.raises(UnavailableError) as error:
        launch(degrees.layout, work, backend="ordered", timeout_s=GUARD_S)
    size *= 8 * MODEL.width
    assert (
        "communicator of ranks 0, 1: requests that do not belong together "
        f"(rank 0: message of {size} B from rank 1 to rank 0; rank 1: message of {size} B from rank 0 to rank 1)"
    ) in str(error.value)


def test_gloo_does_not_show_it() -> None:
    """The same messages over gloo, which has no queue: the training ends."""
    assert len(launch(PAIR.layout, partial(train_rank, PAIR, ("all",), False))) == 2
