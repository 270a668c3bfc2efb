"""Consensus of ranks before they begin: each makes a statement, rank 0 judges all of them, and all learn the verdict.

Needs a store and nothing else, so ranks may disagree even on which groups they will make.
"""

from collections.abc import Callable, Sequence

from fabrictune.collectives.startup.groups import ProcessGroup
from fabrictune.collectives.startup.rendezvous import rendezvous
from fabrictune.collectives.startup.store_operations import Get, Set, Steps, Wait

Judge = Callable[[Sequence[str]], str]  # statements by rank -> verdict


def agree(num_ranks: int, rank: int, statement: str, judge: Judge) -> Steps[str]:
    """Return the verdict, on every rank the same; raises StartupError, naming ranks that did not arrive in time.

    Rank 0 returns when all others have the verdict: it may serve the store, which then ends with it.
    """
    group = ProcessGroup(name="agreement", members=tuple(range(num_ranks)))
    yield Set(_key(rank, "statement"), statement)
    yield from rendezvous(group, rank)
    if rank == 0:
        statements = []
        for member in group.members:
            statement_of_member = yield Get(_key(member, "statement"))
            statements.append(statement_of_member)
        yield Set(_VERDICT, judge(statements))
    verdict: str = yield Get(_VERDICT)
    yield Set(_key(rank, "informed"), "1")
    if rank == 0:
        yield Wait(tuple(_key(member, "informed") for member in group.members))
    return verdict


_VERDICT = "agreement/verdict"


def _key(rank: int, what: str) -> str:
    return f"agreement/{rank}/{what}"
