"""A tensor-parallel group against one process: loss and every gradient, its requests, and what overlap may change."""

import itertools
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.traces import CommTrace, Operation
from fabrictune.trainer_probe.launcher.processes import launch
from fabrictune.trainer_probe.model.gpt import Block, GptSpec, Positions
from fabrictune.trainer_probe.policies import POLICIES

pytest.importorskip("torch")

import torch

from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.forward import MicroBatch, run_chunk
from fabrictune.trainer_probe.model.initialization import make_weights
from fabrictune.trainer_probe.model.operators import Operators, SingleProcess

if TYPE_CHECKING:
    from fabrictune.collectives.startup.process_groups import Member

BATCH_SIZE = 2
BLOCKS: list[tuple[Block, Positions]] = [("parallel", "learned"), ("serial", "rotary")]
CASES = [
    (block, positions, policy, num_chunks)
    for block, positions in BLOCKS
    for policy, num_chunks in itertools.product(("none", "tp"), (1, 2))
]
Found = dict[str, NDArray[Any]]


def make_spec(block: Block, positions: Positions) -> GptSpec:
    return GptSpec(
        width=16, depth=2, num_heads=4, vocabulary=12, sequence=8, window=3, block=block, positions=positions
    )


def compute(spec: GptSpec, operators: Operators, *, tp: int = 1, place: int = 0) -> dict[str, torch.Tensor]:
    """Return the loss and this rank's gradients of one micro-batch."""
    chunk = ChunkSpec(model=spec)
    weights = {name: value.requires_grad_() for name, value in make_weights(chunk, tp=tp, place=place).items()}
    ids = torch.randint(spec.vocabulary, (BATCH_SIZE, spec.sequence + 1), generator=torch.Generator().manual_seed(0))
    batch = MicroBatch(tokens_BS=ids[:, :-1], targets_BS=ids[:, 1:])
    loss = run_chunk(chunk, weights, operators, batch, None, "chunk0")
    gradients = torch.autograd.grad(loss, list(weights.values()))
    return {"loss": loss.detach(), **dict(zip(weights, gradients, strict=True))}


def half_precision_logits() -> tuple[torch.Tensor, torch.Tensor]:
    """Logits S B V of 12 ids, and targets B S."""
    generator = torch.Generator().manual_seed(0)
    logits_SBV = torch.randn(8, BATCH_SIZE, 12, generator=generator).bfloat16()
    return logits_SBV, torch.randint(12, (BATCH_SIZE, 8), generator=generator)


def compute_in_group(layout: ParallelLayout, folder: Path, member: "Member") -> Found:
    """Every case on this rank; gradients of weights that all hold are summed, as a trainer does."""
    from fabrictune.trainer_probe.comm import Comm
    from fabrictune.trainer_probe.parallel.tensor import make_operators

    found: Found = {}
    for case in CASES:
        block, positions, policy, num_chunks = case
        comm, spec = Comm(layout, member), make_spec(block, positions)
        operators = make_operators(comm, POLICIES[policy], num_chunks)
        results = compute(spec, operators, tp=layout.tp, place=member.rank)
        comm.trace().write(folder / f"{member.rank}.{CASES.index(case)}.parquet")
        for weight in ChunkSpec(model=spec).weights():
            if weight.split is None:
                comm.all_reduce(results[weight.name], axis="tp", tag="sum").wait()
        found |= {f"{CASES.index(case)}/{name}": value.numpy() for name, value in results.items()}
    logits_SBV, targets_BS = half_precision_logits()
    own_SBV = logits_SBV.chunk(layout.tp, -1)[member.rank]
    found["half-precision loss"] = operators.cross_entropy(own_SBV, targets_BS, "half").numpy()
    return found


@pytest.fixture(scope="module", params=[2, 4])
def group(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Found]]:
    """All cases on two ranks and on four."""
    folder = tmp_path_factory.mktemp("ledgers")
    layout = ParallelLayout(tp=request.param)
    return folder, launch(layout, partial(compute_in_group, layout, folder))


def test_loss_and_gradients_equal_one_process(group: tuple[Path, list[Found]]) -> None:
    """In double precision only the order of additions differs."""
    _, found = group
    for number, (block, positions, _, _) in enumerate(CASES):
        spec = make_spec(block, positions)
        expected = compute(spec, SingleProcess())
        for place, results in enumerate(found):
            assert results[f"{number}/loss"] == pytest.approx(float(expected["loss"]), abs=1e-12)
            for weight in ChunkSpec(model=spec).weights():
                part = weight.local_part(expected[weight.name], len(found), place)
                np.testing.assert_allclose(
                    results[f"{number}/{weight.name}"], part, rtol=0, atol=1e-12, err_msg=weight.name
                )


def test_logits_of_half_precision_lose_no_more_in_the_loss(group: tuple[Path, list[Found]]) -> None:
    """A loss of about 40 in bfloat16 would come in steps of 0.25, and a sum of exponentials lose 2**-9 of itself."""
    _, found = group
    logits_SBV, targets_BS = half_precision_logits()
    expected = SingleProcess().cross_entropy(logits_SBV.double(), targets_BS, "")
    alone = SingleProcess().cross_entropy(logits_SBV, targets_BS, "")
    for loss in [float(alone), *(float(results["half-precision loss"]) for results in found)]:
        assert loss == pytest.approx(float(expected), rel=1e-6)


def test_overlap_changes_no_bit(group: tuple[Path, list[Found]]) -> None:
    """Of each block and number of chunks, with overlap and without."""
    _, found = group
    for number, case in enumerate(CASES):
        if case[2] == "tp":
            other = CASES.index((*case[:2], "none", case[3]))
            for results in found:
                ours = {
                    name.partition("/")[2]: values for name, values in results.items() if name.startswith(f"{number}/")
                }
                for name, values in ours.items():
                    assert np.array_equal(values, results[f"{other}/{name}"]), name


def test_requests_and_bytes_follow_the_closed_form(group: tuple[Path, list[Found]]) -> None:
    """A pair gathers its input, its input again and its output's gradient; it scatters its output and its input's
    gradient: 3 and 2 times S B D. The head gathers twice and scatters once, the embedding once each; the loss gathers
    three numbers a token of each rank. A parallel layer has one pair, a serial one two."""
    folder, found = group
    activations = 8 * BATCH_SIZE * 16 * 8  # S B D, 8 bytes each
    for number, (block, _, policy, _) in enumerate(CASES):
        num_pairs = 2 * (1 if block == "parallel" else 2)
        trace = CommTrace.read(folder / f"0.{number}.parquet")
        num_bytes = Counter[int]()
        for operation, size in zip(trace.operation_N.tolist(), trace.bytes_N.tolist(), strict=True):
            num_bytes[operation] += size
        assert num_bytes == {
            Operation.ALL_GATHER: (3 * num_pairs + 3) * activations + len(found) * 3 * 8 * BATCH_SIZE * 8,
            Operation.REDUCE_SCATTER: (2 * num_pairs + 2) * activations,
        }
        assert set(trace.axis_N) == {"tp"}
        assert set(trace.policy_N) == {policy}
        assert len(set(trace.tag_N)) == len(trace), "every request has a name of its own"


def test_overlap_leaves_a_request_under_way_while_the_next_is_made(group: tuple[Path, list[Found]]) -> None:
    """Without overlap each request waits for the one before; with it, a scatter of two chunks starts both at once."""
    folder, _ = group
    for number, (_, _, policy, num_chunks) in enumerate(CASES):
        trace = CommTrace.read(folder / f"0.{number}.parquet")
        waits_for_last = [row - 1 in trace.dependencies.of(row) for row in range(1, len(trace))]
        assert all(waits_for_last) == (policy == "none"), (policy, num_chunks)
