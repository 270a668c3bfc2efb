"""Double binary tree: all-reduce in about 2 log2(n) steps, both halves of the buffer at once.

Each half of the buffer has a tree of its own: partial sums climb to the root, the whole sum comes down again. The trees
complement one another: a member that passes data on in one is a leaf of the other, so that over both every member sends
and receives as much. In the first tree a member's height is the number of trailing zero bits of its number, counted
from 1, as in a binary search tree; the second is its mirror where n is even, and the first moved by one where n is odd.

Source: Sanders, Speck and Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel
Computing 35 (2009); used by NCCL since 2.4.
"""

from collections.abc import Iterator

from fabrictune.collectives.alpha_beta import Cost
from fabrictune.collectives.schedule import GroupShape, Move, Schedule, from_moves

NO_PARENT = -1


def all_reduce(shape: GroupShape) -> Schedule:
    """Return both trees' messages: chunk 0 over the first tree, chunk 1 over the second."""
    n = shape.num_members
    messages = (message for chunk, parents in enumerate(trees(n)) for message in _up_and_down(parents, chunk))
    return from_moves(n, 2, messages)


def all_reduce_cost(shape: GroupShape) -> Cost:
    """Return the cost: half a buffer up and two halves down in one tree, half a buffer up as a leaf of the other."""
    n = shape.num_members
    return Cost(rounds=2 * (n.bit_length() - 1), buffers={1: 0.0, 2: 1.0, 3: 1.5}.get(n, 2.0))


def all_reduce_most_messages(num_members: int) -> int:
    """Return the messages of both trees: an edge each way for every member but the root."""
    return 4 * (num_members - 1)


def trees(num_members: int) -> tuple[list[int], list[int]]:
    """Return each member's parent in both trees, NO_PARENT for a root."""
    first = [_parent(member, num_members) for member in range(num_members)]
    if num_members % 2 == 0:
        mirrored = [first[num_members - 1 - member] for member in range(num_members)]
        second = [NO_PARENT if parent == NO_PARENT else num_members - 1 - parent for parent in mirrored]
    else:
        moved = [first[(member - 1) % num_members] for member in range(num_members)]
        second = [NO_PARENT if parent == NO_PARENT else (parent + 1) % num_members for parent in moved]
    return first, second


def _parent(member: int, num_members: int) -> int:
    """Return the parent in the binary search tree over 1 to n; where it would lie beyond n, its nearest ancestor."""
    key = member + 1
    height = key & -key
    while height <= num_members:
        key = (key ^ height) | height << 1
        height <<= 1
        if key <= num_members:
            return key - 1
    return NO_PARENT


def _up_and_down(parents: list[int], chunk: int) -> Iterator[Move]:
    depth = [_depth(parents, member) for member in range(len(parents))]
    deepest = max(depth)
    for member, parent in enumerate(parents):
        if parent != NO_PARENT:
            yield deepest - depth[member], member, parent, chunk, True
            yield deepest + depth[member] - 1, parent, member, chunk, False


def _depth(parents: list[int], member: int) -> int:
    depth = 0
    while (member := parents[member]) != NO_PARENT:
        depth += 1
    return depth
