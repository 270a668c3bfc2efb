"""Guards around the functions of an extension: an exception becomes an error with the file and the line.

A function is wrapped wherever an entry holds it: in fields, and in mappings and dataclasses in fields. A dataclass that
settings are bound to stays the class it is; its `__post_init__` is wrapped.
"""

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from types import FunctionType, TracebackType
from typing import Any, TypeVar, cast

from fabrictune.foundation.errors import ExtensionError, FabrictuneError, Mistake

Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where the code of an extension lies: a file, or the folder of a package."""

    root: Path | None  # None where it is not known
    name: str  # as messages name it

    def has(self, file: Path) -> bool:
        """Return whether a file is the extension's."""
        return self.root is not None and self.root in (file, *file.parents)

    def place_of(self, error: BaseException) -> str:
        """Return `file:line` of the extension's code that ran last before the error, its name where none did."""
        place = self.name
        trace: TracebackType | None = error.__traceback__
        while trace is not None:
            file = Path(trace.tb_frame.f_code.co_filename)
            if self.has(file):
                shown = self.name if Path(self.name).resolve() == file else file
                place = f"{shown}:{trace.tb_lineno}"
            trace = trace.tb_next
        return place


@contextmanager
def placed_in(origin: Origin, what: str) -> Iterator[None]:
    """Raise ExtensionError, at the line of the extension's code, for whatever is raised within; `what` is what ran."""
    try:
        yield
    except FabrictuneError:
        raise
    except (Exception, SystemExit) as error:
        where = f"{origin.place_of(error)}: {what}"
        raise ExtensionError(Mistake(where=where, found=f"raised {describe_error(error)}")) from error


def guarded(value: Value, origin: Origin) -> Value:
    """Return an entry whose functions raise ExtensionError, at the line of their file, for whatever they raise."""
    return cast(Value, _guarded(value, origin))


def place_of(function: Callable[..., Any]) -> str:
    """Return `file:line: name` of a function, its name alone where it is not written in Python."""
    original = inspect.unwrap(function)
    name = getattr(original, "__name__", "function")
    code = original.__code__ if isinstance(original, FunctionType) else None
    return f"{code.co_filename}:{code.co_firstlineno}: {name}" if code else name


def describe_error(error: BaseException) -> str:
    """Return the name of an exception, and its text if it has one."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _guarded(value: Any, origin: Origin) -> Any:
    if isinstance(value, type):
        return _guarded_class(value, origin) if dataclasses.is_dataclass(value) else value
    if isinstance(value, Mapping):
        return {key: _guarded(entry, origin) for key, entry in value.items()}
    if dataclasses.is_dataclass(value):
        fields = {one.name: _guarded(getattr(value, one.name), origin) for one in dataclasses.fields(value) if one.init}
        return dataclasses.replace(cast(Any, value), **fields)
    return _guarded_function(value, origin) if callable(value) else value


def _guarded_class(spec: type, origin: Origin) -> type:
    """Return the same class; what its own check of its settings raises is placed."""
    for base in spec.__mro__:
        check = vars(base).get("__post_init__")
        if isinstance(check, FunctionType) and origin.has(Path(check.__code__.co_filename)):
            base.__post_init__ = _guarded_function(check, origin, base.__name__)  # type: ignore[attr-defined]
    return spec


def _guarded_function(function: Callable[..., Any], origin: Origin, name: str = "") -> Callable[..., Any]:
    @wraps(function)
    def call(*arguments: Any, **settings: Any) -> Any:
        with placed_in(origin, name or getattr(function, "__name__", "function")):
            return function(*arguments, **settings)

    return call
