"""One job out of the evidence of several sources: its processes, its groups, and a table of each source's numbers."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fabrictune.foundation.wording import some
from fabrictune.observability.hangs.evidence import UNKNOWN, Evidence, Group, Progress, Sign, SignKind, Timing, Who
from fabrictune.observability.hangs.processes import Processes

_NO_ANSWER = (SignKind.GONE, SignKind.STOPPED, SignKind.SILENT)


@dataclass(frozen=True, kw_only=True)
class JobGroup:
    """A group of the job, whichever sources name it."""

    names: tuple[str, ...]  # `NCCL RAS: 0x12`
    label: str
    communicator: str
    members: Mapping[int, int]  # processes by place, those that are named
    size: int

    def __str__(self) -> str:
        """The group for people: `tp (communicator 0x12)`."""
        name = self.names[0].partition(": ")[2]
        what = f"communicator {self.communicator}" if self.communicator else f"group {name}"
        return f"{self.label} ({what})" if self.label and self.label != name else what


@dataclass(frozen=True, kw_only=True)
class Table:
    """How far the members of a group have come, by one source."""

    source: str
    group: int
    rows: Mapping[int, Progress]  # by process
    knows_waits: bool
    tells_all: bool


@dataclass(frozen=True, kw_only=True)
class GroupTiming:
    """How long a request of a group took on a process, by a source; UNKNOWN for the process of all members together."""

    source: str
    group: int
    process: int
    timing: Timing


@dataclass(frozen=True, kw_only=True)
class Job:
    """What all sources say of one job."""

    processes: tuple[Who, ...]
    groups: tuple[JobGroup, ...]
    tables: tuple[Table, ...]
    signs: Mapping[int, tuple[Sign, ...]]  # by process
    timings: tuple[GroupTiming, ...]
    steps_us: tuple[float, ...]
    sources: Mapping[str, int]  # number of files
    disagreements: tuple[str, ...]
    notes: tuple[str, ...]

    def has(self, process: int, *kinds: SignKind) -> Sign | None:
        """Return the first sign of a process that is of one of the kinds."""
        return next((sign for sign in self.signs.get(process, ()) if sign.kind in kinds), None)

    def sources_without(self, process: int) -> tuple[str, ...]:
        """Return the sources that number requests of other processes, and say nothing of this one."""
        seen: dict[str, bool] = {}
        for table in self.tables:
            seen[table.source] = seen.get(table.source, False) or process in table.rows
        return tuple(source for source, has_it in seen.items() if not has_it)


def join_evidence(evidence: Iterable[Evidence]) -> Job:
    """Return the job that all evidence is about."""
    sources = merge_sources(evidence)
    processes = Processes(sources)
    groups = _Groups()
    tables: list[Table] = []
    timings: list[GroupTiming] = []
    signs: defaultdict[int, list[Sign]] = defaultdict(list)
    num_nameless = 0
    for source in sources:
        number_of = groups.add(source, processes)
        rows: defaultdict[int, dict[int, Progress]] = defaultdict(dict)
        for row in source.progress:
            process = processes.find(row.who)
            if process == UNKNOWN or row.group not in number_of:
                num_nameless += 1
                continue
            rows[number_of[row.group]][process] = row
        tables += [
            Table(source=source.source, group=group, rows=found, knows_waits=source.knows_waits,
                  tells_all=source.tells_all)
            for group, found in rows.items()
        ]  # fmt: skip
        timings += [
            GroupTiming(source=source.source, group=number_of[one.group], process=processes.find(one.who), timing=one)
            for one in source.timings
            if one.group in number_of
        ]
        for sign in source.signs:
            process = processes.find(sign.who)
            if process == UNKNOWN:
                num_nameless += 1
            else:
                signs[process].append(sign)
    notes = [*(note for source in sources for note in source.notes), *processes.notes]
    num_unranked = sum(who.rank == UNKNOWN for who in processes.whos())
    if 0 < num_unranked < len(processes.whos()):
        notes.append(f"processes whose rank no source says, counted apart from ranks: {num_unranked:,}")
    notes += _not_collected(tables, signs, processes.whos())
    if num_nameless:
        notes.append(f"statements about processes that no source names, left out: {num_nameless:,}")
    return Job(
        processes=processes.whos(),
        groups=groups.joined(),
        tables=tuple(tables),
        signs={process: tuple(found) for process, found in signs.items()},
        timings=tuple(timings),
        steps_us=tuple(step for source in sources for step in source.steps_us),
        sources=Counter({source.source: source.num_files for source in sources}),
        disagreements=tuple(processes.disagreements),
        notes=tuple(dict.fromkeys(notes)),
    )


def _not_collected(tables: Sequence[Table], signs: Mapping[int, Sequence[Sign]], whos: Sequence[Who]) -> Iterator[str]:
    """Yield a note for each source of requests that lacks some processes, those aside that are known not to answer."""
    away = {process for process, found in signs.items() if any(sign.kind in _NO_ANSWER for sign in found)}
    covered: defaultdict[str, set[int]] = defaultdict(set)
    for table in tables:
        covered[table.source].update(table.rows)
    for source, has in covered.items():
        lacking = [str(who) for process, who in enumerate(whos) if process not in has | away]
        if lacking:
            yield f"{source} has nothing of {len(lacking):,} of {len(whos):,} processes, not collected: {some(lacking)}"


def merge_sources(evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Return one evidence for each source: of two statements on one process and group the one that has come further."""
    by_source: dict[str, list[Evidence]] = {}
    for one in evidence:
        by_source.setdefault(one.source, []).append(one)
    return tuple(_merge(parts) for parts in by_source.values())


def _merge(parts: Sequence[Evidence]) -> Evidence:
    if len(parts) == 1:
        return parts[0]
    groups: dict[str, Group] = {}
    for part in parts:
        for group in part.groups:
            known = groups.get(group.name)
            groups[group.name] = group if known is None else _union(known, group)
    rows: dict[tuple[str, Who], Progress] = {}
    num_older = 0
    for part in parts:
        for row in part.progress:
            key = (row.group, replace(row.who, gpu=UNKNOWN))
            known_row = rows.get(key)
            num_older += known_row is not None
            if known_row is None or _order(row) >= _order(known_row):
                rows[key] = row
    notes = [note for part in parts for note in part.notes]
    if num_older:
        notes.append(f"{parts[0].source}: earlier statements on the same process and group, left out: {num_older:,}")
    return replace(
        parts[0],
        groups=tuple(groups.values()),
        progress=tuple(rows.values()),
        signs=tuple(sign for part in parts for sign in part.signs),
        timings=tuple(timing for part in parts for timing in part.timings),
        steps_us=tuple(step for part in parts for step in part.steps_us),
        num_files=sum(part.num_files for part in parts),
        notes=tuple(notes),
    )


def _union(known: Group, group: Group) -> Group:
    members = {**known.members, **group.members}
    size = max(known.size, group.size)
    return replace(known, members=members, size=size, label=known.label or group.label)


def _order(row: Progress) -> tuple[int, int]:
    return (UNKNOWN if row.issued is None else row.issued, UNKNOWN if row.completed is None else row.completed)


class _Groups:
    """Groups of all sources; those with one communicator, with the same members, or of one name in PyTorch are one."""

    def __init__(self) -> None:
        self._groups: list[JobGroup] = []
        self._of_communicator: dict[str, int] = {}
        self._of_members: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
        self._of_name: dict[tuple[str, str], int] = {}  # name and label, of sources without communicators

    def joined(self) -> tuple[JobGroup, ...]:
        """Return the groups, by number."""
        return tuple(self._groups)

    def add(self, source: Evidence, processes: Processes) -> Mapping[str, int]:
        """Add the groups of a source; returns the number of each by its name."""
        found = {group.name: _members(group, processes) for group in source.groups}
        sizes = Counter(tuple(sorted(members.values())) for members in found.values())
        number_of: dict[str, int] = {}
        for group in source.groups:
            members = found[group.name]
            key = tuple(sorted(members.values()))
            is_whole = len(members) == group.size and sizes[key] == 1
            name = f"{source.source}: {group.name}"
            number = self._known(group, key if is_whole else ())
            if number is None:
                number = self._named_alike(group, members)
            if number is None:
                number = len(self._groups)
                self._groups.append(
                    JobGroup(names=(name,), label=group.label, communicator=group.communicator, members=members,
                             size=group.size)
                )  # fmt: skip
                self._of_members[key].append(number)
            else:
                known = self._groups[number]
                self._groups[number] = replace(
                    known,
                    names=(*known.names, name),
                    label=known.label or group.label,
                    communicator=known.communicator or group.communicator,
                    members={**known.members, **members},
                    size=max(known.size, group.size),
                )
            if group.communicator:
                self._of_communicator[plain_hash(group.communicator)] = number
            else:
                self._of_name.setdefault((group.name, group.label), number)
            number_of[group.name] = number
        return number_of

    def _known(self, group: Group, key: tuple[int, ...]) -> int | None:
        """Return the group that another source has already named, None where there is none, or several."""
        if group.communicator:
            number = self._of_communicator.get(plain_hash(group.communicator))
            if number is not None:
                return number
        others = self._of_members.get(key, []) if key else []
        fitting = [number for number in others if not (group.communicator and self._groups[number].communicator)]
        return fitting[0] if len(others) == len(fitting) == 1 else None

    def _named_alike(self, group: Group, members: Mapping[int, int]) -> int | None:
        """Return the group of another source with one name and label, whose members at the same places are the same.

        Dumps and lines of the watchdog call a process group the same, and only dumps list its ranks.
        """
        number = None if group.communicator else self._of_name.get((group.name, group.label))
        if number is None:
            return None
        known = self._groups[number].members
        shared = [place for place in members if place in known]
        return number if shared and all(members[place] == known[place] for place in shared) else None


def _members(group: Group, processes: Processes) -> Mapping[int, int]:
    found = {place: processes.find(who) for place, who in group.members.items()}
    return {place: process for place, process in found.items() if process != UNKNOWN}


def plain_hash(communicator: str) -> str:
    """Return a communicator's hash as all sources have it in common: without prefix and leading zeros."""
    return communicator.lower().removeprefix("0x").lstrip("0")
