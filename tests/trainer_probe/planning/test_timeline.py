"""A step played without a network and over ideal links, against arithmetic."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from fabrictune.foundation.layout import ParallelLayout
from fabrictune.trainer_probe.data_parallel.spec import DataParallelSpec
from fabrictune.trainer_probe.model.gpt import GptSpec
from fabrictune.trainer_probe.model.moe import MoeSpec
from fabrictune.trainer_probe.model.spec import ModelSpec, flops_per_token
from fabrictune.trainer_probe.parallel.degrees import Degrees
from fabrictune.trainer_probe.planning.hardware import HardwareSpec
from fabrictune.trainer_probe.planning.plan import Plan, make_plan
from fabrictune.trainer_probe.planning.schedules import bubble_fraction, compare_schedules, pass_times
from fabrictune.trainer_probe.planning.timeline import durations
from fabrictune.trainer_probe.recipes.schema import Overlap, Recipe

pytest.importorskip("torch")

MODEL = GptSpec(width=256, depth=8, num_heads=4, vocabulary=2, sequence=64)
MIXTURE = MoeSpec(
    width=256,
    depth=2,
    num_heads=4,
    num_key_value_heads=2,
    feed_forward_width=512,
    vocabulary=2,
    sequence=64,
    num_experts=8,
    capacity_factor=1.0,
)
OVERLAPS: tuple[Overlap, ...] = ("none", "all")
HARDWARE = HardwareSpec(
    achieved_flops_per_s=1e12, memory_bytes_per_s=math.inf, nvlink_rate_bps=80e9, nic_rate_bps=8e9, gpus_per_host=2
)


def plan(
    degrees: Degrees, overlap: Overlap = "all", model: ModelSpec = MODEL, hardware: HardwareSpec = HARDWARE
) -> Plan:
    return make_plan(Recipe(name="play", model=model, degrees=degrees, overlap=overlap), hardware)


@pytest.mark.parametrize("overlap", ["none", "all"])
@pytest.mark.parametrize(("pp", "virtual", "num_batches"), [(2, 1, 3), (4, 1, 8), (4, 2, 8), (2, 4, 4), (8, 1, 2)])
def test_the_bubble_is_that_of_the_closed_form(pp: int, virtual: int, num_batches: int, overlap: Overlap) -> None:
    """(p - 1) / (v m), where all passes take as long: the head of two ids is 1/6000 of a layer's products."""
    found = plan(Degrees(layout=ParallelLayout(pp=pp), virtual=virtual, num_batches=num_batches), overlap)
    assert found.bubble_fraction == pytest.approx((pp - 1) / (virtual * num_batches), rel=2e-3)


@pytest.mark.parametrize("overlap", ["none", "all"])
@pytest.mark.parametrize(("pp", "num_batches"), [(2, 3), (4, 8), (4, 2), (8, 8)])
def test_the_bubble_of_zb_h1_is_that_of_the_closed_form(pp: int, num_batches: int, overlap: Overlap) -> None:
    """With the passes' own times: attention has no weights, so a weights' pass is shorter than a forward pass."""
    found = plan(Degrees(layout=ParallelLayout(pp=pp), num_batches=num_batches, schedule="zb-h1"), overlap)
    times = pass_times(MODEL)
    assert times.weights < times.forward < times.backward
    assert found.bubble_fraction == pytest.approx(bubble_fraction(found.recipe), rel=2e-3)


@pytest.mark.parametrize("tp", [1, 2])
def test_products_of_weights_are_in_their_own_passes(tp: int) -> None:
    """Of the forward passes' operations: all in the forward part, twice as many less the weights' in the backward part,
    and in the weights' part those of the matrices; the head's three products are the same size."""
    model = replace(MODEL, vocabulary=128)
    found = plan(Degrees(layout=ParallelLayout(tp=tp, pp=2), num_batches=3, schedule="zb-h1"), model=model)
    flops = Counter[str]()
    for rows in found.operations:
        for row in rows:
            flops[row.part] += row.flops
    times, head = pass_times(model), 2 * model.width * model.vocabulary
    expected = {"forward": times.forward + head, "backward": times.backward + head, "weights": times.weights + head}
    assert {part: flops[part] * tp / found.num_tokens for part in expected} == expected


def test_a_plan_compares_the_schedules_that_its_degrees_allow() -> None:
    """Four ranks of two chunks, eight micro-batches: 1F1B 3/8, interleaved 3/16, ZB-H1 near a third of 1F1B's."""
    degrees = Degrees(layout=ParallelLayout(pp=4), virtual=2, num_batches=8)
    found = {row.schedule: row for row in compare_schedules(Recipe(name="play", model=MODEL, degrees=degrees))}
    assert [(name, row.num_chunks) for name, row in found.items()] == [("1f1b", 1), ("interleaved", 2), ("zb-h1", 1)]
    assert found["1f1b"].bubble_fraction == 3 / 8
    assert found["interleaved"].bubble_fraction == 3 / 16
    assert found["zb-h1"].bubble_fraction == pytest.approx(1 / 8, rel=0.1)
    assert found["zb-h1"].activations_bytes == found["1f1b"].activations_bytes
    whole = Recipe(name="play", model=MODEL, degrees=degrees, data_parallel=DataParallelSpec(strategy="zero3"))
    assert "zb-h1" not in [row.schedule for row in compare_schedules(whole)], "which splits backward passes"
    one_chunk = Recipe(name="play", model=MODEL, degrees=replace(degrees, virtual=1))
    assert [row.schedule for row in compare_schedules(one_chunk)] == ["1f1b", "zb-h1"]


@pytest.mark.parametrize("layout", [ParallelLayout(), ParallelLayout(tp=2), ParallelLayout(tp=2, pp=2, dp=3)])
def test_products_are_those_of_the_papers_count(layout: ParallelLayout) -> None:
    """Over all ranks of a step: 72 l h^2 (1 + s/(6 h) + V/(12 l h)) a token, and a rank alone works all the time."""
    model = replace(MODEL, vocabulary=128)
    found = plan(Degrees(layout=layout, num_batches=2), model=model)
    total = int(found.flops_P.sum()) * layout.tp * layout.dp
    assert total == flops_per_token(model) * found.num_tokens
    if layout.world_size == 1:
        assert found.at_best.step_ps == pytest.approx(total, abs=10_000)  # 1e12 operations a second


def test_a_message_crosses_the_nic_and_a_gathering_stays_inside() -> None:
    """Two GPUs a host, so tensor pairs are inside. 80 Gbps carry half of a gathering, 8 Gbps a whole message."""
    found = plan(Degrees(layout=ParallelLayout(tp=2, pp=2), num_batches=2))
    rows, took_N = found.trace.templates, durations(found.trace, HARDWARE)
    gathering = rows.axis_N.index("tp")
    assert took_N[gathering] == rows.bytes_N[gathering] // 2 * 100  # ps a byte
    message = rows.tag_N.index("stage1.batch0.forward")
    assert took_N[message] == rows.bytes_N[message] * 1000


def test_an_exchange_crosses_the_nic_with_what_leaves_the_host() -> None:
    """Two GPUs a host, four ranks of experts: a quarter stays, one is for the neighbour, two are for another host."""
    found = plan(Degrees(layout=ParallelLayout(dp=4, ep=4)), model=MIXTURE)
    rows, took_N = found.trace.templates, durations(found.trace, HARDWARE)
    exchange = rows.axis_N.index("ep")
    slots = MIXTURE.capacity.num_experts * MIXTURE.capacity.num_slots
    assert rows.bytes_N[exchange] == slots * MIXTURE.width * 4
    assert took_N[exchange] == rows.bytes_N[exchange] // 2 * 1000  # ps a byte
    inside = plan(Degrees(layout=ParallelLayout(dp=4, ep=2)), model=MIXTURE).trace
    assert durations(inside, HARDWARE)[inside.templates.axis_N.index("ep")] == rows.bytes_N[exchange] // 2 * 100


def test_chunks_of_an_exchange_hide_it_behind_the_experts() -> None:
    """Of four chunks, one is exchanged in front of the experts and one behind them, if these take longer."""
    fast = replace(HARDWARE, achieved_flops_per_s=1e10)
    exposed = {
        (overlap, chunks): plan(
            Degrees(layout=ParallelLayout(dp=4, ep=4), expert_chunks=chunks), overlap, model=MIXTURE, hardware=fast
        ).added_ps("ep")
        for overlap in OVERLAPS
        for chunks in (1, 4)
    }
    assert exposed["all", 1] == exposed["none", 1] == pytest.approx(exposed["none", 4])
    assert exposed["all", 4] == pytest.approx(exposed["all", 1] / 4, rel=0.01)


def test_one_message_is_waited_for_at_each_border() -> None:
    """Two ranks, a micro-batch: forward on both, a message between; backward on both, a message between."""
    found = plan(Degrees(layout=ParallelLayout(tp=2, pp=2)))
    message_ps = 64 * 256 * 4 / 2 * 8 / 8e9 * 1e12
    assert found.added_ps("pp") == pytest.approx(2 * message_ps)


@pytest.mark.parametrize("cp", [2, 4])
def test_a_ring_is_passed_round_three_times_a_layer(cp: int) -> None:
    """Without overlap each message is waited for: 3 (cp - 1) blocks of keys and values, of 64 / cp tokens, a layer.

    Once forward, once backward with as many blocks of gradients. On ranks of one GPU a host each crosses its NIC.
    """
    hardware = replace(HARDWARE, gpus_per_host=1)
    found = plan(Degrees(layout=ParallelLayout(cp=cp), num_batches=2), "none", hardware=hardware)
    block_ps = 2 * (64 // cp) * 256 * 4 * 8 / 8e9 * 1e12
    expected_ps = 2 * MODEL.depth * 3 * (cp - 1) * block_ps
    assert found.added_ps("cp") == pytest.approx(expected_ps, rel=1e-6)
    (own,) = [row for row in found.volumes(0) if row.axis == "cp" and row.sent_bytes]
    assert (own.sent_bytes, own.duration_ps) == pytest.approx((expected_ps / 1000, expected_ps))


def test_a_ring_beside_products_is_exposed_at_its_ends() -> None:
    """What products cover is not; the gradients that come home at the end of a layer's backward pass are.

    Two GPUs a host: every other message of the ring crosses a NIC, for which all of them wait.
    """
    degrees = Degrees(layout=ParallelLayout(cp=4), num_batches=2)
    serial, ring, everything = (plan(degrees, overlap) for overlap in ("none", "cp", "all"))
    home_ps = 2 * MODEL.depth * 2 * (64 // 4) * 256 * 4 * 8 / 8e9 * 1e12
    assert home_ps <= ring.added_ps("cp") < serial.added_ps("cp")
    assert everything.added_ps("cp") == ring.added_ps("cp")
    assert ring.without_network.step_ps == serial.without_network.step_ps


def test_a_ring_divides_attention_and_takes_none_of_it_away() -> None:
    """Causal attention counts whole, as the papers count it: 4 h s operations a token, forward and twice backward."""
    for cp in (1, 2, 4):
        found = plan(Degrees(layout=ParallelLayout(cp=cp)))
        attention = [row for row in found.operations[0] if "attention" in row.operation]
        assert sum(row.flops for row in attention) == 3 * MODEL.depth * 4 * 256 * 64 * (64 // cp)
        assert found.mfu_fraction < 1


def test_what_overlaps_costs_less() -> None:
    """Data-parallel sums of one stage run beside the products of others; without overlap each is waited for.

    An operation takes a nanosecond, so that no sum is rounded.
    """
    degrees = Degrees(layout=ParallelLayout(tp=2, dp=2, pp=2), virtual=2, num_batches=4)
    exact = replace(HARDWARE, achieved_flops_per_s=1e9)
    overlapped, serial = (plan(degrees, overlap, hardware=exact) for overlap in ("all", "none"))
    assert overlapped.at_best.step_ps < serial.at_best.step_ps
    assert overlapped.without_network.step_ps == serial.without_network.step_ps


def test_without_overlap_each_stage_is_gathered_and_summed_once() -> None:
    """At the step's ends, by all places at the same time: what a rank's own dp requests take."""
    found = plan(Degrees(layout=ParallelLayout(dp=8, pp=2), virtual=2, num_batches=4), "none")
    own_ps = [sum(row.duration_ps for row in found.volumes(place) if row.axis == "dp") for place in range(2)]
    assert found.added_ps("dp") == pytest.approx(max(own_ps), rel=0.02)


def test_no_request_is_complete_before_it_is_made() -> None:
    """And none is made before what it waits for is complete."""
    found = plan(Degrees(layout=ParallelLayout(tp=2, dp=2, pp=2), num_batches=3))
    played, rows = found.at_best, found.trace.templates
    assert (played.done_ps_N >= played.ready_ps_N).all()
    waiting = np.repeat(np.arange(len(rows)), np.diff(rows.dependencies.offset_N1))
    assert (played.ready_ps_N[waiting] >= played.done_ps_N[rows.dependencies.row_D]).all()
