"""State of a running job by NCCL's RAS: communicators, their ranks, and how far each rank has come.

`ncclras -f json`, or `SET FORMAT json` on its port, since NCCL 2.28.7. The answer is a dump of what RAS collected; the
checks of it are in `ras_checks`.

Source: NVIDIA/nccl v2.28.7 to v2.30.7, src/ras/client_support.cc (jsonWrite...), docs troubleshooting/ras.rst.
Left out: the events of the monitoring mode; CUDA's versions.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.foreign_files import open_foreign, read_head
from fabrictune.foundation.json_streams import BROKEN, stream_json

MAX_FILE_BYTES = 2**30
MAX_RANKS = 4_000_000  # of all communicators
_HEAD_BYTES = 2**16
_VERSION = re.compile(rb'"nccl_version"\s{0,9}:\s{0,9}"([\w.+-]{1,40})"')
_TIME = re.compile(rb'"timestamp"\s{0,9}:\s{0,9}"([\d :.-]{1,40})"')
_LISTS = frozenset({"communicators"})


@dataclass(frozen=True, kw_only=True, slots=True)
class RasRank:
    """A rank that answered."""

    rank: int
    host: str
    pid: int
    gpu: int  # NVML's number, which is the same for all processes of a host
    init_state: int  # ncclResult_t
    async_error: int
    is_finalizing: bool
    is_aborted: bool
    counts: tuple[int, ...]  # of collectives launched, in the order of the communicator's operations


@dataclass(frozen=True, kw_only=True, slots=True)
class RasMissingRank:
    """A rank that did not answer."""

    rank: int
    host: str
    pid: int
    gpu: int
    is_unresponsive: bool
    is_dead: bool


@dataclass(frozen=True, kw_only=True)
class RasCommunicator:
    """A communicator."""

    name: str  # its hash, as NCCL's log has it after commId
    num_ranks: int
    operations: tuple[str, ...]
    ranks: tuple[RasRank, ...]
    missing: tuple[RasMissingRank, ...]


@dataclass(frozen=True, kw_only=True)
class RasStatus:
    """RAS's answer."""

    version: str  # of NCCL; "" where it is not said
    time: str
    communicators: tuple[RasCommunicator, ...]


def read_ras(path: Path) -> RasStatus:
    """Read the answer; raises InputError for what is none, or is damaged."""
    head = read_head(path, _HEAD_BYTES)
    communicators, num_ranks = list[RasCommunicator](), 0
    with open_foreign(path, max_bytes=MAX_FILE_BYTES) as file:
        try:
            for _, value in stream_json(file, path, _LISTS, error=InputError):
                communicators.append(_communicator(value, f"{path}: communicator {len(communicators)}"))
                num_ranks += len(communicators[-1].ranks)
                if num_ranks > MAX_RANKS:
                    raise InputError(Mistake(where=str(path), found=f"more than {MAX_RANKS:,} ranks"))
        except BROKEN as error:
            found, next_step = f"no JSON: {str(error)[:200]}", "save the whole output of `ncclras -f json`"
            raise InputError(Mistake(where=str(path), found=found, next_step=next_step)) from None
    if not communicators:
        allowed, next_step = "`communicators` with their ranks", "save the output of `ncclras -f json` (NCCL 2.28.7 on)"
        raise InputError(Mistake(where=str(path), found="no communicator", allowed=allowed, next_step=next_step))
    version, time = _VERSION.search(head), _TIME.search(head)
    return RasStatus(
        version=version[1].decode() if version else "",
        time=time[1].decode() if time else "",
        communicators=tuple(communicators),
    )


def _communicator(value: Any, where: str) -> RasCommunicator:
    """Return one entry of `communicators`; raises InputError that names what is missing in it."""
    try:
        ranks = _list(value["ranks"])
        operations = tuple(dict.fromkeys(name[:40] for rank in ranks for name in rank["collective_counts"]))
        return RasCommunicator(
            name=str(value["hash"])[:40],
            num_ranks=_whole(value["size"]),
            operations=operations,
            ranks=tuple(_rank(rank, operations) for rank in ranks),
            missing=tuple(_missing(rank) for rank in _list(value.get("missing_ranks", []))),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        found = f"an entry without what RAS writes ({type(error).__name__}: {str(error)[:80]})"
        allowed = "hash, size, ranks with status and collective_counts, missing_ranks"
        raise InputError(Mistake(where=where, found=found, allowed=allowed)) from None


def _rank(value: Mapping[str, Any], operations: Sequence[str]) -> RasRank:
    status, counts = value["status"], value["collective_counts"]
    return RasRank(
        rank=_whole(value["rank"]),
        host=str(value["host"])[:255],
        pid=_whole(value["pid"]),
        gpu=_whole(value["nvml_dev"]),
        init_state=_whole(status["init_state"]),
        async_error=_whole(status["async_error"]),
        is_finalizing=bool(status["finalize_called"]) or bool(status["destroy_flag"]),
        is_aborted=bool(status["abort_flag"]),
        counts=tuple(_whole(counts.get(name, 0)) for name in operations),
    )


def _missing(value: Mapping[str, Any]) -> RasMissingRank:
    status = value["status"]
    return RasMissingRank(
        rank=_whole(value["rank"]),
        host=str(value["host"])[:255],
        pid=_whole(value["pid"]),
        gpu=_whole(value["nvml_dev"]),
        is_unresponsive=bool(status["unresponsive"]),
        is_dead=bool(status["considered_dead"]),
    )


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError("not a list")
    return value


def _whole(value: Any) -> int:
    """Return a whole number of 64 bits; raises ValueError for anything else."""
    if type(value) is not int or not -(2**63) <= value < 2**64:
        raise ValueError("not a whole number of 64 bits")
    return value
