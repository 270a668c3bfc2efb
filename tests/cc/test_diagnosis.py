"""Diagnosis of a compiler's error: the author's line, and what is wrong there."""

from types import FunctionType

from fabrictune.cc.diagnosis import cannot_compile


def handler() -> int:
    """Return a number; only its place in this file matters."""
    return 0


def test_colors_of_the_compilers_message_are_left_out() -> None:
    """Numba colors its messages in a process that has colorama, and finds the line within them."""
    assert isinstance(handler, FunctionType)
    line = handler.__code__.co_firstlineno + 2
    error = TypeError(
        "Failed in nopython mode pipeline (step: nopython frontend)\n"
        "\x1b[1m\x1b[1mCannot cast text to number\x1b[0m\n"
        f'\x1b[1mFile "\x1b[35m{__file__}\x1b[0m\x1b[1m", line {line}:\x1b[0m'
    )
    message = str(cannot_compile(handler, error, []))
    assert message.startswith(f"{__file__}:{line}: handler: cannot be compiled (Cannot cast text to number)\n")
