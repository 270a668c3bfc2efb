"""What an error of a rank is a sign of, by its class and the words that the trainer raises it with.

An error is its rank's own, or what another's fault does to it: a rank that is killed makes its peers fail within a
millisecond, and theirs may be reported first. A text that no sign matches is the rank's own, unless it was raised while
the rank waited for a request.

Source: the texts of `data/loader.py`, `data/token_file.py`, `data/batches.py`, `collectives/startup`, `checkpoint`,
torch 2.13's gloo and NCCL process groups, and errno(3).
"""

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["own", "peers", "loader", "store", "data", "checkpoint", "storage full", "memory"]


@dataclass(frozen=True, kw_only=True)
class ErrorSign:
    """Errors of one class whose text matches."""

    kind: Kind
    classes: tuple[str, ...]  # () for any
    pattern: str = ""

    def matches(self, name: str, text: str) -> bool:
        """Return whether an error has the class, and the text."""
        return (not self.classes or name in self.classes) and re.search(self.pattern, text, re.IGNORECASE) is not None


# The first that matches counts.
SIGNS = (
    ErrorSign(kind="storage full", classes=(), pattern=r"No space left on device|Disk quota exceeded|\bENOSPC\b"),
    ErrorSign(kind="data", classes=("TokenFileError",)),
    ErrorSign(kind="checkpoint", classes=("CheckpointError",)),
    ErrorSign(kind="peers", classes=("LoaderError",), pattern=r"no batch within"),
    ErrorSign(kind="loader", classes=("LoaderError",)),
    ErrorSign(kind="peers", classes=("StartupError",), pattern=r"^group .*after [\d.]+ s"),
    ErrorSign(kind="own", classes=("StartupError",), pattern=r"has joined this attempt before"),
    ErrorSign(kind="store", classes=("StartupError",)),
    ErrorSign(kind="store", classes=("DistStoreError",)),
    ErrorSign(kind="memory", classes=("OutOfMemoryError", "MemoryError")),
    ErrorSign(kind="memory", classes=("RuntimeError",), pattern=r"can't allocate memory|CUDA out of memory"),
    ErrorSign(
        kind="peers",
        classes=(
            "ConnectionResetError",
            "BrokenPipeError",
            "ConnectionRefusedError",
            "ConnectionAbortedError",
            "EOFError",
        ),
    ),
    ErrorSign(
        kind="peers",
        classes=("RuntimeError", "DistBackendError", "DistNetworkError", "DistError", "TimeoutError", "OSError"),
        pattern=r"ranks that have not written their files|"
        r"Connection (closed|reset)|connect.* (timed out|refused)|Broken pipe|Timed out waiting|timed out|"
        r"\[.*gloo/transport|Socket Timeout|remote process exited|NCCL (communicator was aborted|error.*remote)|"
        r"Watchdog caught collective|No route to host|Network is unreachable|Software caused connection abort",
    ),
)


def kind_of_error(error: str, *, is_waiting: bool) -> Kind:
    """Return what an error "ClassName: text" is a sign of; `is_waiting` says that it was raised within a wait."""
    name, _, text = error.partition(": ")
    short_name = name.rpartition(".")[2]
    for sign in SIGNS:
        if sign.matches(short_name, text):
            return sign.kind
    return "peers" if is_waiting and short_name in ("RuntimeError", "DistBackendError") else "own"


def signature(error: str) -> str:
    """Return an error without its numbers and addresses, the same where it is raised again elsewhere."""
    text = re.sub(r"0x[0-9a-fA-F]+|\d+(\.\d+)*", "#", error)
    return re.sub(r"\s+", " ", text).strip()[:300]
