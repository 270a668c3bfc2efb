"""Exit codes of nodes, as backends report them: below zero for a signal, as `subprocess` has them."""

UNKNOWN_CODE = -1  # of a node that has ended, where nobody knows how


def from_shell(code: int) -> int:
    """Return a code that a shell or a container's runtime reports, where 128 and more is a signal."""
    return 128 - code if code > 128 else code
