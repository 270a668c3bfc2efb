"""Pickles of plain values, read without running anything.

A pickle is a program for a machine with a stack; `load_plain_pickle` runs only its steps that make None, truth values,
numbers, texts, bytes, lists, tuples and dicts. One that names a class or a function is refused, whatever it names, so
that nothing of the file is imported, called or built.

Source: Python, Lib/pickletools.py, which lists the steps and their arguments.
Left out: sets, and objects of classes.
"""

import pickletools
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fabrictune.foundation.errors import FabrictuneError, Mistake
from fabrictune.foundation.foreign_files import SPLIT, read_foreign, shown

MAX_VALUES = 4_000_000
_MARK = object()
_BROKEN = (ValueError, LookupError, TypeError, AttributeError, OverflowError, struct.error)  # what damage raises
_PUSHES = frozenset(  # their argument
    (
        *("INT", "LONG", "LONG1", "LONG4", "BININT", "BININT1", "BININT2", "FLOAT", "BINFLOAT"),
        *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
        *("STRING", "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
    )
)
_SKIPS = frozenset(("PROTO", "FRAME", "STOP"))
_MAKERS: Mapping[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "EMPTY_DICT": dict,
    "MARK": lambda: _MARK,
}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


def load_plain_pickle(path: Path, *, max_bytes: int, error: type[FabrictuneError]) -> Any:
    """Return the value of a pickle of plain values; raises `error`."""
    data = read_foreign(path, max_bytes=max_bytes, error=error)
    machine, where = _Machine(), str(path)
    try:
        for number, (step, argument, _) in enumerate(pickletools.genops(data)):
            if not machine.run(step.name, argument):
                found = f"a pickle with the step {step.name} {shown(argument) if argument is not None else ''}".rstrip()
                allowed = "numbers, texts, lists and dicts, since nothing of a file is run"
                raise error(Mistake(where=where, found=found, allowed=allowed))
            if number > MAX_VALUES:
                found = f"a pickle of more than {MAX_VALUES:,} steps"
                raise error(Mistake(where=where, found=found, next_step=SPLIT))
        return machine.value()
    except _BROKEN as broken:
        found, next_step = f"a damaged pickle ({shown(str(broken))})", "check that it was copied whole"
        raise error(Mistake(where=where, found=found, next_step=next_step)) from None


class _Machine:
    """The stack of a pickle's steps, and the values that it keeps to take again."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._kept: dict[int, Any] = {}

    def value(self) -> Any:
        """Return the one value that is left."""
        (value,) = self._stack
        return value

    def run(self, name: str, argument: Any) -> bool:
        """Do a step; return whether it is one of plain values."""
        stack = self._stack
        if name in _PUSHES:
            stack.append(argument)
        elif name in _MAKERS:
            stack.append(_MAKERS[name]())
        elif name in _TUPLES:
            stack[-_TUPLES[name] :] = [tuple(stack[-_TUPLES[name] :])]
        elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
            self._kept[argument] = stack[-1]
        elif name == "MEMOIZE":
            self._kept[len(self._kept)] = stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(self._kept[argument])
        else:
            return self._fill(name)
        return True

    def _fill(self, name: str) -> bool:
        """Do a step that fills a list, a tuple or a dict."""
        stack = self._stack
        if name == "APPEND":
            stack[-2].append(stack.pop())
        elif name == "APPENDS":
            values = self._above_mark()
            stack[-1].extend(values)
        elif name == "SETITEM":
            value, key = stack.pop(), stack.pop()
            stack[-1][key] = value
        elif name == "SETITEMS":
            values = self._above_mark()
            stack[-1].update(zip(values[::2], values[1::2], strict=True))
        elif name in ("TUPLE", "LIST"):
            stack.append((tuple if name == "TUPLE" else list)(self._above_mark()))
        elif name == "DICT":
            values = self._above_mark()
            stack.append(dict(zip(values[::2], values[1::2], strict=True)))
        else:
            return name in _SKIPS
        return True

    def _above_mark(self) -> list[Any]:
        """Take the values above the last mark, and the mark."""
        values: list[Any] = []
        while (value := self._stack.pop()) is not _MARK:
            values.append(value)
        return values[::-1]
