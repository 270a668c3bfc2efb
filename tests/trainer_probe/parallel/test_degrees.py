"""What does not divide is refused, all mistakes at once; the published shapes divide."""

from dataclasses import replace

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.trainer_probe.model.gpt import GptSpec
from fabrictune.trainer_probe.model.moe import MoeSpec
from fabrictune.trainer_probe.model.table import PRESETS
from fabrictune.trainer_probe.parallel.degrees import Degrees, check_degrees
from fabrictune.trainer_probe.parallel.schedule import ScheduleName


@pytest.mark.parametrize(("name", "pp", "virtual"), [("175B", 8, 6), ("530B", 35, 3)])
def test_the_published_degrees_divide_the_published_models(name: str, pp: int, virtual: int) -> None:
    """MegaScale, Table 1: TP 8 for both; 96 layers over 8 * 6 chunks, 105 over 35 * 3."""
    layout = ParallelLayout(tp=8, pp=pp, dp=4)
    check_degrees(PRESETS[name], Degrees(layout=layout, virtual=virtual, num_batches=2 * pp, tensor_chunks=4))


def test_all_mistakes_are_reported_at_once() -> None:
    """Three tensor ranks divide neither 4 heads nor 64 ids nor 2 * 16 places; four chunks divide no 6 layers."""
    model = GptSpec(width=16, depth=6, num_heads=4, vocabulary=64, sequence=16)
    degrees = Degrees(layout=ParallelLayout(tp=3, pp=2), virtual=2, num_batches=3, batch_size=0, tensor_chunks=2)
    with pytest.raises(InputError) as caught:
        check_degrees(model, degrees)
    assert str(caught.value) == (
        "batch_size: 0\n"
        "  allowed: 1 or more\n"
        "model.num_heads: 4\n"
        "  allowed: a multiple of 3, tp 3\n"
        "model.vocabulary: 64\n"
        "  allowed: a multiple of 3, tp 3\n"
        "model.sequence: 16\n"
        "  allowed: a multiple of 6, tp 3 times tensor_chunks 2\n"
        "model.depth: 6\n"
        "  allowed: a multiple of 4, pp 2 times virtual 2\n"
        "num_batches: 3\n"
        "  allowed: a multiple of pp 2 where virtual is above 1"
    )


def test_chunks_without_a_pipeline_are_refused() -> None:
    """They would only cost memory."""
    with pytest.raises(InputError, match="allowed: 1 where pp is 1"):
        check_degrees(PRESETS["tiny"], Degrees(virtual=2))


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (
            ParallelLayout(cp=3),
            "model.sequence: 64\n  allowed: a multiple of 6, 2 times cp 3",
        ),
        (
            ParallelLayout(cp=16, tp=4),
            "model.sequence: 64\n  allowed: a multiple of 128, 2 times cp 16 times tp 4",
        ),
    ],
)
def test_degrees_that_do_not_divide_are_refused(layout: ParallelLayout, message: str) -> None:
    """64 tokens have no 6 or 128 equal parts, and a dense model has no experts; or ranks would do the same twice."""
    with pytest.raises(InputError) as caught:
        check_degrees(PRESETS["tiny"], Degrees(layout=layout))
    assert str(caught.value) == message


@pytest.mark.parametrize("schedule", ["1f1b", "zb-h1"])
def test_a_schedule_of_one_chunk_refuses_several(schedule: ScheduleName) -> None:
    """They are for the interleaved one, which refuses one chunk."""
    several = Degrees(layout=ParallelLayout(pp=2), virtual=2, num_batches=2, schedule=schedule)
    with pytest.raises(InputError) as caught:
        check_degrees(PRESETS["tiny"], several)
    assert str(caught.value) == (
        f"virtual: 2\n  allowed: 1 with the schedule {schedule}\n"
        "  next: choose the schedule interleaved for several chunks"
    )
    one = Degrees(layout=ParallelLayout(pp=2), num_batches=2, schedule="interleaved")
    with pytest.raises(InputError) as caught:
        check_degrees(PRESETS["tiny"], one)
    assert str(caught.value) == (
        "virtual: 1\n  allowed: 2 or more with the schedule interleaved\n  next: choose the schedule 1f1b for one chunk"
    )


def test_chunks_of_products_divide_a_context_parallel_part() -> None:
    """64 tokens: 32 a rank of cp 2, 16 a part of tp 2, of which 8 chunks have two tokens each, and 16 one."""
    layout = ParallelLayout(tp=2, cp=2)
    check_degrees(PRESETS["tiny"], Degrees(layout=layout, tensor_chunks=8))
    message = "model.sequence: 64\n  allowed: a multiple of 128, 2 times cp 2 times tp 2 times tensor_chunks 16"
    with pytest.raises(InputError, match=message):
        check_degrees(PRESETS["tiny"], Degrees(layout=layout, tensor_chunks=16))


def test_context_ranks_have_whole_groups_of_tokens() -> None:
    """Slots of experts are dealt over a group, by default over all tokens of a sample."""
    model = MoeSpec(width=16, num_heads=4, num_key_value_heads=2, feed_forward_width=8, vocabulary=8, sequence=16)
    with pytest.raises(InputError) as caught:
        check_degrees(model, Degrees(layout=ParallelLayout(cp=2)))
    assert str(caught.value) == (
        "model.token_groups: 1\n"
        "  allowed: a multiple of 4, 2 times cp 2, as experts have slots for each group\n"
        "  next: set model.token_groups to 4, in every layout that is to compute the same"
    )
    check_degrees(replace(model, token_groups=8), Degrees(layout=ParallelLayout(cp=2)))


def test_experts_are_divided_equally_and_only_where_there_are_some() -> None:
    """Four experts on three ranks; chunks of an exchange that is not made; a model without experts."""
    mixture, divided = PRESETS["moe-tiny"], ParallelLayout(dp=3, ep=3)
    cases = [
        (mixture, Degrees(layout=divided), "model.num_experts: 4\n  allowed: a multiple of ep 3"),
        (mixture, Degrees(expert_chunks=2), "expert_chunks: 2\n  allowed: 1 where ep is 1\n  next: raise layout.ep"),
        (
            PRESETS["tiny"],
            Degrees(layout=divided),
            "layout.ep: 3\n  allowed: 1, since a model of the family gpt has no experts\n"
            "  next: set model.family to moe",
        ),
    ]
    for model, degrees, message in cases:
        with pytest.raises(InputError) as caught:
            check_degrees(model, degrees)
        assert str(caught.value) == message


def test_a_step_has_the_samples_of_all_ranks() -> None:
    """175B at batch 768 on 256 GPUs: 4 data-parallel ranks of 192 micro-batches."""
    layout = ParallelLayout(tp=8, pp=8, dp=4)
    assert Degrees(layout=layout, virtual=6, num_batches=192).samples_per_step == 768
