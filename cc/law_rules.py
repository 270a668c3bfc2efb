"""Rules that a module must keep to be a law.

Only the module's surface is looked at here: names, arguments, parameters and state. Whether a handler's body can be
compiled is found out by compiling it.
"""

import dis
import inspect
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from fabrictune.cc.flow_state import law_name
from fabrictune.cc.interface import EVENTS, FLOW_HEADER, Parameter
from fabrictune.foundation.errors import LawError, Mistake, nearest_name

STATE_TYPES = ("f8", "i8", "i4")
PARAMETER_TYPES = ("f8", "i8")


def require_law(module: ModuleType) -> None:
    """Raise LawError with everything that keeps `module` from being a law."""
    mistakes = check_law(module)
    if mistakes:
        raise LawError(*mistakes)


def check_law(module: ModuleType) -> list[Mistake]:
    """Return every rule of the law interface that `module` breaks."""
    return [
        *_check_handlers(module),
        *_check_parameters(module),
        *_check_state(module),
        *_check_timers(module),
        *_check_telemetry(module),
    ]


def handlers(module: ModuleType) -> dict[str, FunctionType]:
    """Return the handlers a law defines, by event, in the interface's order."""
    return {event: getattr(module, event) for event in EVENTS if isinstance(getattr(module, event, None), FunctionType)}


def reads_telemetry(module: ModuleType) -> bool:
    """Return whether an engine has to collect in-band telemetry for the law."""
    return bool(getattr(module, "USES_TELEMETRY", False))


def reads_marks(module: ModuleType) -> bool:
    """Return whether it matters to the law if a packet was marked: it has on_cnp, or its on_ack names is_ecn_marked."""
    defined = handlers(module)
    if "on_cnp" in defined:
        return True
    if "on_ack" not in defined:
        return False
    code = defined["on_ack"].__code__
    if list(code.co_varnames[: code.co_argcount]) != handler_arguments("on_ack"):
        return True  # what it wraps may look
    return any(instruction.argval == "is_ecn_marked" for instruction in dis.get_instructions(code))


def handler_arguments(event: str) -> list[str]:
    """Return the argument names an event's handler takes."""
    return ["params", "flow", *(argument.name for argument in EVENTS[event])]


def _check_handlers(module: ModuleType) -> Iterator[Mistake]:
    where = _where(module)
    if "on_start" not in handlers(module):
        yield Mistake(
            where=where,
            found="no function on_start",
            next_step="define on_start(params, flow, now_ps): it may set the first rate_bps and cwnd_bytes",
        )
    for name, value in vars(module).items():
        if name.startswith("on_") and name not in EVENTS:
            yield Mistake(
                where=f"{_where(module, value)}: {name}",
                found="no event of this name",
                allowed=", ".join(EVENTS),
                nearest=nearest_name(name, EVENTS),
            )
    for event, handler in handlers(module).items():
        names = list(inspect.signature(handler).parameters)
        if names != handler_arguments(event):
            yield Mistake(
                where=f"{_where(module, handler)}: {event}",
                found=f"arguments ({', '.join(names)})",
                allowed=f"({', '.join(handler_arguments(event))})",
            )


def _check_parameters(module: ModuleType) -> Iterator[Mistake]:
    where = f"{_where(module)}: PARAMETERS"
    parameters = getattr(module, "PARAMETERS", None)
    if not isinstance(parameters, tuple) or not all(isinstance(entry, Parameter) for entry in parameters):
        yield Mistake(
            where=where, found=_shown(parameters), allowed="a tuple of fabrictune.cc.interface.Parameter; () for none"
        )
        return
    names = [parameter.name for parameter in parameters]
    for parameter in parameters:
        if not parameter.name.isidentifier() or names.count(parameter.name) > 1:
            yield Mistake(
                where=where, found=f"name {parameter.name!r}", allowed="names that differ and are identifiers"
            )
        if parameter.dtype not in PARAMETER_TYPES:
            yield Mistake(
                where=f"{where}: {parameter.name}",
                found=f"dtype {parameter.dtype!r}",
                allowed=" or ".join(PARAMETER_TYPES),
            )
        if not parameter.low <= parameter.default <= parameter.high:
            yield Mistake(
                where=f"{where}: {parameter.name}",
                found=f"default {parameter.default!r}",
                allowed=f"from low to high, {parameter.low!r} to {parameter.high!r}",
            )


def _check_state(module: ModuleType) -> Iterator[Mistake]:
    where = f"{_where(module)}: STATE"
    allowed = f"(name, type) or (name, type, (length,)), types {', '.join(STATE_TYPES)}, new names"
    state = getattr(module, "STATE", None)
    if not isinstance(state, tuple):
        yield Mistake(where=where, found=_shown(state), allowed=f"a tuple of entries {allowed}; () for none")
        return
    taken = {entry[0] for entry in FLOW_HEADER}
    for entry in state:
        if not _is_state_entry(entry) or entry[0] in taken:
            yield Mistake(where=where, found=_shown(entry), allowed=allowed)
        else:
            taken.add(entry[0])


def _check_timers(module: ModuleType) -> Iterator[Mistake]:
    """A deadline that nothing answers would pass without a word."""
    functions = (value for value in vars(module).values() if isinstance(value, FunctionType))
    setting = [function for function in functions if "deadline_ps" in function.__code__.co_names]
    if setting and "on_timer" not in handlers(module):
        yield Mistake(
            where=f"{_where(module, setting[0])}: {setting[0].__name__}",
            found="uses deadline_ps in a law without on_timer",
            next_step=f"define on_timer({', '.join(handler_arguments('on_timer'))})",
        )


def _check_telemetry(module: ModuleType) -> Iterator[Mistake]:
    """What is not collected reads as nothing."""
    handler = handlers(module).get("on_ack")
    if handler and not getattr(module, "USES_TELEMETRY", False) and _reads(handler, "telemetry"):
        yield Mistake(
            where=f"{_where(module, handler)}: on_ack",
            found="reads telemetry, which is collected only for a law that asks for it",
            next_step="write USES_TELEMETRY = True next to PARAMETERS and STATE",
        )


def _reads(function: FunctionType, local_name: str) -> bool:
    """Return whether the function's code reads a local variable; some instructions name two at once."""
    named = (instruction.argval for instruction in dis.get_instructions(function))
    return any(local_name in (names if isinstance(names, tuple) else (names,)) for names in named)


def _is_state_entry(entry: Any) -> bool:
    if not isinstance(entry, tuple) or len(entry) not in (2, 3) or not isinstance(entry[0], str):
        return False
    if not entry[0].isidentifier() or entry[1] not in STATE_TYPES:
        return False
    shape = entry[2] if len(entry) == 3 else (1,)
    return isinstance(shape, tuple) and len(shape) == 1 and isinstance(shape[0], int) and shape[0] > 0


def _where(module: ModuleType, value: object = None) -> str:
    """Return `law my_law` or, for a function of the module, `my_law.py:12`."""
    if isinstance(value, FunctionType):
        return f"{value.__code__.co_filename}:{value.__code__.co_firstlineno}"
    return f"law {law_name(module)}"


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
