"""Interpreter of laws: plain Python, or the compiled form called event by event.

The interpreted law is the slow reference of the compiled one, and where to look when a law misbehaves: a handler that
raises shows its own traceback. Both forms work on the same arrays of shape (1,), so that their bytes can be compared.
"""

import ctypes
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from fabrictune.cc.checked_law import checked_law
from fabrictune.cc.flow_state import Record, flow_dtype, law_name, params_record
from fabrictune.cc.interface import EVENTS, STATUS_MASK, TELEMETRY_DTYPE, CompiledLaw, Status
from fabrictune.cc.interpreted_checks import INTERPRETED_CHECKS, CheckFailed, StepCounter
from fabrictune.cc.law_rules import require_law
from fabrictune.cc.places import Place
from fabrictune.foundation.errors import LawError, Mistake

_NUMPY_TYPES: dict[str, Any] = {"i4": np.int32, "i8": np.int64, "f8": np.float64}
_C_TYPES: dict[str, Any] = {"i4": ctypes.c_int32, "i8": ctypes.c_int64, "f8": ctypes.c_double}
_NO_TELEMETRY: Record = np.zeros(0, TELEMETRY_DTYPE)


class CallableLaw(Protocol):
    """A law whose events can be called one by one."""

    flow_dtype: np.dtype[np.void]

    def call(self, event: str, flow: Record, *arguments: Any) -> Status:
        """Call the handler of `event`, if the law has one, with the event's arguments; OK if it has none."""
        ...


class InterpretedLaw:
    """A law's own functions on NumPy records."""

    def __init__(self, module: ModuleType, settings: Mapping[str, float] | None = None) -> None:
        require_law(module)
        self.name = law_name(module)
        self.params = params_record(module, settings)
        self.flow_dtype = flow_dtype(module)
        checked = checked_law(module)
        self._places = checked.places
        self._counts_steps = {event: handler.counts_steps for event, handler in checked.handlers.items()}
        self._handlers = checked.bind(INTERPRETED_CHECKS)

    def call(self, event: str, flow: Record, *arguments: Any) -> Status:
        """Call one handler on `flow`, shape (1,); what it raises comes through. Raises LawError for a failed check."""
        assert len(arguments) == len(EVENTS[event]), f"{event} takes {len(EVENTS[event])} arguments"
        if event not in self._handlers:
            return Status.OK
        values = [
            _telemetry(value).view(np.recarray) if kind not in _NUMPY_TYPES else _NUMPY_TYPES[kind](value)
            for (_, kind, *_), value in zip(EVENTS[event], arguments, strict=True)
        ]
        params_view, flow_view = self.params.view(np.recarray), flow.view(np.recarray)
        steps = (StepCounter(),) if self._counts_steps[event] else ()
        try:
            with np.errstate(all="ignore"):  # as in compiled code, 1/0 is infinite and no event
                return Status(self._handlers[event](*steps, params_view[0], flow_view[0], *values))
        except CheckFailed as failed:
            place = self._places[failed.place]
            raise LawError(Mistake(where=f"law {self.name}, {event}", found=f"{place.found} ({place})")) from None


class HandCalledLaw:
    """A compiled law, its C functions called from Python as an engine calls them."""

    def __init__(self, law: CompiledLaw) -> None:
        self._law = law
        self.failed_at: Place | None = None  # of the last call
        self.name = law.name
        self.params = law.params
        self.flow_dtype = law.flow_dtype
        self.events = tuple(law.handler_address)
        self._functions = {event: _c_function(event, address) for event, address in law.handler_address.items()}

    def call(self, event: str, flow: Record, *arguments: Any) -> Status:
        """Call one handler on `flow`, shape (1,); what it raises is the status RAISED."""
        assert len(arguments) == len(EVENTS[event]), f"{event} takes {len(EVENTS[event])} arguments"
        if event not in self._functions:
            return Status.OK
        values = [
            _telemetry(value).ctypes.data if kind not in _C_TYPES else int(value)
            for (_, kind, *_), value in zip(EVENTS[event], arguments, strict=True)
        ]
        status = self._functions[event](self.params.ctypes.data, flow.ctypes.data, *values)
        self.failed_at = self._law.failed_place(status)
        return Status(status & STATUS_MASK)


def _c_function(event: str, address: int) -> Any:
    kinds = [_C_TYPES.get(argument.kind, ctypes.c_void_p) for argument in EVENTS[event]]
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, *kinds)(address)


def _telemetry(value: Record | None) -> Record:
    return _NO_TELEMETRY if value is None else value
