"""The orders of the source's figures, and what every order must keep."""

from collections import Counter
from dataclasses import replace
from itertools import accumulate
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.trainer_probe.parallel.program import input_of
from fabrictune.trainer_probe.parallel.schedule import Pass, PassTimes, PipelineShape, ScheduleName
from fabrictune.trainer_probe.parallel.schedules.table import passes_of_rank, schedule_of

COUNTS = {"pp": st.integers(1, 8), "num_batches": st.integers(1, 12)}
SHAPES = st.builds(PipelineShape, **COUNTS, virtual=st.integers(1, 4))
SPLIT = st.builds(PipelineShape, **COUNTS, virtual=st.just(1), schedule=st.just("zb-h1"))
EQUAL = PassTimes(forward=1, backward=1, weights=1)


def in_words(shape: PipelineShape, rank: int) -> str:
    """F0.2 is the forward pass of micro-batch 2 through stage 0, W0.2 that of its weights' gradients."""
    return " ".join(f"{run.kind[0].upper()}{run.stage}.{run.batch}" for run in passes_of_rank(shape, rank))


def test_one_forward_one_backward() -> None:
    """Two ranks, three micro-batches: rank 0 is one pass ahead, rank 1 answers each at once."""
    shape = PipelineShape(pp=2, virtual=1, num_batches=3)
    assert in_words(shape, 0) == "F0.0 F0.1 B0.0 F0.2 B0.1 B0.2"
    assert in_words(shape, 1) == "F1.0 B1.0 F1.1 B1.1 F1.2 B1.2"


def test_interleaved_one_forward_one_backward() -> None:
    """Two ranks of two chunks: stages 0 and 2, 1 and 3; two micro-batches go through one chunk, then the other."""
    shape = PipelineShape(pp=2, virtual=2, num_batches=4)
    assert in_words(shape, 0) == ("F0.0 F0.1 F2.0 F2.1 F0.2 B2.0 F0.3 B2.1 F2.2 B0.0 F2.3 B0.1 B2.2 B2.3 B0.2 B0.3")
    assert in_words(shape, 1) == ("F1.0 F1.1 F3.0 B3.0 F3.1 B3.1 F1.2 B1.0 F1.3 B1.1 F3.2 B3.2 F3.3 B3.3 B1.2 B1.3")


def test_zero_bubble_h1() -> None:
    """Three ranks, the source's figure 3: rank r keeps the weights' passes of r micro-batches."""
    shape = PipelineShape(pp=3, virtual=1, num_batches=4, schedule="zb-h1")
    assert in_words(shape, 0) == "F0.0 F0.1 F0.2 B0.0 W0.0 F0.3 B0.1 W0.1 B0.2 W0.2 B0.3 W0.3"
    assert in_words(shape, 1) == "F1.0 F1.1 B1.0 F1.2 B1.1 W1.0 F1.3 B1.2 W1.1 B1.3 W1.2 W1.3"
    assert in_words(shape, 2) == "F2.0 B2.0 F2.1 B2.1 F2.2 B2.2 W2.0 F2.3 B2.3 W2.1 W2.2 W2.3"


@given(SPLIT)
def test_a_split_pass_follows_its_backward_pass_and_1f1b_remains(shape: PipelineShape) -> None:
    """Without the weights' passes it is 1F1B; each comes once, in order, behind its backward pass."""
    for rank in range(shape.pp):
        passes = passes_of_rank(shape, rank)
        plain = PipelineShape(pp=shape.pp, virtual=1, num_batches=shape.num_batches)
        assert tuple(run for run in passes if run.kind != "weights") == passes_of_rank(plain, rank)
        assert [run.batch for run in passes if run.kind == "weights"] == list(range(shape.num_batches))
        place = {(run.kind, run.batch): number for number, run in enumerate(passes)}
        assert all(place["backward", batch] < place["weights", batch] for batch in range(shape.num_batches))


@given(SPLIT)
def test_no_rank_keeps_more_micro_batches_than_the_first_of_1f1b(shape: PipelineShape) -> None:
    """A micro-batch is kept from its forward pass to that of its weights: p at most, as on 1F1B's first rank."""
    for rank in range(shape.pp):
        changes = {"forward": 1, "backward": 0, "weights": -1}
        kept = accumulate(changes[run.kind] for run in passes_of_rank(shape, rank))
        assert max(kept) == min(shape.pp, shape.num_batches)


def executed_bubble(shape: PipelineShape, times: PassTimes) -> float:
    """Return idle over busy time by executing the passes, each as soon as its rank and its input are ready."""
    waiting = [list(passes_of_rank(shape, rank)) for rank in range(shape.pp)]
    ready, done = [0.0] * shape.pp, dict[Pass | None, float]({None: 0.0})
    duration = {"forward": times.forward, "backward": times.backward + times.weights, "weights": times.weights}
    if schedule_of(shape).splits_backward:
        duration["backward"] = times.backward
    while any(waiting):
        for rank, passes in enumerate(waiting):
            while passes and (source := given_by(shape, passes[0])) in done:
                run = passes.pop(0)
                ready[rank] = done[run] = max(ready[rank], done[source]) + duration[run.kind]
    return max(ready) / (shape.num_batches * shape.virtual * times.total) - 1


def given_by(shape: PipelineShape, run: Pass) -> Pass | None:
    """Return the pass on another rank whose output a pass takes."""
    if input_of(shape, run) is None:
        return None
    return replace(run, stage=run.stage - (1 if run.kind == "forward" else -1))


@given(SPLIT, st.integers(1, 6), st.integers(1, 8), st.integers(0, 9))
def test_the_closed_form_of_zb_h1_is_the_executed_one(
    shape: PipelineShape, forward: int, backward: int, weights: int
) -> None:
    """Any times of passes, any number of micro-batches; the source's where m >= p and W <= F, B."""
    times = PassTimes(forward=forward, backward=backward, weights=weights)
    found = schedule_of(shape).bubble_fraction(shape, times)
    assert found == pytest.approx(executed_bubble(shape, times))
    if shape.num_batches >= shape.pp and weights <= min(forward, backward):
        source = (shape.pp - 1) * (forward + backward - weights) / (shape.num_batches * times.total)
        assert found == pytest.approx(source)


def test_zb_h1_has_a_third_of_the_bubble_of_1f1b() -> None:
    """The source's claim, with passes of equal length: (p - 1) / (3 m) instead of (p - 1) / m."""
    for schedule, expected in (("1f1b", 7 / 32), ("zb-h1", 7 / 96)):
        shape = PipelineShape(pp=8, virtual=1, num_batches=32, schedule=cast(ScheduleName, schedule))
        assert schedule_of(shape).bubble_fraction(shape, EQUAL) == pytest.approx(expected)
        assert executed_bubble(shape, EQUAL) == pytest.approx(expected)


@given(SHAPES)
def test_every_pass_is_run_once_and_forward_first(shape: PipelineShape) -> None:
    """Each stage and micro-batch on the rank that has the stage, and in both directions."""
    for rank in range(shape.pp):
        passes = passes_of_rank(shape, rank)
        assert Counter((run.kind, run.stage, run.batch) for run in passes) == {
            (direction, stage, batch): 1
            for direction in ("forward", "backward")
            for stage in range(rank, shape.num_stages, shape.pp)
            for batch in range(shape.num_batches)
        }
        place = {(run.kind, run.stage, run.batch): number for number, run in enumerate(passes)}
        assert all(
            place["forward", stage, batch] < number
            for (direction, stage, batch), number in place.items()
            if direction == "backward"
        )


@given(SHAPES)
def test_a_rank_keeps_no_more_than_its_warm_up_and_one(shape: PipelineShape) -> None:
    """Activations kept: 2 (p - 1 - r) + (v - 1) p and one more with several chunks, p - r with one."""
    for rank in range(shape.pp):
        kept, most = 0, 0
        for run in passes_of_rank(shape, rank):
            kept += 1 if run.kind == "forward" else -1
            most = max(most, kept)
        behind = shape.pp - 1 - rank
        warm_up = behind if shape.virtual == 1 else 2 * behind + (shape.virtual - 1) * shape.pp
        assert most <= warm_up + 1


def test_the_bubble_of_the_paper() -> None:
    """175B on 256 GPUs: 7 / (6 * 64) = 1.82 % at batch 256, 0.61 % at 768."""
    for num_batches, expected in ((64, 7 / 384), (192, 7 / 1152)):
        shape = PipelineShape(pp=8, virtual=6, num_batches=num_batches)
        assert schedule_of(shape).bubble_fraction(shape, EQUAL) == expected
        assert executed_bubble(shape, EQUAL) == pytest.approx(expected)
