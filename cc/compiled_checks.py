"""Checks of compiled handlers, as instructions within the functions that have them.

A check that fails returns from its function at once with an error code of its own, which every caller hands on, as
Numba's functions do with exceptions; a `try` on the way has no part in it. The code is the number of the place plus 2;
1 is any exception without a place.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from fabrictune.cc.places import Check

FIRST_CODE = 2
STEPS_TYPE: Any = types.CPointer(types.int64)  # type: ignore[no-untyped-call]
_CODE = ir.IntType(32)


def _fail_if(context: Any, builder: Any, has_failed: Any, place: Any) -> None:
    with builder.if_then(has_failed, likely=False):
        code = builder.trunc(place, _CODE) if place.type.width > _CODE.width else place
        context.call_conv._return_errcode_raw(builder, builder.add(code, ir.Constant(_CODE, FIRST_CODE)))


@intrinsic
def _step(typing: Any, steps: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer, number = arguments
        left = builder.load(pointer)
        _fail_if(context, builder, builder.icmp_signed("==", left, left.type(0)), number)
        builder.store(builder.sub(left, left.type(1)), pointer)
        return context.get_dummy_value()

    return types.void(steps, place), generate


@intrinsic
def _divisor(typing: Any, value: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        divisor, number = arguments
        if isinstance(value, types.Float):
            _fail_if(context, builder, builder.fcmp_ordered("==", divisor, divisor.type(0)), number)
        elif isinstance(value, types.Integer | types.Boolean):
            _fail_if(context, builder, builder.icmp_signed("==", divisor, divisor.type(0)), number)
        return divisor

    return value(value, place), generate


@intrinsic
def _index(typing: Any, array: Any, index: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values, value, number = arguments
        if isinstance(array, types.Array) and array.ndim == 1 and isinstance(index, types.Integer):
            length = _length(context, builder, array, values)
            wide = context.cast(builder, value, index, types.intp)
            is_low = builder.icmp_signed("<", wide, builder.neg(length))
            is_high = builder.icmp_signed(">=", wide, length)
            _fail_if(context, builder, builder.or_(is_low, is_high), number)
        return value

    return index(array, index, place), generate


@intrinsic
def _fits(typing: Any, value: Any, bits: Any, place: Any) -> Any:
    if not isinstance(bits, types.IntegerLiteral):
        return None
    # The literal stays in the signature, by which Numba tells one check from another.
    return value(value, bits, place), _fitting(value, bits.literal_value)


@intrinsic
def _item(typing: Any, array: Any, value: Any, place: Any) -> Any:
    dtype = getattr(array, "dtype", None)
    generate = _fitting(value, _bits(dtype) if isinstance(dtype, types.Integer) else None)

    def of_item(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return generate(context, builder, signature, arguments[1:])

    return value(array, value, place), of_item


def _fitting(value: Any, bits: int | None) -> Any:
    """Return the instructions of a check that a value fits in so many bits; none where `bits` is None."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number, place = arguments[0], arguments[-1]
        if bits is not None and isinstance(value, types.Float):
            low, high = (number.type(sign * 2.0 ** (bits - 1)) for sign in (-1, 1))
            fits = builder.and_(builder.fcmp_ordered(">=", number, low), builder.fcmp_ordered("<", number, high))
            _fail_if(context, builder, builder.not_(fits), place)
        elif bits is not None and isinstance(value, types.Integer) and _bits(value) > bits:
            narrow = builder.sext(builder.trunc(number, ir.IntType(bits)), number.type)
            _fail_if(context, builder, builder.icmp_signed("!=", narrow, number), place)
        return number

    return generate


@intrinsic
def _raise(typing: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _fail_if(context, builder, ir.Constant(ir.IntType(1), 1), arguments[0])
        return context.get_dummy_value()

    return types.void(place), generate


def _bits(kind: Any) -> int:
    return int(kind.bitwidth)


def _length(context: Any, builder: Any, array: Any, value: Any) -> Any:
    from numba.np.arrayobj import make_array  # here, since it loads half of Numba

    return builder.extract_value(make_array(array)(context, builder, value).shape, 0)  # type: ignore[no-untyped-call]


COMPILED_CHECKS: dict[str, Any] = {
    Check.STEP: _step,
    Check.DIVISOR: _divisor,
    Check.INDEX: _index,
    Check.FITS: _fits,
    Check.ITEM: _item,
    Check.RAISE: _raise,
}
