"""Stacks of processes as evidence: `py-spy dump`, as text and as JSON, and Python's own `faulthandler`.

The rank of the job stands in the file's name (`rank_3.txt`, `3.json`), or it follows from the process where another
source has it; the host is the folder's name where the folder is not the one that was given.

Source: benfred/py-spy, src/dump.rs; Python, Lib/test/test_faulthandler.py.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.foreign_files import read_foreign, read_head
from fabrictune.observability.hangs.evidence import UNKNOWN, Evidence, Sign, SignKind, Who
from fabrictune.observability.hangs.stacks import place_of

SOURCE = "stacks"
MAX_BYTES = 64 * 2**20
MAX_FRAMES = 64
_HEAD_BYTES = 2**14
_PROCESS = re.compile(r"^Process (\d{1,10}): ?(.{0,200})", re.M)
_THREAD = re.compile(r'^Thread (?:0x[0-9A-Fa-f]{1,16}|\d{1,12})(?: ?\(([\w+ ]{1,40})\))?(?:: "([^"]{0,200})")?')
_FRAME = re.compile(r"^\s{1,20}(\S.{0,300}?) \(([^()]{0,500}?)(?::(\d{1,9}))?\)\s*$")
_OWN_THREAD = re.compile(r"^(?:Current thread|Thread) 0x[0-9a-f]{1,16}.{0,100}\(most recent call first\)")
_OWN_FRAME = re.compile(r'^  File "([^"]{0,500})", line (\d{1,9}) in (.{1,200})$')
_RANK = re.compile(r"rank[_-]?(\d{1,7})|^(\d{1,7})$", re.IGNORECASE)
_JSON = re.compile(rb'\A\s*\[\s*\{.{0,4000}"frames"\s*:', re.DOTALL)

Thread = tuple[str, tuple[str, ...]]  # name, and calls from the innermost


def is_stack_file(path: Path) -> bool:
    """Return whether a file begins as stacks of one of the forms."""
    head = read_head(path, _HEAD_BYTES)
    if _JSON.match(head):
        return True
    text = head.decode(errors="replace")
    return any(
        (_PROCESS.match(line) and "Thread " in text) or _OWN_THREAD.match(line) for line in text.splitlines()[:200]
    )


def read_stack_evidence(path: Path, root: Path) -> Evidence:
    """Return where the processes of a file stand; raises InputError where no stack is in it."""
    content = read_foreign(path, max_bytes=MAX_BYTES)
    dumps = (
        _from_json(content, path)
        if _JSON.match(content[:_HEAD_BYTES])
        else _from_text(content.decode(errors="replace"))
    )
    named = _RANK.search(path.stem)
    host = path.parent.name if path.parent.resolve() != root.resolve() and path.parent != path else ""
    signs = []
    for pid, threads in dumps:
        frames = _main(threads)
        if not frames:
            continue
        rank = int(named[1] or named[2]) if named and len(dumps) == 1 else UNKNOWN
        place = place_of(frames)
        signs.append(
            Sign(
                who=Who(rank=UNKNOWN if rank == pid else rank, host=host, pid=pid),
                kind=SignKind.STACK,
                text=f"{place.value if place else 'at'}: {' < '.join(frames[:3])}",
                where=str(path),
                frames=frames,
            )
        )
    if not signs:
        found, next_step = "no stack of a main thread", "save the output of `py-spy dump --pid PID`"
        raise InputError(Mistake(where=str(path), found=found, next_step=next_step))
    return Evidence(source=SOURCE, signs=tuple(signs))


def _main(threads: Sequence[Thread]) -> tuple[str, ...]:
    """Return the calls of the main thread; a process's first one where none has that name."""
    named = [frames for name, frames in threads if name == "MainThread"]
    return (named or [frames for _, frames in threads] or [()])[0]


def _from_json(content: bytes, path: Path) -> list[tuple[int, list[Thread]]]:
    try:
        traces = json.loads(content)
        by_pid: dict[int, list[Thread]] = {}
        for trace in traces:
            pid = trace.get("pid")
            frames = tuple(_json_frame(frame) for frame in trace["frames"][:MAX_FRAMES])
            name = str(trace.get("thread_name") or "")
            by_pid.setdefault(pid if type(pid) is int else UNKNOWN, []).append((name, frames))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        found = f"no stacks of py-spy ({type(error).__name__})"
        raise InputError(Mistake(where=str(path), found=found, allowed="`py-spy dump --json`")) from None
    return list(by_pid.items())


def _json_frame(frame: Mapping[str, Any]) -> str:
    return f"{str(frame['name'])[:200]} ({str(frame.get('filename') or frame.get('module'))[:300]}:{frame.get('line')})"


def _from_text(text: str) -> list[tuple[int, list[Thread]]]:
    dumps: list[tuple[int, list[Thread]]] = []
    for pid, name, frame in _lines(text):
        if pid is not None:
            dumps.append((pid, []))
        elif name is not None:
            if not dumps:
                dumps.append((UNKNOWN, []))
            dumps[-1][1].append((name, ()))
        elif frame is not None and dumps and dumps[-1][1]:
            name, frames = dumps[-1][1][-1]
            if len(frames) < MAX_FRAMES:
                dumps[-1][1][-1] = (name, (*frames, frame))
    return dumps


def _lines(text: str) -> Iterator[tuple[int | None, str | None, str | None]]:
    """Yield what each line is: a process, a thread by its name, or a call; `faulthandler` has the main thread last."""
    own: list[Sequence[str]] = []
    for line in text.splitlines():
        if match := _PROCESS.match(line):
            yield int(match[1]), None, None
        elif _OWN_THREAD.match(line):
            own.append([])
        elif own and (match := _OWN_FRAME.match(line)):
            own[-1] = [*own[-1], f"{match[3]} ({match[1]}:{match[2]})"][:MAX_FRAMES]
        elif match := _THREAD.match(line):
            yield None, match[2] or "", None
        elif match := _FRAME.match(line):
            yield None, None, f"{match[1]} ({match[2]}" + (f":{match[3]})" if match[3] else ")")
    for frames in own[-1:]:
        yield None, "MainThread", None
        for frame in frames:
            yield None, None, frame
