"""Fingerprint of a law's machine code: the bytecode and constants of its functions, and the compiler.

Comments, other functions of the file and the values of parameters change nothing. A law that names a global whose value
cannot be determined (an array, a module other than `math`) has no fingerprint, and is compiled anew each time.
"""

import hashlib
import math
import os
import sys
from collections.abc import Iterator
from enum import Enum
from importlib.metadata import version
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from fabrictune.cc.checked_law import CheckedFunction, CheckedLaw

_PLAIN = (int, float, bool, str, type(None))
_COMPILED_BY = tuple(
    Path(__file__).with_name(f"{name}.py") for name in ("codegen", "compiled_checks", "interface", "places")
)


def fingerprint(law: CheckedLaw, params: np.dtype[np.void], flow: np.dtype[np.void]) -> str | None:
    """Return the digest of all that the law's machine code depends on; None where that cannot be determined."""
    digest = hashlib.sha256()
    try:
        for fact in (*_facts_of_compiler(), params.descr, flow.descr, *_facts_of_functions(law)):
            digest.update(repr(fact).encode() + b"\0")
    except _UnknownValueError:
        return None
    return digest.hexdigest()


class _UnknownValueError(Exception):
    """A global has a value without a text form."""


def _facts_of_compiler() -> Iterator[Any]:
    yield sys.implementation.cache_tag
    yield from (version(name) for name in ("numba", "llvmlite", "numpy"))
    yield from (llvm.get_default_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
    yield from sorted(item for item in os.environ.items() if item[0].startswith("NUMBA_"))
    yield from (path.read_bytes() for path in _COMPILED_BY)


def _facts_of_functions(law: CheckedLaw) -> Iterator[Any]:
    """Yield each handler and, once, each function and global it names, directly or through others."""
    waiting: list[tuple[str, CheckedFunction]] = list(law.handlers.items())
    seen: set[FunctionType] = set()
    while waiting:
        name, function = waiting.pop()
        original = function.original
        yield name, original.__module__, original.__qualname__
        if original in seen:
            continue
        seen.add(original)
        code = function.code
        if original.__closure__ or any(isinstance(constant, CodeType) for constant in code.co_consts):
            raise _UnknownValueError
        yield code.co_code, code.co_consts, code.co_names, code.co_varnames, code.co_argcount, code.co_exceptiontable
        yield original.__defaults__
        for used in code.co_names:
            if used in function.calls:
                waiting.append((used, function.calls[used]))
            elif used in original.__globals__:
                yield used, _as_fact(original.__globals__[used])


def _as_fact(value: Any) -> Any:
    if isinstance(value, Enum):
        return type(value).__qualname__, value.name, _as_fact(value.value)
    if isinstance(value, type) and issubclass(value, Enum):
        return value.__qualname__, [(member.name, _as_fact(member.value)) for member in value]
    if isinstance(value, _PLAIN):
        return value
    if value is math:
        return "math"
    raise _UnknownValueError
