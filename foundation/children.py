"""Python processes that import nothing from the current directory.

`python -m` and `python -c` search the current directory before the standard library, so a file `json.py` in it would
run. A child that this package starts gets `-P`; one that a library starts gets the same from its environment. This
module imports only what the interpreter has loaded before it.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SAFE_PATH = "PYTHONSAFEPATH"
_SET_PARENT_DEATH_SIGNAL, _SET_CHILD_SUBREAPER, _SIGKILL = 1, 36, 9  # prctl(2)


def module_command(module: str, *arguments: str, python: str = sys.executable) -> list[str]:
    """Return the words that run a module as a program; Python is 3.11 or later."""
    return [python, "-P", "-m", module, *arguments]


def ending_with_parent() -> list[str]:
    """Return the words before a command that the kernel is to kill when the thread that starts it ends.

    They are none where setpriv is missing, which comes with util-linux: such a command outlives a killed parent.
    """
    from shutil import which

    setpriv = which("setpriv")
    return [setpriv, "--pdeathsig", "KILL"] if setpriv else []


def end_with_parent(parent: int) -> None:
    """Let the kernel kill this process when the thread that started it ends; `parent` is that thread's process.

    A process that is stopped ends too. Where the parent is gone already, this one ends here. Linux; without effect
    elsewhere.
    """
    import ctypes

    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_SET_PARENT_DEATH_SIGNAL, _SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)


def adopt_orphans() -> None:
    """Let processes whose parent ends become children of this one, if they descend from it (PR_SET_CHILD_SUBREAPER)."""
    import ctypes

    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@contextmanager
def safe_path() -> Iterator[None]:
    """Give `-P` to the Python processes that libraries start in the block."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = before


def forget_current_directory() -> None:
    """Remove what `python -m` has put in front of the module search path."""
    if not sys.flags.safe_path:
        del sys.path[0]
