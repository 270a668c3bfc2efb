"""Programs of a job of any layout: forward and backward passes of a few micro-batches, then the gradients' sum.

Shorter than what the trainer asks for, with its groups, its directions and its overlap: the gathering of weights is
issued before the passes and awaited in them.
"""

from collections.abc import Mapping
from random import Random

from benchmarks.studies.hangs.halts import Await, Issue, Key, Program
from fabrictune.foundation.layout import Axis, ParallelLayout
from fabrictune.foundation.traces import Operation

NUM_BATCHES = 2
NUM_LAYERS = 2


def make_programs(layout: ParallelLayout, *, num_steps: int, seed: int) -> Mapping[int, Program]:
    """Return the programs of all ranks."""
    sizes = Random(seed)
    num_bytes = {axis: 2 ** sizes.randint(10, 24) for axis in (*layout.axes, "message")}
    groups: dict[tuple[Axis, int], tuple[int, ...]] = {}
    for axis in layout.axes:
        for ranks in layout.groups(axis).tolist():
            groups.update({(axis, rank): tuple(ranks) for rank in ranks})
    return {rank: _program(rank, layout, groups, num_bytes, num_steps=num_steps) for rank in range(layout.world_size)}


def _program(
    rank: int,
    layout: ParallelLayout,
    groups: Mapping[tuple[Axis, int], tuple[int, ...]],
    num_bytes: Mapping[str, int],
    *,
    num_steps: int,
) -> Program:
    program: list[Issue | Await] = []

    def issue(axis: Axis, operation: Operation, tag: str, key: Key | None = None) -> int:
        own = groups[axis, rank]
        if key is None and len(own) < 2:
            return -1
        size = num_bytes["message" if key else axis]
        program.append(Issue(key=key or (axis, own), operation=operation, num_bytes=size, tag=f"{axis}.{tag}"))
        return len(program) - 1

    def wait(*actions: int) -> None:
        program.extend(Await(action) for action in actions if action >= 0)

    def layers(tag: str) -> None:
        for _ in range(NUM_LAYERS):
            wait(issue("tp", Operation.ALL_GATHER, tag))
            if "ep" in layout.axes:
                wait(issue("ep", Operation.ALL_TO_ALL, f"{tag}.experts"))
            wait(issue("tp", Operation.REDUCE_SCATTER, tag))

    stages = groups["pp", rank] if "pp" in layout.axes else (rank,)
    place = stages.index(rank)
    before = stages[place - 1] if place else None
    after = stages[place + 1] if place + 1 < len(stages) else None
    for _ in range(num_steps):
        gathered = issue("dp", Operation.ALL_GATHER, "weights")
        sent: list[int] = []
        for _ in range(NUM_BATCHES):
            if before is not None:
                wait(issue("pp", Operation.RECEIVE, "activation", ("pp>", (before, rank))))
            wait(gathered)
            layers("forward")
            if after is not None:
                sent.append(issue("pp", Operation.SEND, "activation", ("pp>", (rank, after))))
        for _ in range(NUM_BATCHES):
            if after is not None:
                wait(issue("pp", Operation.RECEIVE, "gradient", ("pp>", (after, rank))))
            layers("backward")
            if before is not None:
                sent.append(issue("pp", Operation.SEND, "gradient", ("pp>", (rank, before))))
        wait(*sent)
        wait(issue("dp", Operation.REDUCE_SCATTER, "gradients"))
    return program
