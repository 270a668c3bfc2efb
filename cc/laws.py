"""Table of laws, and loading of a law by name or by path.

A law is code. One outside the project runs only with the user's leave, given on the command line and never in a
scenario file, so that a scenario from elsewhere stays data.
"""

from pathlib import Path
from types import ModuleType

from fabrictune.cc import barre, dcqcn, dcqcn_firmware, dctcp, hpcc, hybrid, none, nscc, swift, timely
from fabrictune.cc.law_rules import require_law
from fabrictune.foundation.errors import LawError, Mistake, UntrustedCodeError, require_one_of

LAWS: dict[str, ModuleType] = {
    "none": none,
    "barre": barre,
    "dcqcn": dcqcn,
    "dcqcn_firmware": dcqcn_firmware,
    "dctcp": dctcp,
    "hpcc": hpcc,
    "hybrid": hybrid,
    "nscc": nscc,
    "swift": swift,
    "timely": timely,
}

MAX_LAW_BYTES = 2**20


def load_law(name_or_path: str, *, trust_code: bool = False) -> ModuleType:
    """Return the law called `name_or_path`, or the one in that file if it ends in `.py` or has a slash.

    Raises LawError for an unknown name or a file that is no law, UntrustedCodeError for a file without `trust_code`.
    """
    if not is_path(name_or_path):
        return LAWS[require_one_of(name_or_path, list(LAWS), where="law", what="law", error=LawError)]
    path = Path(name_or_path)
    text = _read(path)
    if not trust_code:
        raise UntrustedCodeError(
            Mistake(
                where=str(path),
                found="a law in a file outside the project, which may do anything on this machine",
                next_step="read it, then run again with --trust-code",
            )
        )
    module = _execute(path, text)
    require_law(module)
    return module


def is_path(name_or_path: str) -> bool:
    """Return whether the text names a file rather than one of LAWS."""
    return name_or_path.endswith(".py") or "/" in name_or_path


def _read(path: Path) -> str:
    if not path.is_file():
        raise LawError(
            Mistake(where=str(path), found="no such file", allowed=f"a Python file, or one of {', '.join(LAWS)}")
        )
    if path.suffix != ".py":
        raise LawError(Mistake(where=str(path), found="not a Python file", allowed="a file ending in .py"))
    try:
        with path.open("rb") as file:
            content = file.read(MAX_LAW_BYTES + 1)
        if len(content) > MAX_LAW_BYTES:
            found, next_step = "too large for a law", "keep in the file what the law needs"
            raise LawError(Mistake(where=str(path), found=found, allowed=f"{MAX_LAW_BYTES} bytes", next_step=next_step))
        return content.decode("utf-8-sig")
    except OSError as error:
        raise LawError(Mistake(where=str(path), found=f"cannot be read ({error.strerror})")) from None
    except UnicodeDecodeError:
        raise LawError(Mistake(where=str(path), found="not text in UTF-8")) from None


def _execute(path: Path, text: str) -> ModuleType:
    """Run the file as a module of its own, without leaving compiled files next to it."""
    module = ModuleType(path.stem)
    module.__file__ = str(path.resolve())
    try:
        code = compile(text, module.__file__, "exec")
    except (SyntaxError, ValueError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise LawError(Mistake(where=f"{path}{line}", found=f"not valid Python ({reason})")) from None
    try:
        exec(code, vars(module))  # noqa: S102 - the user has given leave
    except (Exception, SystemExit) as error:
        raise LawError(
            Mistake(
                where=f"{path}:{_line_in(path, error)}",
                found=f"raised {type(error).__name__} while being imported: {error}",
            )
        ) from None
    return module


def _line_in(path: Path, error: BaseException) -> int:
    """Return the line of `path` that was running when the error was raised."""
    resolved = str(path.resolve())
    line = 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == resolved:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
