"""In-memory run of every rank's start-up protocol: its store operations, and proof that it ends.

The closed form of the ordered protocol is here too; a test compares the two.
"""

from collections import Counter, deque
from collections.abc import Iterable

from fabrictune.collectives.startup.groups import GroupPlan, ProcessGroup
from fabrictune.collectives.startup.rendezvous import Tree
from fabrictune.collectives.startup.store_operations import (
    Add,
    CheckKey,
    CompareSet,
    Get,
    Pause,
    Set,
    Steps,
    StoreOperation,
    Wait,
)
from fabrictune.foundation.errors import Mistake, StartupError

OperationCount = Counter[str]  # by name of the operation, "Set", "Wait", ...; and "awaited keys", of all waits


def count_operations(protocols: Iterable[Steps[None]]) -> OperationCount:
    """Run protocols together until all have ended; raises StartupError if they wait for one another."""
    held: dict[str, str] = {}
    count: OperationCount = Counter()
    ready = deque((protocol, next(protocol, None)) for protocol in protocols)
    num_idle = 0  # how many in a row could not go on
    while ready:
        protocol, operation = ready.popleft()
        if operation is None:
            continue
        if isinstance(operation, Get | Wait) and not all(key in held for key in _awaited(operation)):
            ready.append((protocol, operation))
            num_idle += 1
            if num_idle == len(ready):
                raise StartupError(Mistake(where="start-up", found=f"{len(ready)} ranks wait for one another"))
            continue
        num_idle = 0
        count[type(operation).__name__] += 1
        if isinstance(operation, Wait):
            count["awaited keys"] += len(operation.keys)
        reply = _carry_out(operation, held)
        try:
            ready.append((protocol, protocol.send(reply)))
        except StopIteration:
            continue
    return count


def num_operations(count: OperationCount) -> int:
    """Return the number of operations in a count."""
    return count.total() - count["awaited keys"] - count["Pause"]


def ordered_operations(plan: GroupPlan) -> OperationCount:
    """Return what the ordered start of a job asks of its store, in closed form.

    A group of m members whose tree has i inner places takes m signs of presence, i - 1 words up and i words down, and
    i waits for those below and m - 1 for the word from above: 2m + 3i - 2 operations, 2m + 1 where the tree is flat.
    """
    count: OperationCount = Counter({"CompareSet": plan.world_size})
    for group in (*plan.groups, plan.everyone):
        count += _rendezvous_operations(group)
    return count


def _rendezvous_operations(group: ProcessGroup) -> OperationCount:
    num_members, num_inner = len(group.members), Tree(group).num_inner
    if num_members == 1:
        return Counter({"Set": 1})
    return Counter(
        {
            "Set": num_members + 2 * num_inner - 1,
            "Wait": num_inner + num_members - 1,
            "awaited keys": 2 * (num_members - 1),
        }
    )


def _awaited(operation: Get | Wait) -> tuple[str, ...]:
    return (operation.key,) if isinstance(operation, Get) else operation.keys


def _carry_out(operation: StoreOperation, held: dict[str, str]) -> str | int | bool | None:
    match operation:
        case Set(key, value):
            held[key] = value
        case CompareSet(key, expected, desired):
            if held.get(key, "") == expected:
                held[key] = desired
            return held.get(key, expected)
        case Add(key, amount):
            held[key] = str(int(held.get(key, "0")) + amount)
            return int(held[key])
        case Get(key):
            return held[key]
        case CheckKey(key):
            return key in held
        case Wait() | Pause():
            pass
    return None
