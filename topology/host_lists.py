"""Lists of hosts as schedulers write them: `gpu[07-12,15],login1`, `rack[1-2]n[0-3]`, `node3*8`.

Ranges keep the zeros in front of their first number. A name may have several brackets, of which the last counts
fastest. `*N` repeats what stands before it.

Source: Slurm, `man srun` (--nodelist, and "Repeat" with an asterisk) and `man scontrol` (show hostnames).
"""

import itertools
import re
from collections.abc import Iterator, Sequence

from fabrictune.foundation.errors import InputError, Mistake, quote

LIST_MARKS = frozenset("[]*,")  # without any of them a text is one name
MAX_HOSTS = 2**20  # that one list may name

Axis = str | list[tuple[int, int, int]]  # of a name: a fixed text, or ranges of first, last and digits

_ENTRY = re.compile(r"((?:[^,\[\]*\s]|\[[^\[\]\s]*\])+)(?:\*(\d{1,7}))?")
_BETWEEN_COMMAS = re.compile(r"(?:\[[^\]]*\]?|[^,\[])+")
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


def expand_hosts(text: str, *, where: str, max_hosts: int = MAX_HOSTS) -> list[str]:
    """Return the names of a list, in its order; raises InputError for what is no list, and for more than may be."""
    hosts: list[str] = []
    for entry in split_list(text):
        match = _ENTRY.fullmatch(entry)
        if not match:
            raise _no_list(text, where)
        axes = [_axis(piece, text, where) for piece in re.split(r"(\[[^\[\]]*\])", match[1])]
        num_hosts = int(match[2] or 1)
        for axis in axes:
            num_hosts *= sum(last - first + 1 for first, last, _ in axis) if isinstance(axis, list) else 1
        if len(hosts) + num_hosts > max_hosts:
            found = f"{quote(text)}: {len(hosts) + num_hosts:,} hosts or more"
            raise InputError(Mistake(where=where, found=found, allowed=f"at most {max_hosts:,}"))
        names = ["".join(parts) for parts in itertools.product(*map(_values, axes))]
        hosts += names * int(match[2] or 1)
    return hosts


def split_list(text: str) -> list[str]:
    """Return the entries of a list: what commas outside of brackets separate."""
    return [entry.strip() for entry in _BETWEEN_COMMAS.findall(text) if entry.strip()]


def _axis(piece: str, text: str, where: str) -> Axis:
    if not piece.startswith("["):
        return piece
    ranges = []
    for span in piece[1:-1].split(","):
        match = _RANGE.fullmatch(span)
        if not match or int(match[2] or match[1]) < int(match[1]):
            raise _no_list(text, where)
        ranges.append((int(match[1]), int(match[2] or match[1]), len(match[1])))
    return ranges


def _values(axis: Axis) -> Sequence[str]:
    return [axis] if isinstance(axis, str) else list(_numbers(axis))


def _numbers(ranges: list[tuple[int, int, int]]) -> Iterator[str]:
    for first, last, digits in ranges:
        yield from (f"{number:0{digits}d}" for number in range(first, last + 1))


def _no_list(text: str, where: str) -> InputError:
    return InputError(
        Mistake(where=where, found=f"{quote(text)} is no list of hosts", allowed="names, and gpu[07-12,15], gpu3*8")
    )
