"""Process groups of PyTorch: which ranks a request was made of, as its arguments or the head of its file say.

Source: PyTorch, torch/csrc/distributed/c10d/ParamCommsUtils.hpp for the names of arguments.
"""

import re
from collections.abc import Mapping
from typing import Any

from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.foreign_files import shown
from fabrictune.foundation.traces import MAX_RANK

MAX_GROUP = 2**20
MAX_MEMBERS = 2**22  # ranks of all different groups of all files


class Groups:
    """The groups of all files; the ranks of each are in memory once."""

    def __init__(self) -> None:
        self._of_text: dict[tuple[Any, ...], tuple[int, ...]] = {}
        self._of_name: dict[str, tuple[int, ...]] = {}  # of the file that is read
        self._one_of: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._num_members = 0

    def learn(self, configuration: Any) -> None:
        """Take the groups that a file's head lists with their names."""
        self._of_name = {
            str(entry.get("pg_name")): self._one_of.setdefault(group := tuple(ranks), group)
            for entry in (configuration if isinstance(configuration, list) else ())
            if isinstance(entry, Mapping) and isinstance(ranks := entry.get("ranks"), list)
            if ranks and all(type(rank) is int and 0 <= rank <= MAX_RANK for rank in ranks)
        }

    def of(self, arguments: Mapping[str, Any], where: str) -> tuple[int, ...]:
        """Return the ranks: as listed, or, where the list is cut short, as its stride or the file's head has them."""
        written = str(arguments.get("Process Group Ranks", ""))
        names = ("Global rank start", "Global rank stride", "Group size")
        first, stride, size = (number if type(number := arguments.get(name)) is int else None for name in names)
        key = (written, first, stride, size)
        if key not in self._of_text:
            group = listed(written) or strided(first, stride, size)
            by_name = self._of_name.get(str(arguments.get("Process Group Name", "")))
            if group is None and by_name:
                return by_name
            if group is None or max(group) > MAX_RANK:
                found = f"ranks {shown(written)}"
                raise TraceError(Mistake(where=where, found=found, allowed="[0, 1, ...] in full, up to 2147483647"))
            self._count(len(group), where)
            self._of_text[key] = self._one_of.setdefault(group, group)
        return self._of_text[key]

    def _count(self, num_members: int, where: str) -> None:
        self._num_members += num_members
        if self._num_members > MAX_MEMBERS:
            found = f"groups of more than {MAX_MEMBERS:,} ranks in all"
            raise TraceError(Mistake(where=where, found=found, next_step="profile fewer steps"))


def listed(written: str) -> tuple[int, ...] | None:
    """Return the ranks of a list as text, None where it is cut short or no list."""
    if not re.fullmatch(r"\[\d{1,10}(, *\d{1,10})*\]", written, re.ASCII):
        return None
    return tuple(int(rank) for rank in re.findall(r"\d+", written))


def strided(first: int | None, stride: int | None, size: int | None) -> tuple[int, ...] | None:
    """Return a number of ranks a stride apart, None where one of the three is missing or out of bounds."""
    if first is None or stride is None or size is None:
        return None
    if not (0 < size <= MAX_GROUP and 0 <= first <= MAX_RANK and 0 < stride <= MAX_RANK):
        return None
    return tuple(range(first, first + stride * size, stride))
