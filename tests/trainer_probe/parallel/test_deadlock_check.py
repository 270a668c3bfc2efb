"""No pipeline of up to eight ranks, chunks and micro-batches can deadlock."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

import pytest

from fabrictune.collectives.startup.groups import ProcessGroup
from fabrictune.collectives.startup.operation_count import count_operations
from fabrictune.collectives.startup.rendezvous import rendezvous
from fabrictune.collectives.startup.store_operations import Steps
from fabrictune.foundation.errors import InputError, StartupError
from fabrictune.trainer_probe.parallel import deadlock_check
from fabrictune.trainer_probe.parallel.deadlock_check import TRANSPORTS, Transport, find_deadlock, proved_programs
from fabrictune.trainer_probe.parallel.program import Message, Program, Step, make_program, pairs_of
from fabrictune.trainer_probe.parallel.schedule import Pass, PipelineShape

UP_TO_EIGHT = range(1, 9)
SHAPES = [
    PipelineShape(pp=pp, virtual=virtual, num_batches=num_batches)
    for pp, virtual, num_batches in itertools.product(UP_TO_EIGHT, repeat=3)
    if virtual == 1 or num_batches % pp == 0
]
SPLIT_SHAPES = [replace(shape, schedule="zb-h1") for shape in SHAPES if shape.virtual == 1]
GLOO, NCCL, ONE_LAUNCH_QUEUE = TRANSPORTS
ONE_COMMUNICATOR_A_PAIR = Transport(
    name="one communicator a pair", queue_of=lambda message: frozenset((message.sender, message.receiver))
)
ONE_FOR_EACH_DIRECTION_OF_PASSES = Transport(
    name="a communicator for forward passes, one for backward passes",
    queue_of=lambda message: (message.taken_by.kind, frozenset((message.sender, message.receiver))),
)
ONE_FOR_EACH_GROUP = Transport(
    name="communicators made with their groups", queue_of=lambda message: message.sender < message.receiver
)


def make_programs(shape: PipelineShape, *, is_decoupled: bool) -> list[Program]:
    return [make_program(shape, rank, is_decoupled=is_decoupled) for rank in range(shape.pp)]


def num_deadlocks(transport: Transport, *, is_decoupled: bool, shapes: Sequence[PipelineShape] = SHAPES) -> int:
    return sum(bool(find_deadlock(make_programs(shape, is_decoupled=is_decoupled), transport)) for shape in shapes)


@pytest.mark.parametrize("is_decoupled", [True, False])
@pytest.mark.parametrize("transport", TRANSPORTS, ids=lambda transport: transport.name)
def test_every_pipeline_comes_to_its_end(transport: Transport, is_decoupled: bool) -> None:
    """All p, v, m up to 8 that are allowed, each proved for every timing: p divides m where v is more than 1."""
    assert len(SHAPES) == 8 * 8 + 7 * (8 + 4 + 2 + 2 + 1 + 1 + 1 + 1)
    assert num_deadlocks(transport, is_decoupled=is_decoupled) == 0


@pytest.mark.parametrize("is_decoupled", [True, False])
@pytest.mark.parametrize("transport", TRANSPORTS, ids=lambda transport: transport.name)
def test_every_split_pipeline_comes_to_its_end(transport: Transport, is_decoupled: bool) -> None:
    """ZB-H1 for all p and m up to 8."""
    assert len(SPLIT_SHAPES) == 64
    assert num_deadlocks(transport, is_decoupled=is_decoupled, shapes=SPLIT_SHAPES) == 0


@pytest.mark.parametrize(
    "shape", [PipelineShape(pp=8, virtual=6, num_batches=32), PipelineShape(pp=35, virtual=3, num_batches=70)]
)
def test_the_pipelines_of_published_models_come_to_their_end(shape: PipelineShape) -> None:
    """175B and 530B of MegaScale, over the transport that blocks most."""
    for is_decoupled in (True, False):
        assert len(proved_programs(shape, is_decoupled=is_decoupled)) == shape.pp


def test_one_communicator_a_pair_deadlocks() -> None:
    """What torch makes of a pair of ranks in one NCCL group. 140 shapes have messages. Decoupled all deadlock, since
    both ranks post a receive before they send; coupled those in which one must receive and send in turn."""
    assert num_deadlocks(ONE_COMMUNICATOR_A_PAIR, is_decoupled=True) == 140
    assert num_deadlocks(ONE_COMMUNICATOR_A_PAIR, is_decoupled=False) == 119


def test_a_transport_blocks_whatever_the_one_before_it_blocks() -> None:
    """So the last one alone needs to be played: fewer messages a queue, and nothing held back, block less."""
    programs = make_programs(PipelineShape(pp=2, virtual=2, num_batches=2), is_decoupled=True)
    messages = [step.subject for program in programs for step in program if isinstance(step.subject, Message)]
    for ours, theirs in itertools.product(messages, repeat=2):
        shares = [transport.queue_of(ours) == transport.queue_of(theirs) for transport in TRANSPORTS]
        assert shares == sorted(shares)
    assert [transport.launches_in_order for transport in TRANSPORTS] == [False, False, True]


def test_a_communicator_for_each_direction_of_passes_is_not_enough() -> None:
    """With two ranks and several chunks the next stage's rank is also the previous one's: 28 shapes."""
    for is_decoupled in (True, False):
        assert num_deadlocks(ONE_FOR_EACH_DIRECTION_OF_PASSES, is_decoupled=is_decoupled) == 28


def test_communicators_made_with_their_groups_deadlock() -> None:
    """Of a group bound to a device torch makes one communicator, whose requests to both neighbours are one queue."""
    assert num_deadlocks(ONE_FOR_EACH_GROUP, is_decoupled=True) > 0


def test_a_second_request_behind_one_under_way_blocks_a_single_launch_queue() -> None:
    """Two ranks, two receives each: the second is not launched before the first has come, nor the send behind it."""
    first, second = ([_message(sender=sender, batch=batch) for batch in range(2)] for sender in (1, 0))
    programs = [
        (
            *(Step(kind="post", subject=theirs) for theirs in received),
            *(Step(kind="send", subject=ours) for ours in sent),
            *(Step(kind="await_receive", subject=theirs) for theirs in received),
        )
        for received, sent in ((first, second), (second, first))
    ]
    assert find_deadlock(programs, NCCL) == []
    assert [line.partition(":")[0] for line in find_deadlock(programs, ONE_LAUNCH_QUEUE)] == [
        "rank 0, step 1 of 6",
        "rank 1, step 1 of 6",
    ]


def test_communicators_made_at_first_use_can_wait_for_one_another() -> None:
    """Why they are made before the first step: decoupled, ranks first need them for receives that come much later."""
    with pytest.raises(StartupError, match="ranks wait for one another"):
        count_operations(_first_uses(make_programs(PipelineShape(pp=4, virtual=1, num_batches=4), is_decoupled=True)))


def test_a_pipeline_that_could_deadlock_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the transport, and the first rank that is blocked."""
    monkeypatch.setattr(deadlock_check, "TRANSPORTS", (GLOO, ONE_COMMUNICATOR_A_PAIR))
    with pytest.raises(InputError) as error:
        proved_programs.__wrapped__(PipelineShape(pp=2, virtual=1, num_batches=1), is_decoupled=True)
    assert str(error.value).splitlines() == [
        "pipeline of pp 2, virtual 1, num_batches 1: deadlocks over one communicator a pair: rank 0, step 3 of 6: "
        "await_receive stage0.batch0.backward from rank 1 to rank 0",
        "  allowed: a schedule that every rank can finish",
        "  next: choose other degrees, or another overlap",
    ]


def test_messages_go_between_neighbours_and_around() -> None:
    """Three ranks: without chunks 0-1-2 and back; with two also from the last to the first."""
    line = {(0, 1), (1, 2), (2, 1), (1, 0)}
    for virtual, pairs in ((1, line), (2, line | {(2, 0), (0, 2)})):
        programs = make_programs(PipelineShape(pp=3, virtual=virtual, num_batches=3), is_decoupled=True)
        assert pairs_of(programs) == pairs


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
    assert len(find_deadlock(make_programs(shape, is_decoupled=True), GLOO)) == 4


def test_a_deadlock_is_found() -> None:
    """Two ranks that wait for each other's message before they send their own."""
    there, back = (_message(sender=sender, batch=0) for sender in range(2))
    programs = [
        (
            Step(kind="post", subject=theirs),
            Step(kind="await_receive", subject=theirs),
            Step(kind="send", subject=ours),
        )
        for ours, theirs in ((there, back), (back, there))
    ]
    blocked = find_deadlock(programs, GLOO)
    assert [line.partition(":")[0] for line in blocked] == ["rank 0, step 1 of 3", "rank 1, step 1 of 3"]


def test_a_send_that_is_waited_for_before_the_receive_is_posted_is_a_deadlock() -> None:
    """In the steady state both neighbours send, and each would post only when its own send is done."""
    shape = PipelineShape(pp=2, virtual=1, num_batches=4)
    programs = [_waiting_at_once(program) for program in make_programs(shape, is_decoupled=False)]
    assert len(find_deadlock(programs, GLOO)) == 2


def test_receives_in_another_order_than_the_sends_are_found() -> None:
    """With two ranks, activations and gradients of both chunks come from the same neighbour."""
    shape = PipelineShape(pp=2, virtual=2, num_batches=4)
    programs = make_programs(shape, is_decoupled=True)
    posts = [place for place, step in enumerate(programs[1]) if step.kind == "post"]
    steps = list(programs[1])
    first, second = steps[posts[0]], steps[posts[1]]
    steps[posts[0]], steps[posts[1]] = second, replace(first, kind="post")
    with pytest.raises(ValueError, match="rank 0 sends"):
        find_deadlock([programs[0], tuple(steps)], GLOO)


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


def _message(*, sender: int, batch: int) -> Message:
    taken_by = Pass(kind="forward", stage=1 - sender, batch=batch)
    return Message(sender=sender, receiver=1 - sender, taken_by=taken_by)


def _first_uses(programs: list[Program]) -> list[Steps[None]]:
    """Return what each rank's host waits for if a communicator is made by its two ranks at the first request."""

    def wait(rank: int, program: Program) -> Steps[None]:
        messages = [step.subject for step in program if step.kind in ("post", "send")]
        pairs = dict.fromkeys(
            (message.sender, message.receiver) for message in messages if isinstance(message, Message)
        )
        for pair in pairs:
            yield from rendezvous(ProcessGroup(name=f"{pair}", members=pair), rank)

    return [wait(rank, program) for rank, program in enumerate(programs)]
