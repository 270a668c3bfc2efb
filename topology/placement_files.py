"""Placement files: the host of every rank, as planners, schedulers and MPI write it.

Four forms are told apart by their first line of content:

- CSV with the columns `rank` and `host`, and where they are there `gpu`, `nic` (`host:port`) and `job`: what
  `fabrictune ecmp plan` writes. Rows of other jobs are left out.
- A host file, a host for each rank in order: Slurm's `SLURM_HOSTFILE` for `--distribution=arbitrary`, PBS's node file.
  Slurm's lists and repeats (`gpu[07-12]*8`) count as that many.
- An MPI host file: `node3 slots=8` (Open MPI) or `node3:8` (MPICH). Ranks fill a host's slots, then the next host's.
  Without slots, where each host stands once and they are fewer than the ranks, a host's slots are its GPUs.
- An MPI rank file (Open MPI): `rank 3=node1 slot=0`. Slots are CPU cores, and say nothing of GPUs.

A rank without a GPU of its own in the file takes the next of its host, in the order of the ranks.

Source: Slurm, `man srun`; MPICH, "Using the Hydra Process Manager"; Open MPI 4.1, `man mpirun`.
Left out: relative host names (`+n0`) and `max_slots`, which is read over.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fabrictune.foundation.documents import read_text
from fabrictune.foundation.errors import InputError, Mistake, nearest_name, quote
from fabrictune.topology.host_choice import MAX_GUESSES
from fabrictune.topology.host_lists import LIST_MARKS, expand_hosts, split_list

MAX_PLACEMENT_BYTES = 16 * 2**20
MAX_MISTAKES = 20
UNSET = -1
COLUMNS: Mapping[str, tuple[str, ...]] = {  # and what others call them
    "rank": ("rank", "global_rank"),
    "host": ("host", "hostname", "node"),
    "gpu": ("gpu", "local_rank", "device"),
    "nic": ("nic",),
    "job": ("job",),
}

_RANK = re.compile(r"rank\s+(\d{1,9})\s*=\s*(\S+)(?:\s+slots?\s*=\s*(\S+))?", re.IGNORECASE)
_HOST = re.compile(r"(\S+?)(?::(\d{1,6}))?((?:\s+[\w-]+\s*=\s*\S+)*)")
_SETTING = re.compile(r"([\w-]+)\s*=\s*(\S+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class RankPlace:
    """The place of a rank as a file has it."""

    rank: int
    host: str
    line: int
    gpu: int = UNSET
    nic: str = ""  # host:port


@dataclass(frozen=True, kw_only=True)
class PlacementFile:
    """What a placement file says of one job."""

    path: Path
    places: Sequence[RankPlace]
    notes: tuple[str, ...] = ()


def parse_placement(path: Path, num_ranks: int, *, gpus_per_host: int, job: str = "") -> PlacementFile:
    """Return the places in a file, of which no host is looked up; raises InputError."""
    lines = _Lines(path)
    if not lines.rows:
        raise InputError(Mistake(where=str(path), found="no line with a host", allowed=FORMS))
    _, first = lines.rows[0]
    names = [cell.strip().lower() for cell in first.split(",")]
    if _is_known("rank", names) and _is_known("host", names):
        return _parse_csv(lines, names, job)
    if _RANK.fullmatch(first):
        return _parse_rank_file(lines)
    return _parse_host_file(lines, num_ranks, gpus_per_host)


FORMS = "CSV with rank and host, a host a line for each rank, `host slots=8`, `host:8`, `rank 0=host slot=0`"


class _Lines:
    """The lines of a file that are no comments, with their numbers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        text = read_text(path, max_bytes=MAX_PLACEMENT_BYTES)
        lines = ((number, line.partition("#")[0].strip()) for number, line in enumerate(text.splitlines(), start=1))
        self.rows = [(number, line) for number, line in lines if line]

    def where(self, number: int) -> str:
        return f"{self.path}:{number}"

    def collect(self, parse: Callable[[int, str], Iterator[RankPlace]], skip: int = 0) -> list[RankPlace]:
        """Return what `parse` makes of every line; raises InputError with the mistakes of up to MAX_MISTAKES lines."""
        places: list[RankPlace] = []
        mistakes: list[Mistake] = []
        for number, line in self.rows[skip:]:
            try:
                places += parse(number, line)
            except InputError as error:
                mistakes += error.mistakes
                if len(mistakes) >= MAX_MISTAKES:
                    break
        if mistakes:
            raise InputError(*mistakes)
        return places


def _is_known(column: str, names: Sequence[str]) -> bool:
    return any(name in COLUMNS[column] for name in names)


def _parse_csv(lines: _Lines, names: Sequence[str], job: str) -> PlacementFile:
    """Return the rows of a job, of a file without the column `job` all."""
    index = {column: [at for at, name in enumerate(names) if name in known] for column, known in COLUMNS.items()}
    if twice := [column for column, places in index.items() if len(places) > 1]:
        found = f"two columns that are the {twice[0]}"
        raise InputError(Mistake(where=lines.where(lines.rows[0][0]), found=found, allowed="one of each"))
    at = {column: places[0] for column, places in index.items() if places}
    jobs: dict[str, int] = {}

    def parse(number: int, line: str) -> Iterator[RankPlace]:
        cells = [cell.strip().strip('"') for cell in line.split(",")]
        if len(cells) != len(names):
            raise _mistake(lines, number, f"{len(cells)} columns", f"{len(names)}, as in the first line")
        if "job" in at:
            jobs[cells[at["job"]]] = jobs.get(cells[at["job"]], 0) + 1
            if cells[at["job"]] != job:
                return
        yield RankPlace(
            rank=_number(lines, number, "rank", cells[at["rank"]]),
            host=cells[at["host"]],
            gpu=_number(lines, number, "gpu", cells[at["gpu"]]) if "gpu" in at and cells[at["gpu"]] else UNSET,
            nic=cells[at["nic"]] if "nic" in at else "",
            line=number,
        )

    places = lines.collect(parse, skip=1)
    if jobs and not places:
        names_of_jobs = ", ".join(list(jobs)[:MAX_MISTAKES])
        raise InputError(
            Mistake(
                where=str(lines.path),
                found=f"no row of the job {job!r}",
                allowed=names_of_jobs,
                nearest=nearest_name(job, list(jobs)[:MAX_GUESSES]),
                next_step="the name of the part is that of the job",
            )
        )
    unknown = [name for name in names if not any(name in known for known in COLUMNS.values())]
    notes = (f"{lines.path}: columns that are not used: {', '.join(unknown[:MAX_MISTAKES])}",) if unknown else ()
    return PlacementFile(path=lines.path, places=places, notes=notes)


def _parse_rank_file(lines: _Lines) -> PlacementFile:
    def parse(number: int, line: str) -> Iterator[RankPlace]:
        match = _RANK.fullmatch(line)
        if not match:
            raise _mistake(lines, number, quote(line), "rank N=HOST slot=SLOTS")
        yield RankPlace(rank=int(match[1]), host=match[2], line=number)

    places = lines.collect(parse)
    note = f"{lines.path}: slots are CPU cores; the ranks of a host take its GPUs in their order: {len(places)} ranks"
    return PlacementFile(path=lines.path, places=places, notes=(note,))


def _parse_host_file(lines: _Lines, num_ranks: int, gpus_per_host: int) -> PlacementFile:
    """Return a place for each rank: those of a line, of its slots, or of the GPUs of a host that stands once."""
    has_slots, num_places = False, 0

    def parse(number: int, line: str) -> Iterator[RankPlace]:
        nonlocal has_slots, num_places
        for host, slots in _hosts_of_line(lines, number, line, num_ranks):
            has_slots = has_slots or slots != UNSET
            count = 1 if slots == UNSET else min(slots, max(1, num_ranks - num_places))  # no more than can be used
            num_places += count
            yield from [RankPlace(rank=0, host=host, line=number)] * count

    places = lines.collect(parse)
    notes: tuple[str, ...] = ()
    if not has_slots and len(places) < num_ranks and len({place.host for place in places}) == len(places):
        places = [place for place in places for _ in range(min(gpus_per_host, num_ranks))]
        notes = (f"{lines.path}: fewer hosts than ranks; each host has a rank for each of its {gpus_per_host} GPUs",)
    if len(places) > num_ranks and (has_slots or notes):
        idle = len({place.host for place in places} - {place.host for place in places[:num_ranks]})
        notes = (*notes, f"{lines.path}: more slots than ranks; hosts without a rank: {idle}")
        places = places[:num_ranks]
    if len(places) != num_ranks:
        raise InputError(
            Mistake(
                where=str(lines.path),
                found=f"{len(places):,} {'slots' if has_slots else 'hosts'} for {num_ranks:,} ranks",
                allowed="a host a line for each rank, or `host slots=8`",
                next_step="correct the file, or the degrees of the layout",
            )
        )
    ranked = [replace(place, rank=rank) for rank, place in enumerate(places)]
    return PlacementFile(path=lines.path, places=ranked, notes=notes)


def _hosts_of_line(lines: _Lines, number: int, line: str, num_ranks: int) -> Iterator[tuple[str, int]]:
    """Yield each host of a line with its slots, UNSET where none are said."""
    match = _HOST.fullmatch(line)
    if not match:
        raise _mistake(lines, number, quote(line), FORMS)
    settings = {name.lower().replace("-", "_"): value for name, value in _SETTING.findall(match[3])}
    if unknown := [name for name in settings if name not in ("slots", "max_slots")]:
        raise _mistake(lines, number, f"unknown setting {quote(unknown[0])}", "slots, max_slots")
    slots = settings.get("slots", match[2])
    count = UNSET if slots is None else _number(lines, number, "slots", slots)
    if LIST_MARKS.isdisjoint(match[1]):
        yield match[1], count
        return
    for entry in split_list(match[1]):
        for host in expand_hosts(entry, where=lines.where(number), max_hosts=num_ranks):
            yield host, count


def _number(lines: _Lines, number: int, what: str, text: str) -> int:
    if not (text.isdecimal() and len(text) < 10):
        raise _mistake(lines, number, f"{what} {quote(text)}", "a whole number")
    return int(text)


def _mistake(lines: _Lines, number: int, found: str, allowed: str) -> InputError:
    return InputError(Mistake(where=lines.where(number), found=found, allowed=allowed))
