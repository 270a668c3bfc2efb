"""Generation of machine code for a law's handlers: C functions `int64 NAME(Params*, Flow*, event arguments...)`.

Numba compiles each handler, and every plain Python function it calls, for the law's two records, with their checks. The
law's module itself stays plain Python. A C entry in front, written here in LLVM's language, turns pointers into records
and an exception or a failed check into `Status.RAISED`; Numba's own entries would do so in Python, whatever called
them, and take a third of the time to compile. All of a law becomes one object file, which refers to nothing of Numba's
(`is_self_contained`), so that it can be kept and linked again without it.

A status has 64 bits because a smaller one, returned through half a stack slot as Numba does, stalls the processor for
as long as the whole call takes.
"""

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir
from numba import from_dtype, njit, types
from numba.core.cgutils import pack_array
from numba.core.compiler_lock import global_compiler_lock

from fabrictune.cc.checked_law import CheckedFunction, CheckedLaw
from fabrictune.cc.compiled_checks import COMPILED_CHECKS, FIRST_CODE, STEPS_TYPE
from fabrictune.cc.diagnosis import cannot_compile, returns_no_status
from fabrictune.cc.interface import EVENTS, PLACE_SHIFT, TELEMETRY_DTYPE, Status
from fabrictune.cc.linker import entry_symbol
from fabrictune.cc.places import MAX_LOOP_STEPS

_TELEMETRY: Any = from_dtype(TELEMETRY_DTYPE)
_STATUS = types.int64
_POINTER = "TELEMETRY*"
_TELEMETRY_ARRAY: Any = types.Array(_TELEMETRY, 1, "C")
_HANDLER_TYPES = {"i4": types.int32, "i8": types.int64, "f8": types.float64, _POINTER: _TELEMETRY_ARRAY}
_C_TYPES = {"i4": ir.IntType(32), "i8": ir.IntType(64), "f8": ir.DoubleType(), _POINTER: ir.IntType(8).as_pointer()}
# Division as in C; no wrappers for callers that handlers do not have, which would take a third of the time to compile;
# no counted references, since nothing here is allocated.
_OPTIONS: Any = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}
_OF_C_LIBRARY = frozenset({"exp", "fmod", "log", "memcpy", "memmove", "memset", "pow", "sqrt"})


@dataclass(frozen=True, kw_only=True)
class MachineCode:
    """A law's handlers as an object file."""

    object_file: bytes
    is_self_contained: bool  # but for functions of the C library


def generate(law: CheckedLaw, params: np.dtype[np.void], flow: np.dtype[np.void]) -> MachineCode:
    """Return the machine code of all handlers of a law; raises LawError for Python that does not compile."""
    records = (from_dtype(params), from_dtype(flow))
    with global_compiler_lock:
        _load_numba()
        compiled = {
            event: _compile(handler, _argument_types(event, law.handlers[event], records))
            for event, handler in wrapped(law).items()
        }
        library = compiled["on_start"].target_context.codegen().create_library("law")
        library.enable_object_caching()
        for event, function in compiled.items():
            library.add_linking_library(function.library)
            library.add_ir_module(_entry(event, function, library.create_ir_module(event)))
        library.finalize()
        unresolved = {function.name for function in library._final_module.functions if function.is_declaration}
        foreign = {name for name in unresolved if not name.startswith("llvm.")} - _OF_C_LIBRARY
        return MachineCode(
            object_file=library._get_compiled_object(),
            is_self_contained=not foreign and not library.has_dynamic_globals,
        )


def _load_numba() -> None:
    """Load what Numba does with its first function, but not SciPy's linear algebra, which takes as long as a law.

    In this process Numba's `np.convolve` and `np.correlate` then take its own loops; nothing else is changed.
    """
    if "numba.np.arraymath" in sys.modules:
        return
    from numba.np import linalg

    def is_not_there() -> None:
        raise ImportError

    ensure_blas = linalg.ensure_blas
    linalg.ensure_blas = is_not_there
    try:
        import numba.np.arraymath  # noqa: F401
    finally:
        linalg.ensure_blas = ensure_blas


def wrapped(law: CheckedLaw) -> dict[str, Any]:
    """Return the handlers of a law as functions of Numba, by event; the law's own stay as they are."""
    return law.bind(COMPILED_CHECKS, lambda function: njit(function, **_OPTIONS))


def _argument_types(event: str, handler: CheckedFunction, records: tuple[Any, Any]) -> tuple[Any, ...]:
    steps = (STEPS_TYPE,) if handler.counts_steps else ()
    return (*steps, *records, *(_HANDLER_TYPES[argument.kind] for argument in EVENTS[event]))


def _compile(handler: Any, argument_types: tuple[Any, ...]) -> Any:
    """Return what Numba makes of a handler for these types."""
    try:
        handler.compile(argument_types)
    except Exception as error:  # Numba raises KeyError, AttributeError and its own, as the mistake has it
        records = (*(kind for kind in argument_types if isinstance(kind, types.Record)), _TELEMETRY)
        fields = list(dict.fromkeys(name for record in records for name in record.fields))
        raise cannot_compile(handler.py_func, error, fields) from None
    compiled = handler.overloads[argument_types]
    if not isinstance(compiled.signature.return_type, types.Integer | types.IntEnumMember):
        raise returns_no_status(handler.py_func)
    return compiled


def _entry(event: str, compiled: Any, module: Any) -> Any:
    """Write the C function of one handler into an LLVM module, and return that."""
    context, of_numba = compiled.target_context, compiled.target_context.call_conv
    descriptor = compiled.fndesc
    pointer = _C_TYPES[_POINTER]
    c_type = ir.FunctionType(
        _C_TYPES["i8"], [pointer, pointer, *(_C_TYPES[argument.kind] for argument in EVENTS[event])]
    )
    entry = ir.Function(module, c_type, entry_symbol(event))
    builder = ir.IRBuilder(entry.append_basic_block())
    numba_type = of_numba.get_function_type(descriptor.restype, descriptor.argtypes)
    handler = ir.Function(module, numba_type, descriptor.llvm_func_name)
    # Numba passes a record as a pointer, so the entry's pointers are the handler's records.
    kinds = [kind for kind in descriptor.argtypes if isinstance(kind, types.Record)]
    values = [
        builder.bitcast(value, context.get_value_type(kind)) for value, kind in zip(entry.args[:2], kinds, strict=True)
    ]
    by_name = dict(zip((argument.name for argument in EVENTS[event]), entry.args[2:], strict=True))
    for name, kind, *_ in EVENTS[event]:
        value = by_name[name]
        values.append(_hops(context, builder, value, by_name["num_hops"]) if kind == _POINTER else value)
    if descriptor.argtypes[0] == STEPS_TYPE:
        values.insert(0, _new_counter(builder))
    call, value = of_numba.call_function(builder, handler, descriptor.restype, descriptor.argtypes, values)
    status = context.cast(builder, value, compiled.signature.return_type, _STATUS)
    builder.ret(builder.select(call.is_error, _failure(builder, call.code), status))
    return module


def _new_counter(builder: Any) -> Any:
    """Return a pointer to the loop steps that one call has."""
    counter = builder.alloca(_C_TYPES["i8"])
    builder.store(ir.Constant(_C_TYPES["i8"], MAX_LOOP_STEPS), counter)
    return counter


def _failure(builder: Any, code: Any) -> Any:
    """Return the status of a handler that ended with an error code: RAISED, and the number of the place plus 1."""
    place = builder.sext(builder.sub(code, code.type(FIRST_CODE - 1)), _C_TYPES["i8"])
    has_place = builder.icmp_signed(">=", code, code.type(FIRST_CODE))
    above = builder.shl(builder.select(has_place, place, place.type(0)), place.type(PLACE_SHIFT))
    return builder.or_(above, above.type(int(Status.RAISED)))


def _hops(context: Any, builder: Any, pointer: Any, num_hops: Any) -> Any:
    """Return the records of telemetry at a pointer as an array of Numba's."""
    from numba.np.arrayobj import make_array, populate_array  # here, since it loads half of Numba

    array = make_array(_TELEMETRY_ARRAY)(context, builder)  # type: ignore[no-untyped-call]
    item_bytes = context.get_constant(types.intp, TELEMETRY_DTYPE.itemsize)
    populate_array(  # type: ignore[no-untyped-call]
        array,
        data=builder.bitcast(pointer, array.data.type),
        shape=pack_array(builder, [builder.sext(num_hops, _C_TYPES["i8"])]),  # type: ignore[no-untyped-call]
        strides=pack_array(builder, [item_bytes]),  # type: ignore[no-untyped-call]
        itemsize=item_bytes,
        meminfo=None,
        parent=None,
    )
    return array._getvalue()
