"""Reasons why a measurement stopped before its end, in words that its record keeps."""

CTRL_C = "Ctrl-C"


def reason_of(error: BaseException) -> str:
    """Return what to say of an error that ended a measurement, or of an interrupt."""
    return CTRL_C if isinstance(error, KeyboardInterrupt) else str(error)
