"""Compile a law's handlers to C functions: `int64 handler(Params*, Flow*, event arguments...)`.

Numba compiles each handler, and every plain Python function it calls, for the law's two records; a C entry in front
turns pointers into records and an exception into `Status.RAISED`. The law's module itself stays plain Python.

The entry asks Numba's calling convention for the error flag of the call. A `try` around the call would do the same and
runs as fast, but takes 0.15 s more to compile, for each handler. A status has 64 bits because a smaller one, returned
through half a stack slot as Numba does, stalls the processor for as long as the whole call takes.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import FunctionType, ModuleType
from typing import Any

from llvmlite import ir
from numba import cfunc, from_dtype, njit, types
from numba.core.cgutils import unpack_tuple
from numba.extending import intrinsic
from numba.np.numpy_support import carray

from cc.checking import handlers, reads_telemetry, require_law
from cc.diagnosis import calls_itself, cannot_compile, returns_no_status
from cc.interface import EVENTS, TELEMETRY_DTYPE, CompiledLaw, Status
from cc.records import flow_dtype, law_name, params_record

_TELEMETRY: Any = from_dtype(TELEMETRY_DTYPE)
_STATUS = types.int64
_POINTER = "TELEMETRY*"
_HANDLER_TYPES = {
    "i4": types.int32,
    "i8": types.int64,
    "f8": types.float64,
    _POINTER: types.Array(_TELEMETRY, 1, "C"),
}
# Division as in C; no wrappers for callers that handlers do not have, which would take a third of the time to compile.
_OPTIONS: Any = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_C_TYPES = _HANDLER_TYPES | {_POINTER: types.CPointer(_TELEMETRY)}  # type: ignore[no-untyped-call]


def compile_law(module: ModuleType, settings: Mapping[str, float] | None = None) -> CompiledLaw:
    """Return the law ready for an engine, its parameters at their defaults but for `settings`.

    Raises LawError for a module that is no law, an unknown or impossible setting, and for Python that does not compile.
    """
    require_law(module)
    params = params_record(module, settings)
    flow = flow_dtype(module)
    records = (from_dtype(params.dtype), from_dtype(flow))
    wrap = FunctionWrapper()
    entries = {event: _compile_entry(event, wrap(handler), records) for event, handler in handlers(module).items()}
    return CompiledLaw(
        name=law_name(module),
        source=inspect.getsource(module),
        handler_address={event: entry.address for event, entry in entries.items()},
        params=params,
        flow_dtype=flow,
        uses_telemetry=reads_telemetry(module),
        keep_alive=tuple(entries.values()),
    )


def with_settings(law: CompiledLaw, module: ModuleType, settings: Mapping[str, float] | None = None) -> CompiledLaw:
    """Return a law that was compiled from `module` with other settings, which needs no compiling; raises LawError."""
    return replace(law, params=params_record(module, settings))


class FunctionWrapper:
    """Wraps plain functions for Numba, and with them the plain functions they name, each once."""

    def __init__(self) -> None:
        self._wrapped: dict[FunctionType, Any] = {}
        self._under_way: set[FunctionType] = set()

    def __call__(self, function: FunctionType) -> Any:
        if function in self._under_way:
            raise calls_itself(function)
        if function not in self._wrapped:
            self._under_way.add(function)
            self._wrapped[function] = self._wrap(function)
            self._under_way.remove(function)
        return self._wrapped[function]

    def _wrap(self, function: FunctionType) -> Any:
        """Return a compilable copy of the function whose globals name wrapped functions; the original keeps its own."""
        names: dict[str, Any] = dict(function.__globals__)
        for name in function.__code__.co_names:
            if isinstance(names.get(name), FunctionType):
                names[name] = self(names[name])
        copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
        return njit(copy, **_OPTIONS)


def _compile_entry(event: str, handler: Any, records: tuple[Any, Any]) -> Any:
    """Return the C function of one handler."""
    pointers = [types.CPointer(record) for record in records]  # type: ignore[no-untyped-call]
    signature = _STATUS(*pointers, *(_C_TYPES[kind] for _, kind in EVENTS[event]))
    call = _call_with_status(handler, records, [_HANDLER_TYPES[kind] for _, kind in EVENTS[event]])
    return cfunc(signature, error_model="numpy")(_ENTRIES[event](call))


def _call_with_status(handler: Any, records: tuple[Any, Any], event_types: list[Any]) -> Any:
    """Return a function `(params, flow, event)` for entries: it calls the handler and yields its status, or RAISED."""
    argument_types = (*records, *event_types)
    try:
        handler.compile(argument_types)
    except Exception as error:  # Numba raises KeyError, AttributeError and its own, as the mistake has it
        fields = list(dict.fromkeys(name for record in (*records, _TELEMETRY) for name in record.fields))
        raise cannot_compile(handler.py_func, error, fields) from None
    compiled = handler.overloads[argument_types]
    if not isinstance(compiled.signature.return_type, types.Integer | types.IntEnumMember):
        raise returns_no_status(handler.py_func)

    def generate(context: Any, builder: Any, _signature: Any, arguments: tuple[Any, Any, Any]) -> Any:
        # Numba passes a record as a pointer, so the entry's pointers are the handler's records.
        params, flow, event = arguments
        context.active_code_library.add_linking_library(compiled.library)
        values = (params, flow, *unpack_tuple(builder, event))  # type: ignore[no-untyped-call]
        call, value = context.call_internal_no_propagate(builder, compiled.fndesc, compiled.signature, values)
        status = context.cast(builder, value, compiled.signature.return_type, _STATUS)
        return builder.select(call.is_error, ir.Constant(status.type, int(Status.RAISED)), status)

    return intrinsic(lambda _typing, params, flow, event: (_STATUS(params, flow, event), generate))


def _entry_of_time(call: Any) -> Callable[..., Any]:
    return lambda params, flow, now_ps: call(params, flow, (now_ps,))


def _entry_of_time_and_number(call: Any) -> Callable[..., Any]:
    return lambda params, flow, now_ps, number: call(params, flow, (now_ps, number))


def _entry_of_acknowledgement(call: Any) -> Callable[..., Any]:
    def entry(
        params: Any,
        flow: Any,
        now_ps: int,
        acked_bytes: int,
        rtt_ps: int,
        endpoint_delay_ps: int,
        num_hops: int,
        is_ecn_marked: int,
        telemetry: Any,
    ) -> Any:
        hops = carray(telemetry, num_hops)
        return call(params, flow, (now_ps, acked_bytes, rtt_ps, endpoint_delay_ps, num_hops, is_ecn_marked, hops))

    return entry


_ENTRIES: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "on_start": _entry_of_time,
    "on_ack": _entry_of_acknowledgement,
    "on_cnp": _entry_of_time,
    "on_timer": _entry_of_time_and_number,
    "on_nack": _entry_of_time,
    "on_timeout": _entry_of_time,
    "on_send": _entry_of_time_and_number,
}
