"""Processes of a job, named by several sources: by rank, and by host and process.

Two names are one process where a source has both, or where a communicator holds the whole job, whose places are then
the job's ranks. A host that one source calls by its address and another by its name is one by its processes' numbers.
What does not agree is said, and stays apart.

Left out: processes with several GPUs, which count as one.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from fabrictune.observability.hangs.evidence import UNKNOWN, Evidence, Group, Who

MAX_DISAGREEMENTS = 20
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f:]*:[0-9a-f:.]*", re.IGNORECASE)

Name = tuple[str, int]  # host and process


class Processes:
    """The processes of a job; `find` returns the number of one, and makes it where it is new."""

    def __init__(self, evidence: Iterable[Evidence]) -> None:
        sources = tuple(evidence)
        self.disagreements: list[str] = []
        self.notes: list[str] = []
        self._whos: list[Who] = []
        self._of_rank: dict[int, int] = {}
        self._of_name: dict[Name, int] = {}
        self._hosts_of_pid: defaultdict[int, set[str]] = defaultdict(set)
        everyone = [who for source in sources for who in _all(source)]
        self._alias = _aliases(everyone)
        for who in everyone:
            if who.host and who.pid != UNKNOWN:
                self._hosts_of_pid[who.pid].add(self._alias.get(who.host, who.host))
        self._number_ranks(sources)
        for who in everyone:
            self.find(who)

    def find(self, who: Who) -> int:
        """Return the number of a process, UNKNOWN where nothing names it."""
        host = self._host(who)
        name = (host, who.pid) if who.pid != UNKNOWN else None
        by_rank = self._of_rank.get(who.rank) if who.rank != UNKNOWN else None
        by_name = self._of_name.get(name) if name else None
        if by_rank is None and by_name is None and who.rank == UNKNOWN and name is None:
            return UNKNOWN
        number = by_rank if by_rank is not None else by_name
        if number is None:
            number = len(self._whos)
            self._whos.append(Who())
        if by_rank is not None and by_name is not None and by_rank != by_name:
            self._disagree(f"{self._whos[by_rank]} is also said to be {self._whos[by_name]}")
            return by_rank
        self._learn(number, who, name)
        return number

    def whos(self) -> tuple[Who, ...]:
        """Return all processes, by number."""
        return tuple(self._whos)

    def _learn(self, number: int, who: Who, name: Name | None) -> None:
        """Add what a source says of a process to what is known."""
        known = self._whos[number]
        if known.rank not in (who.rank, UNKNOWN) and who.rank != UNKNOWN:
            self._disagree(f"{known} is also said to be rank {who.rank}")
            return
        if name and known.pid not in (who.pid, UNKNOWN):
            self._disagree(f"{known} is also said to be process {who.pid} of host {name[0] or 'not named'}")
            return
        if who.rank != UNKNOWN:
            self._of_rank[who.rank] = number
        if name:
            self._of_name[name] = number
        self._whos[number] = Who(
            rank=known.rank if who.rank == UNKNOWN else who.rank,
            host=known.host or (name[0] if name else self._alias.get(who.host, who.host)),
            pid=known.pid if who.pid == UNKNOWN else who.pid,
            gpu=who.gpu if known.gpu == UNKNOWN else known.gpu,
        )

    def _host(self, who: Who) -> str:
        """Return the host of a process; where its source says none, the only one that has its number."""
        if who.host:
            return self._alias.get(who.host, who.host)
        hosts = self._hosts_of_pid.get(who.pid, set())
        return next(iter(hosts)) if len(hosts) == 1 else ""

    def _number_ranks(self, sources: tuple[Evidence, ...]) -> None:
        """Give ranks of the job to the processes of a communicator that holds all of them."""
        groups = [group for source in sources for group in source.groups if group.communicator]
        world = self._world_size(sources, groups)
        whole = [group for group in groups if group.size == world and len(group.members) == world]
        whole = [group for group in whole if _is_named(group)]
        if not whole:
            return
        first = whole[0]
        for place, who in first.members.items():
            self.find(Who(rank=place, host=who.host, pid=who.pid, gpu=who.gpu))
        self.notes.append(
            f"ranks of the job taken as those of communicator {first.name}, which holds all {world:,} processes"
        )

    def _world_size(self, sources: tuple[Evidence, ...], groups: Iterable[Group]) -> int:
        """Return the number of the job's ranks, as the default group, the highest rank or all processes have it."""
        everyone = [who for source in sources for who in _all(source)]
        stated = [len(group.members) for source in sources for group in source.groups if group.is_job]
        stated += [who.rank + 1 for who in everyone if who.rank != UNKNOWN]
        if stated:
            return max(stated)
        names = {(self._host(who), who.pid) for who in everyone if who.pid != UNKNOWN}
        largest = max((group.size for group in groups), default=0)
        return largest if largest >= len(names) else 0

    def _disagree(self, text: str) -> None:
        if text not in self.disagreements and len(self.disagreements) < MAX_DISAGREEMENTS:
            self.disagreements.append(text)


def _is_named(group: Group) -> bool:
    return all(who.pid != UNKNOWN for who in group.members.values())


def _all(source: Evidence) -> Iterable[Who]:
    """Yield the processes that a source names, those with the most names first."""
    for group in source.groups:
        yield from group.members.values()
    for row in source.progress:
        yield row.who
    for sign in source.signs:
        yield sign.who


def _aliases(everyone: Iterable[Who]) -> Mapping[str, str]:
    """Return the names of hosts that others call by their addresses, by the processes that both have."""
    hosts_of: defaultdict[int, set[str]] = defaultdict(set)
    for who in everyone:
        if who.host and who.pid != UNKNOWN:
            hosts_of[who.pid].add(who.host)
    found: dict[str, str] = {}
    for hosts in hosts_of.values():
        addresses = {host for host in hosts if _ADDRESS.fullmatch(host)}
        names = hosts - addresses
        if len(addresses) == len(names) == 1:
            found.setdefault(addresses.pop(), names.pop())
    return found
