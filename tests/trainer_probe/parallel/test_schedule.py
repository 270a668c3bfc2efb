"""The orders of the source's figures, and what every order must keep."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from fabrictune.trainer_probe.parallel.schedule import PipelineShape, passes_of_rank

SHAPES = st.builds(PipelineShape, pp=st.integers(1, 8), virtual=st.integers(1, 4), num_batches=st.integers(1, 12))


def in_words(shape: PipelineShape, rank: int) -> str:
    """F0.2 is the forward pass of micro-batch 2 through stage 0."""
    return " ".join(f"{run.direction[0].upper()}{run.stage}.{run.batch}" for run in passes_of_rank(shape, rank))


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


@given(SHAPES)
def test_every_pass_is_run_once_and_forward_first(shape: PipelineShape) -> None:
    """Each stage and micro-batch on the rank that has the stage, and in both directions."""
    for rank in range(shape.pp):
        passes = passes_of_rank(shape, rank)
        assert Counter((run.direction, run.stage, run.batch) for run in passes) == {
            (direction, stage, batch): 1
            for direction in ("forward", "backward")
            for stage in range(rank, shape.num_stages, shape.pp)
            for batch in range(shape.num_batches)
        }
        place = {(run.direction, run.stage, run.batch): number for number, run in enumerate(passes)}
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
            kept += 1 if run.direction == "forward" else -1
            most = max(most, kept)
        behind = shape.pp - 1 - rank
        warm_up = behind if shape.virtual == 1 else 2 * behind + (shape.virtual - 1) * shape.pp
        assert most <= warm_up + 1


def test_the_bubble_of_the_paper() -> None:
    """175B on 256 GPUs: 7 / (6 * 64) = 1.82 % at batch 256, 0.61 % at 768."""
    assert PipelineShape(pp=8, virtual=6, num_batches=64).bubble_fraction == 7 / 384
    assert PipelineShape(pp=8, virtual=6, num_batches=192).bubble_fraction == 7 / 1152
