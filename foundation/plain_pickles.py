"""Pickles of plain values, read without running anything.

A pickle is a program for a machine with a stack; `load_plain_pickle` runs only its steps that make None, truth values,
numbers, texts, bytes, lists, tuples and dicts. One that names a class or a function is refused, whatever it names, so
that nothing of the file is imported, called or built.

A dump of thousands of requests has millions of steps. Nearly all push a number or a text, keep a value or take one
again: these are read here. Python's own table of steps reads the others.

Source: Python, Lib/pickletools.py, which lists the steps and their arguments.
Left out: sets, and objects of classes.
"""

import pickletools
import struct
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from fabrictune.foundation.errors import FabrictuneError, Mistake
from fabrictune.foundation.foreign_files import SPLIT, read_foreign, shown

MAX_VALUES = 4_000_000
_BROKEN = (ValueError, LookupError, TypeError, AttributeError, OverflowError, struct.error)  # what damage raises
_PUSHES = frozenset(  # their argument
    (
        *("INT", "LONG", "LONG1", "LONG4", "FLOAT"),
        *("UNICODE", "BINUNICODE8"),
        *("STRING", "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
    )
)
_SKIPS = frozenset(("PROTO", "FRAME"))
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_STEPS = {ord(step.code): step for step in pickletools.opcodes}
_CODES = {step.name: ord(step.code) for step in pickletools.opcodes}
_STOP, _MARK, _MEMOIZE, _BINGET, _BININT1 = (_CODES[name] for name in ("STOP", "MARK", "MEMOIZE", "BINGET", "BININT1"))
_MAKERS: Mapping[int, Callable[[], Any]] = {
    _CODES["NONE"]: lambda: None,
    _CODES["NEWTRUE"]: lambda: True,
    _CODES["NEWFALSE"]: lambda: False,
    _CODES["EMPTY_LIST"]: list,
    _CODES["EMPTY_TUPLE"]: tuple,
    _CODES["EMPTY_DICT"]: dict,
}
_NUMBERS, _TEXTS, _KEEPS, _TAKES = (  # forms of an argument by code: a number, a length, and places of what is kept
    {_CODES[name]: struct.Struct(form) for name, form in forms.items()}
    for forms in (
        {"BININT2": "<H", "BININT": "<i", "BINFLOAT": ">d"},
        {"SHORT_BINUNICODE": "<B", "BINUNICODE": "<I"},
        {"BINPUT": "<B", "LONG_BINPUT": "<I"},
        {"LONG_BINGET": "<I"},
    )
)


def load_plain_pickle(path: Path, *, max_bytes: int, error: type[FabrictuneError]) -> Any:
    """Return the value of a pickle of plain values; raises `error`."""
    data = read_foreign(path, max_bytes=max_bytes, error=error)
    where = str(path)
    try:
        return _Machine(data).value()
    except _ForeignStepError as refused:
        allowed = "numbers, texts, lists and dicts, since nothing of a file is run"
        raise error(Mistake(where=where, found=f"a pickle with the step {refused}", allowed=allowed)) from None
    except _TooManyStepsError:
        found = f"a pickle of more than {MAX_VALUES:,} steps"
        raise error(Mistake(where=where, found=found, next_step=SPLIT)) from None
    except _BROKEN as broken:
        found, next_step = f"a damaged pickle ({shown(str(broken))})", "check that it was copied whole"
        raise error(Mistake(where=where, found=found, next_step=next_step)) from None


class _ForeignStepError(Exception):
    """A step that does not make a plain value."""


class _TooManyStepsError(Exception):
    """More steps than are done."""


class _Machine:
    """The stack of a pickle's steps, and the values that it keeps to take again."""

    def __init__(self, data: bytes) -> None:
        self._data, self._file = data, BytesIO(data)
        self._stack: list[Any] = []
        self._marks: list[int] = []  # places on the stack
        self._kept: dict[int, Any] = {}

    def value(self) -> Any:
        """Do all steps, and return the one value that is left."""
        data, stack, kept, at = self._data, self._stack, self._kept, 0
        for _ in range(MAX_VALUES):
            code, argument = data[at], at + 1
            if code == _BINGET:
                stack.append(kept[data[argument]])
                at += 2
            elif code == _MEMOIZE:
                kept[len(kept)] = stack[-1]
                at = argument
            elif code == _BININT1:
                stack.append(data[argument])
                at += 2
            elif code == _MARK:
                self._marks.append(len(stack))
                at = argument
            elif form := _TEXTS.get(code):
                begin = argument + form.size
                at = begin + form.unpack_from(data, argument)[0]
                if at > len(data):
                    raise ValueError("a text without its end")
                stack.append(str(data[begin:at], "utf-8", "surrogatepass"))
            elif form := _KEEPS.get(code):
                kept[form.unpack_from(data, argument)[0]] = stack[-1]
                at = argument + form.size
            elif form := _TAKES.get(code):
                stack.append(kept[form.unpack_from(data, argument)[0]])
                at = argument + form.size
            elif form := _NUMBERS.get(code):
                stack.append(form.unpack_from(data, argument)[0])
                at = argument + form.size
            elif make := _MAKERS.get(code):
                stack.append(make())
                at = argument
            elif code == _STOP:
                (value,) = stack
                return value
            else:
                at = self._run_at(at)
        raise _TooManyStepsError

    def _run_at(self, at: int) -> int:
        """Do the step at a place, as Python's table reads it; returns the place of the next."""
        step = _STEPS.get(self._data[at])
        if step is None:
            raise ValueError(f"at {at}: no step {self._data[at]:#x}")
        argument, after = None, at + 1
        if step.arg is not None:
            self._file.seek(after)
            argument = step.arg.reader(self._file)
            after = self._file.tell()
        if not self._run(step.name, argument):
            raise _ForeignStepError(f"{step.name} {shown(argument) if argument is not None else ''}".rstrip())
        return after

    def _run(self, name: str, argument: Any) -> bool:
        """Do a step; return whether it is one of plain values."""
        stack = self._stack
        if name in _PUSHES:
            stack.append(argument)
        elif name in _TUPLES:
            stack[-_TUPLES[name] :] = [tuple(stack[-_TUPLES[name] :])]
        elif name == "PUT":
            self._kept[argument] = stack[-1]
        elif name == "GET":
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
        """Take the values above the last mark, and the mark; raises IndexError without one."""
        place = self._marks.pop()
        values = self._stack[place:]
        del self._stack[place:]
        return values
