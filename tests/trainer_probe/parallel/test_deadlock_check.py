"""No pipeline of up to eight ranks, chunks and micro-batches can deadlock."""

import itertools
from dataclasses import replace

import pytest

from fabrictune.trainer_probe.parallel.deadlock_check import find_deadlock
from fabrictune.trainer_probe.parallel.program import Message, Program, Step, make_program
from fabrictune.trainer_probe.parallel.schedule import Pass, PipelineShape

UP_TO_EIGHT = range(1, 9)


def make_programs(shape: PipelineShape, *, is_decoupled: bool) -> list[Program]:
    return [make_program(shape, rank, is_decoupled=is_decoupled) for rank in range(shape.pp)]


@pytest.mark.parametrize("is_decoupled", [True, False])
def test_every_pipeline_comes_to_its_end(is_decoupled: bool) -> None:
    """All p, v, m up to 8 that are allowed, each proved for every timing: p divides m where v is more than 1."""
    shapes = [
        PipelineShape(pp=pp, virtual=virtual, num_batches=num_batches)
        for pp, virtual, num_batches in itertools.product(UP_TO_EIGHT, repeat=3)
        if virtual == 1 or num_batches % pp == 0
    ]
    assert len(shapes) == 8 * 8 + 7 * (8 + 4 + 2 + 2 + 1 + 1 + 1 + 1)
    for shape in shapes:
        assert find_deadlock(make_programs(shape, is_decoupled=is_decoupled)) == [], shape


@pytest.mark.parametrize("is_decoupled", [True, False])
def test_every_message_is_sent_once_and_every_wait_begun(is_decoupled: bool) -> None:
    """p v - 1 borders, m micro-batches, both ways; each sent, posted and awaited on both sides."""
    shape = PipelineShape(pp=4, virtual=3, num_batches=8)
    steps = [step for program in make_programs(shape, is_decoupled=is_decoupled) for step in program]
    for kind in ("send", "post", "await_send", "await_receive"):
        messages = [step.subject for step in steps if step.kind == kind]
        assert len(set(messages)) == len(messages) == 2 * (4 * 3 - 1) * 8


def test_a_smaller_last_group_can_deadlock() -> None:
    """Why p must divide m: in the last group of one, rank 0 waits for a chunk that rank 3 reaches only after it."""
    shape = PipelineShape(pp=4, virtual=3, num_batches=5)
    assert len(find_deadlock(make_programs(shape, is_decoupled=True))) == 4


def test_a_deadlock_is_found() -> None:
    """Two ranks that wait for each other's message before they send their own."""
    there, back = (
        Message(sender=sender, receiver=1 - sender, taken_by=Pass(direction="forward", stage=1 - sender, batch=0))
        for sender in range(2)
    )
    programs = [
        (
            Step(kind="post", subject=theirs),
            Step(kind="await_receive", subject=theirs),
            Step(kind="send", subject=ours),
        )
        for ours, theirs in ((there, back), (back, there))
    ]
    blocked = find_deadlock(programs)
    assert [line.partition(":")[0] for line in blocked] == ["rank 0, step 1 of 3", "rank 1, step 1 of 3"]


def test_a_send_that_is_waited_for_before_the_receive_is_posted_is_a_deadlock() -> None:
    """In the steady state both neighbours send, and each would post only when its own send is done."""
    shape = PipelineShape(pp=2, virtual=1, num_batches=4)
    programs = [_waiting_at_once(program) for program in make_programs(shape, is_decoupled=False)]
    assert len(find_deadlock(programs)) == 2


def test_receives_in_another_order_than_the_sends_are_found() -> None:
    """With two ranks, activations and gradients of both chunks come from the same neighbour."""
    shape = PipelineShape(pp=2, virtual=2, num_batches=4)
    programs = make_programs(shape, is_decoupled=True)
    posts = [place for place, step in enumerate(programs[1]) if step.kind == "post"]
    steps = list(programs[1])
    first, second = steps[posts[0]], steps[posts[1]]
    steps[posts[0]], steps[posts[1]] = second, replace(first, kind="post")
    with pytest.raises(ValueError, match="rank 0 sends"):
        find_deadlock([programs[0], tuple(steps)])


def _waiting_at_once(program: Program) -> Program:
    """Wait for each send right behind it, and post each receive right before its wait."""
    steps: list[Step] = []
    for step in program:
        if step.kind == "await_receive":
            steps.append(replace(step, kind="post"))
        if step.kind not in ("post", "await_send"):
            steps.append(step)
        if step.kind == "send":
            steps.append(replace(step, kind="await_send"))
    return tuple(steps)
