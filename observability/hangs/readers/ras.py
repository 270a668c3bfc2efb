"""RAS's answer as evidence: collectives launched by each rank of a communicator, and ranks that did not answer."""

from collections.abc import Iterator
from pathlib import Path

from fabrictune.collectives.nccl.ras_checks import IN_PROGRESS, SUCCESS
from fabrictune.collectives.nccl.ras_json import RasCommunicator, RasMissingRank, RasRank, read_ras
from fabrictune.foundation.foreign_files import read_head
from fabrictune.observability.hangs.evidence import Evidence, Group, Progress, Sign, SignKind, Who

SOURCE = "NCCL RAS"
_HEAD_BYTES = 2**12


def is_ras(path: Path) -> bool:
    """Return whether a file begins as RAS's answer."""
    head = read_head(path, _HEAD_BYTES)
    return b'"communicators"' in head and head.lstrip().startswith(b"{")


def read_ras_evidence(path: Path) -> Evidence:
    """Return what an answer says; raises InputError."""
    status = read_ras(path)
    return Evidence(
        source=SOURCE,
        groups=tuple(_group(communicator) for communicator in status.communicators),
        progress=tuple(
            _progress(communicator, rank, path) for communicator in status.communicators for rank in communicator.ranks
        ),
        signs=tuple(sign for communicator in status.communicators for sign in _signs(communicator, path)),
    )


def _group(communicator: RasCommunicator) -> Group:
    members = {rank.rank: _who(rank) for rank in communicator.ranks}
    members |= {rank.rank: _who(rank) for rank in communicator.missing}
    return Group(name=communicator.name, communicator=communicator.name, size=communicator.num_ranks, members=members)


def _who(rank: RasRank | RasMissingRank) -> Who:
    return Who(host=rank.host, pid=rank.pid, gpu=rank.gpu)


def _progress(communicator: RasCommunicator, rank: RasRank, path: Path) -> Progress:
    return Progress(
        who=_who(rank),
        group=communicator.name,
        where=f"{path}: communicator {communicator.name}, rank {rank.rank}",
        issued=sum(rank.counts),
        counts=dict(zip(communicator.operations, rank.counts, strict=True)),
    )


def _signs(communicator: RasCommunicator, path: Path) -> Iterator[Sign]:
    where = f"{path}: communicator {communicator.name}"
    for missing in communicator.missing:
        kind = SignKind.GONE if missing.is_dead else SignKind.SILENT
        text = "considered dead by RAS" if missing.is_dead else "did not answer RAS"
        yield Sign(who=_who(missing), kind=kind, text=text, where=f"{where}, missing rank {missing.rank}")
    for rank in communicator.ranks:
        if rank.async_error not in (SUCCESS, IN_PROGRESS):
            text = f"asynchronous error {rank.async_error} (ncclResult_t)"
            yield Sign(who=_who(rank), kind=SignKind.FAILED, text=text, where=f"{where}, rank {rank.rank}")
