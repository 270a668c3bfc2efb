"""Mutants of Python functions, put into a process that has everything imported: no import, no collection again.

A mutation inside a function changes that function's code alone, which Python can exchange. A constant, a default, or
what is called during import is not for these trials.
"""

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

Key = tuple[str, str, int]  # of code: its file, qualified name and first line


def changed_functions(path: str, original: bytes, mutated: bytes) -> list[tuple[CodeType, CodeType]] | None:
    """Return the code of each outermost function before and after, None where more than functions changes."""
    modules = [compile(source, path, "exec", dont_inherit=True) for source in (original, mutated)]
    first, second = (list(_bodies(module)) for module in modules)
    if [_outline(code) for code in first] != [_outline(code) for code in second]:
        return None
    before, after = ([one for code in codes for one in _functions_in(code)] for codes in (first, second))
    changed = [(old, new) for old, new in zip(before, after, strict=True) if _bare(old) != _bare(new)]
    is_unique = all(sum(key_of(old) == key_of(other) for other in before) == 1 for old, _ in changed)
    return changed if is_unique and all(old.co_freevars == new.co_freevars for old, new in changed) else None


def key_of(code: CodeType) -> Key:
    """Return what names the code of a function."""
    return code.co_filename, code.co_qualname, code.co_firstlineno


def last_line(code: CodeType) -> int:
    """Return the last line of code and of the functions in it."""
    own = max((line for *_, line in code.co_lines() if line), default=code.co_firstlineno)
    return max([own, *(last_line(inner) for inner in code.co_consts if isinstance(inner, CodeType))])


def functions_of(paths: Sequence[Path]) -> dict[Key, list[FunctionType]]:
    """Return the functions that modules of these files have made, by the key of their code, under resolved paths."""
    wanted = {str(path.resolve()) for path in paths}
    resolved: dict[str, str] = {}
    found: dict[Key, list[FunctionType]] = {}
    gc.unfreeze()  # frozen objects are not listed
    for function in gc.get_objects():
        if isinstance(function, FunctionType):
            file, name, line = key_of(function.__code__)
            if file not in resolved:
                resolved[file] = str(Path(file).resolve())
            if resolved[file] in wanted:
                found.setdefault((resolved[file], name, line), []).append(function)
    return found


class Calls:
    """Notes the code that is called: its file, as imported, and its first line."""

    def __init__(self, files: Sequence[str]) -> None:
        self._files, self._called = frozenset(files), set[tuple[str, int]]()

    def begin(self) -> None:
        """Note calls from now on."""
        sys.settrace(self._on_call)

    def take(self) -> list[tuple[str, int]]:
        """Return what was called since the last time."""
        called, self._called = sorted(self._called), set()
        return called

    def _on_call(self, frame: Any, _event: str, _argument: Any) -> None:
        code = frame.f_code
        if code.co_filename in self._files:
            self._called.add((code.co_filename, code.co_firstlineno))


def exchanging(functions: Sequence[tuple[FunctionType, CodeType]]) -> Callable[[], None]:
    """Return what gives functions other code."""

    def exchange() -> None:
        for function, code in functions:
            function.__code__ = code

    return exchange


def _bodies(module: CodeType) -> Iterator[CodeType]:
    """Yield the code that runs at import: a module and the classes in it."""
    yield module
    for inner in module.co_consts:
        if isinstance(inner, CodeType) and not inner.co_flags & CO_OPTIMIZED:
            yield from _bodies(inner)


def _functions_in(body: CodeType) -> Iterator[CodeType]:
    return (inner for inner in body.co_consts if isinstance(inner, CodeType) and inner.co_flags & CO_OPTIMIZED)


def _outline(body: CodeType) -> tuple[Any, ...]:
    """Return what a body does but for the code of its functions."""
    constants = [inner.co_name if isinstance(inner, CodeType) else repr(inner) for inner in body.co_consts]
    return body.co_qualname, body.co_code, constants, body.co_names


def _bare(code: CodeType) -> tuple[Any, ...]:
    """Return code without its columns."""
    constants = [_bare(inner) if isinstance(inner, CodeType) else repr(inner) for inner in code.co_consts]
    return code.co_code, constants, code.co_names, code.co_varnames
