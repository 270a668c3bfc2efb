"""Evidence from files and folders of mixed formats: each file is recognised, read, or counted as not read.

A log may hold messages of NCCL and lines of PyTorch's watchdog; both are read. A file that is damaged is named with its
mistake, and the others still count.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabrictune.collectives.nccl.log import NcclLog
from fabrictune.foundation.errors import FabrictuneError, InputError, Mistake
from fabrictune.observability.hangs.evidence import Evidence
from fabrictune.observability.hangs.readers.flight_recorder import is_flight_recorder, read_dump_evidence
from fabrictune.observability.hangs.readers.inspector import is_inspector, read_inspector_evidence
from fabrictune.observability.hangs.readers.listings import listing_evidence
from fabrictune.observability.hangs.readers.nccl_log import is_nccl_log, read_log_evidence
from fabrictune.observability.hangs.readers.ras import is_ras, read_ras_evidence
from fabrictune.observability.hangs.readers.stack_files import is_stack_file, read_stack_evidence
from fabrictune.observability.hangs.readers.watchdog import read_watchdog_evidence
from fabrictune.rdma_bench.resources import ListedQueuePair, is_listing, read_listing

MAX_FILES = 100_000
MAX_NAMED = 5  # files that are not read, by name
FORMATS = (
    "RAS (`ncclras -f json`), NCCL Inspector, PyTorch's flight recorder, logs with NCCL_DEBUG=INFO or of the watchdog, "
    "stacks of `py-spy dump` or faulthandler, `rdma -j resource show qp`"
)

# How each format is recognised and read, file by file, in this order; logs come last, and together.
READERS: Sequence[tuple[Callable[[Path], bool], Callable[[Path, Path], Evidence]]] = (
    (is_ras, lambda path, root: read_ras_evidence(path)),
    (is_flight_recorder, lambda path, root: read_dump_evidence(path)),
    (is_inspector, lambda path, root: read_inspector_evidence(path)),
    (is_stack_file, read_stack_evidence),
)


@dataclass(frozen=True, kw_only=True)
class Found:
    """What was read of a job, and what was not."""

    evidence: tuple[Evidence, ...]
    log: NcclLog | None  # of all files with messages of NCCL
    queue_pairs: tuple[ListedQueuePair, ...] = ()  # of all listings
    num_files: int
    notes: tuple[str, ...]


def read_evidence(paths: Sequence[Path]) -> Found:
    """Read files and folders; raises InputError where nothing is evidence of a job."""
    evidence: list[Evidence] = []
    logs: list[Path] = []
    listed: list[ListedQueuePair] = []
    unknown: list[str] = []
    damaged: list[str] = []
    files = list(_files(paths))
    for path, root in files:
        try:
            found = list(_read(path, root, logs, listed))
        except FabrictuneError as error:
            damaged.append(str(error.mistakes[0]))
            continue
        evidence += found
        if not found and path not in logs:
            unknown.append(str(path))
    log = None
    if logs:
        try:
            found_of_log, log = read_log_evidence(logs)
            evidence.append(found_of_log)
        except FabrictuneError as error:
            damaged.append(str(error.mistakes[0]))
    notes = [*_named("files of no format that is known here", unknown), *_named("files that cannot be read", damaged)]
    if not evidence:
        where = ", ".join(map(str, paths))
        raise InputError(
            Mistake(
                where=where[:500],
                found="; ".join(["no evidence of a job", *notes])[:1000],
                allowed=FORMATS,
                next_step="give the folder of one job's dumps and logs",
            )
        )
    return Found(evidence=tuple(evidence), log=log, queue_pairs=tuple(listed), num_files=len(files), notes=tuple(notes))


def _read(path: Path, root: Path, logs: list[Path], listed: list[ListedQueuePair]) -> Iterator[Evidence]:
    """Yield what a file says; a log of NCCL is added to `logs`, the queue pairs of a listing to `listed`."""
    if is_listing(path):
        queue_pairs = read_listing(path)
        listed += queue_pairs
        yield listing_evidence(queue_pairs)
        return
    for recognises, reader in READERS:
        if recognises(path):
            yield reader(path, root)
            return
    if is_nccl_log(path):
        logs.append(path)
    found = read_watchdog_evidence(path)
    if found is not None:
        yield found


def _files(paths: Sequence[Path]) -> Iterator[tuple[Path, Path]]:
    """Yield all regular files, each with the folder that was given for it; raises InputError."""
    number = 0
    for given in paths:
        if not given.exists():
            raise InputError(Mistake(where=str(given), found="no such file or folder", next_step="check the path"))
        found = sorted(given.rglob("*")) if given.is_dir() else [given]
        for path in found:
            if path.is_file():
                number += 1
                if number > MAX_FILES:
                    found_text, allowed = f"more than {MAX_FILES:,} files", f"at most {MAX_FILES:,}"
                    raise InputError(Mistake(where=str(given), found=found_text, allowed=allowed))
                yield path, given if given.is_dir() else given.parent


def _named(what: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        more = f", and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else ""
        yield f"{what}: {len(names):,} ({'; '.join(names[:MAX_NAMED])}{more})"
