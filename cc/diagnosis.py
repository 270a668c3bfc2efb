"""Diagnosis of a compiler's error in a handler, as a message for the author of the law.

Numba explains at length and in its own terms. Kept are the line of the law it concerns and the sentence that says what
is wrong there.
"""

import inspect
import re
from collections.abc import Sequence
from types import FunctionType

from fabrictune.cc.interface import Status
from fabrictune.foundation.errors import LawError, Mistake, nearest_name

ALLOWED = (
    "numbers, comparisons, if, while, for over range, math.sqrt, integer_power, the file's own functions and numbers,"
    " and the fields of params, flow and telemetry"
)
_PREAMBLE = "Failed in nopython mode pipeline"
_MAX_REASON = 200
_COLOR = re.compile(r"\x1b\[[0-9;]*m")  # Numba's messages have them where it finds colorama


def cannot_compile(handler: FunctionType, error: Exception, fields: Sequence[str]) -> LawError:
    """Return the LawError for what the compiler raised; `fields` are those of params, flow and telemetry."""
    if isinstance(error, KeyError):
        return _no_such_field(handler, str(error.args[0]), fields)
    line = _line_named_by(error, handler) or handler.__code__.co_firstlineno
    return LawError(Mistake(where=_where(handler, line), found=_reason(error), allowed=ALLOWED))


def returns_no_status(handler: FunctionType) -> LawError:
    """Return the LawError for a handler that ends without a status on some path, or with something else."""
    return LawError(
        Mistake(
            where=_where(handler, handler.__code__.co_firstlineno),
            found="does not return a status on every path",
            allowed=", ".join(f"Status.{status.name}" for status in (Status.OK, Status.REFUSED)),
            next_step="end the handler with `return Status.OK`",
        )
    )


def calls_itself(function: FunctionType) -> LawError:
    """Return the LawError for a function that calls itself, directly or through others."""
    return LawError(
        Mistake(
            where=_where(function, function.__code__.co_firstlineno),
            found="calls itself, directly or through others",
            allowed=ALLOWED,
            next_step="write it as a loop",
        )
    )


def counts_as_value(function: FunctionType, line: int, named: FunctionType) -> LawError:
    """Return the LawError for a function with a loop that is used other than by calling it."""
    return LawError(
        Mistake(
            where=_where(function, line),
            found=f"uses {named.__name__}, a function with a loop, as a value",
            allowed="a call of it",
        )
    )


def differs_from_file(function: FunctionType) -> LawError:
    """Return the LawError for a function whose text is not what its file has now."""
    return LawError(
        Mistake(
            where=_where(function, function.__code__.co_firstlineno),
            found="the file has another function there, or more than one",
            next_step="define it in a line of its own; if the file has just changed, run again",
        )
    )


def _no_such_field(handler: FunctionType, field: str, fields: Sequence[str]) -> LawError:
    lines, _ = inspect.findsource(handler)
    mentions = [number for number, line in enumerate(lines, start=1) if re.search(rf"\.{re.escape(field)}\b", line)]
    line = mentions[0] if mentions else handler.__code__.co_firstlineno
    return LawError(
        Mistake(
            where=_where(handler, line),
            found=f"no field {field!r} in params, flow or telemetry",
            allowed=", ".join(fields),
            nearest=nearest_name(field, fields),
        )
    )


def _line_named_by(error: Exception, handler: FunctionType) -> int | None:
    """Return the line of the handler's file that the complaint points at, the innermost if several."""
    path = re.escape(handler.__code__.co_filename)
    named = re.findall(rf"{path} \((\d+)\)|{path}:(\d+)|{path}\", line (\d+)", _text(error))
    numbers = [int(number) for groups in named for number in groups if number]
    location = getattr(error, "loc", None)
    if location is not None and location.filename == handler.__code__.co_filename:
        numbers.append(location.line)
    return numbers[0] if numbers else None


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in _text(error).splitlines()]
    meaningful = [line for line in lines if line and not line.startswith(_PREAMBLE)]
    reason = meaningful[0] if meaningful else type(error).__name__
    if reason.endswith(":") and len(meaningful) > 1:
        reason = f"{reason} {meaningful[1]}"
    return f"cannot be compiled ({reason[:_MAX_REASON]})"


def _text(error: Exception) -> str:
    return _COLOR.sub("", str(error))


def _where(handler: FunctionType, line: int) -> str:
    return f"{handler.__code__.co_filename}:{line}: {handler.__name__}"
