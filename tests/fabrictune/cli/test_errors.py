"""What is the user's to mend, what the machine's, and what ours."""

import pytest

from fabrictune.cli.framework.errors import describe_failure
from fabrictune.foundation.errors import Mistake, RecordError, UnavailableError


@pytest.mark.parametrize(
    ("error", "message", "exit_code"),
    [
        (RecordError(Mistake(where="runs/x", found="no record")), "runs/x: no record", 2),
        (PermissionError(13, "Permission denied", "/runs"), "/runs: Permission denied", 2),
        (OSError(28, "No space left on device"), "No space left on device", 2),
        (OSError("pyarrow could not write"), "pyarrow could not write", 2),
        (MemoryError(), "this machine has not enough memory\n  next: ask for a smaller fabric or run", 3),
        (
            ImportError("cannot import name '_engine' from 'netsim'", name="netsim"),
            "netsim: the compiled engine is missing, or built for another Python\n  next: fabrictune doctor",
            3,
        ),
    ],
)
def test_what_can_be_mended_is_a_message(error: Exception, message: str, exit_code: int) -> None:
    """A disk that is full, a folder that is shut and an engine that is not built are no mistakes of ours."""
    failure = describe_failure(error)
    assert failure is not None
    assert (str(failure), failure.exit_code) == (message, exit_code)


@pytest.mark.parametrize("error", [ValueError("bug"), KeyError("bug"), ImportError("numpy"), AssertionError("bug")])
def test_a_mistake_of_ours_stays_one(error: Exception) -> None:
    """What no user can mend keeps its traceback, so that it is reported and mended here."""
    assert describe_failure(error) is None


def test_what_is_unavailable_is_exit_code_3() -> None:
    """Could not collect is not the same as wrong input."""
    assert UnavailableError(Mistake(where="", found="no device")).exit_code == 3
