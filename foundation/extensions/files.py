"""Files of extensions: read once, run only with the user's leave, and checked.

A file is code and may do anything on this machine. Leave comes from the command line or from a Python caller, never
from a scenario.
"""

import ast
import hashlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from fabrictune.foundation.errors import InputError, Mistake, UntrustedCodeError
from fabrictune.foundation.extensions.guards import Origin, guarded
from fabrictune.foundation.extensions.kinds import MAX_BYTES, Extension, Kind, Value

MAX_KEPT = 32  # files whose entries are kept, since a sweep names the same ones for every point


def load_file(kind: Kind[Value], path: Path, names: Iterable[str], *, trust_code: bool) -> Extension[Value]:
    """Return the entry in a file; `names` are those that the table has without it.

    Raises UntrustedCodeError without `trust_code`, and the kind's error for a file that has no such entry.
    """
    content = _read(kind, path, names)
    if not trust_code:
        found = (
            f"{_article(kind.what)} {kind.what} in a file outside the project, which may do anything on this machine"
        )
        raise UntrustedCodeError(
            Mistake(where=str(path), found=found, next_step="read it, then run again with --trust-code")
        )
    value: Value = _entry(kind, path, content)
    return Extension(file=path, sha256=hashlib.sha256(content).hexdigest(), value=value)


def take_entry(kind: Kind[Value], value: Any, *, where: str) -> Value:
    """Return what an extension gives a table, checked; raises the kind's error."""
    if not isinstance(value, kind.value_type):
        name = f"{kind.attribute} is" if kind.attribute else "it is"
        found = f"{name} of the type {type(value).__name__}"
        raise kind.error(Mistake(where=where, found=found, allowed=_example(kind)))
    if mistakes := tuple(kind.check(value)):
        raise kind.error(*mistakes)
    return value


def _read(kind: Kind[Any], path: Path, names: Iterable[str]) -> bytes:
    if not path.is_file():
        allowed = f"a Python file, or one of {', '.join(names)}"
        raise kind.error(Mistake(where=str(path), found="no such file", allowed=allowed))
    if path.suffix != ".py":
        raise kind.error(Mistake(where=str(path), found="not a Python file", allowed="a file ending in .py"))
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise kind.error(Mistake(where=str(path), found=f"cannot be read ({error.strerror})")) from None
    if len(content) > MAX_BYTES:
        found, allowed = f"too large for {_article(kind.what)} {kind.what}", f"{MAX_BYTES} bytes"
        next_step = f"keep in the file what the {kind.what} needs"
        raise kind.error(Mistake(where=str(path), found=found, allowed=allowed, next_step=next_step))
    return content


@lru_cache(maxsize=MAX_KEPT)
def _entry(kind: Kind[Any], path: Path, content: bytes) -> Any:
    """Return the checked entry of a file with that content, its functions guarded."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise kind.error(Mistake(where=str(path), found="not text in UTF-8")) from None
    origin = Origin(root=path.resolve(), name=str(path))
    module = _execute(kind.error, path, text, origin)
    if not kind.attribute:
        return take_entry(kind, module, where=str(path))
    if not hasattr(module, kind.attribute):
        raise kind.error(Mistake(where=str(path), found=f"no {kind.attribute}", allowed=_example(kind)))
    value = guarded(getattr(module, kind.attribute), origin)
    return take_entry(kind, value, where=f"{path}:{_line_of(kind.attribute, text)}")


def _execute(error_type: type[InputError], path: Path, text: str, origin: Origin) -> ModuleType:
    """Run the file as a module of its own, without leaving compiled files next to it."""
    module = ModuleType(path.stem)
    module.__file__ = str(path.resolve())
    try:
        code = compile(text, module.__file__, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise error_type(Mistake(where=f"{path}{line}", found=f"not valid Python ({reason})")) from None
    try:
        exec(code, vars(module))  # noqa: S102 - the user has given leave
    except (Exception, SystemExit) as error:
        found = f"raised {type(error).__name__} while being imported: {error}"
        raise error_type(Mistake(where=origin.place_of(error), found=found)) from None
    return module


def _line_of(name: str, text: str) -> int:
    """Return the last line of a module that sets a name, 1 where none is found."""
    lines = [
        node.lineno
        for node in ast.parse(text).body
        for part in ast.walk(node)
        if (isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Store))
        or (isinstance(part, ast.FunctionDef | ast.ClassDef) and part.name == name)
    ]
    return max(lines, default=1)


def _example(kind: Kind[Any]) -> str:
    if not kind.attribute:
        return f"{_article(kind.what)} {kind.what}"
    return f"{kind.attribute} = {kind.value_type.__name__}(...)"


def _article(noun: str) -> str:
    return "an" if noun[0] in "aeio" else "a"
