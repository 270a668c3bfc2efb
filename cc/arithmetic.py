"""Arithmetic that rounds the same in Python and in compiled code.

`a ** n` and `math.exp` go to different library routines when a law is compiled and differ in the last bit; products
do not, since IEEE 754 fixes them.
"""


def integer_power(base: float, exponent: int) -> float:
    """Return `base` to a whole power of 0 or more, by repeated squaring: at most 2 log2(exponent) products."""
    result = 1.0
    while exponent > 0:
        if exponent % 2 == 1:
            result = result * base
        base = base * base
        exponent = exponent // 2
    return result
