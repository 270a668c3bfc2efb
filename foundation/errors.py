"""The error tree: every mistake a user can make has a class, a place, and a next step.

A `Mistake` says where it is, what was found, what is allowed, which allowed name is nearest, and what to do next. An
error carries one or more of them, so that a file with five mistakes is reported once and not five times. A programmer's
mistake is an `assert`, never one of these.
"""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MAX_TOLD = 100  # mistakes in the text of an error; `mistakes` has all


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """One mistake in an input."""

    where: str  # "file.yaml:7: fabric.link_rate", a file, a key path, or a command-line option
    found: str  # the value there
    allowed: str = ""  # the values allowed there
    nearest: str = ""  # the allowed name closest to what was found
    next_step: str = ""  # what to do about it

    def __str__(self) -> str:
        lines = [f"{self.where}: {self.found}" if self.where else self.found]
        if self.nearest:
            lines.append(f"  did you mean {self.nearest!r}?")
        if self.allowed:
            lines.append(f"  allowed: {self.allowed}")
        if self.next_step:
            lines.append(f"  next: {self.next_step}")
        return "\n".join(lines)


class FabrictuneError(Exception):
    """A mistake that a user can correct. `exit_code` is the exit code of the command line."""

    exit_code = 2

    def __init__(self, *mistakes: Mistake) -> None:
        assert mistakes, "an error names at least one mistake"
        lines = [str(mistake) for mistake in mistakes[:MAX_TOLD]]
        if len(mistakes) > MAX_TOLD:
            lines.append(f"and {len(mistakes) - MAX_TOLD:,} more mistakes, {len(mistakes):,} in all")
        super().__init__("\n".join(lines))
        self.mistakes = mistakes


class InputError(FabrictuneError):
    """A file, option or value that cannot be used as it is."""


class UnitError(InputError):
    """A quantity without a unit, with the wrong unit, or that is no whole number of the base unit."""


class ScenarioError(InputError):
    """A scenario file that breaks its schema or asks for what does not exist."""


class FabricError(InputError):
    """A fabric that breaks one of its rules, or a topology file that does not describe one."""


class RouteError(InputError):
    """A queue pair whose endpoints no path joins."""


class TraceError(InputError):
    """A communication or traffic trace that is not well formed."""


class RecordError(InputError):
    """A run record that is missing, incomplete or of another version."""


class LawError(InputError):
    """A congestion-control law that cannot be loaded, or that misbehaved while running."""


class TokenFileError(InputError):
    """A token file that is foreign, cut short or damaged, has ids beyond its vocabulary, or doesn't fit its use."""


class CheckpointError(InputError):
    """A checkpoint of a training that is missing, incomplete or damaged, or a place where none can be kept."""


class RefusedError(InputError):
    """A setting that the ranks of a job refused together before its first step; all raise it, and one reports it."""


class UntrustedCodeError(InputError):
    """A scenario that names code outside the project without leave to run it."""


class ExtensionError(InputError):
    """Code of an extension that raised something else than a FabrictuneError; the place is its own line."""


class UnavailableError(FabrictuneError):
    """Something that had to be collected or run cannot be had on this machine."""

    exit_code = 3


class StartupError(UnavailableError):
    """Ranks that could not meet: a store that cannot be used, or ranks that are missing or come twice."""


class LoaderError(UnavailableError):
    """A loader of training data that cannot be reached, has ended, or does not deliver."""


class FabrictuneWarning(UserWarning):
    """A warning that stops nothing: a file cut short, a value filled in."""


def nearest_name(found: str, allowed: Iterable[str]) -> str:
    """Return the allowed name most like `found`, whatever its case, or "" if none is like it."""
    name_by_lower = {name.lower(): name for name in allowed}
    matches = difflib.get_close_matches(found.lower(), name_by_lower, n=1, cutoff=0.6)
    return name_by_lower[matches[0]] if matches else ""


def quote(found: str) -> str:
    """Return text as a message shows it: in quotes, and cut to 60 characters."""
    return repr(found if len(found) <= 60 else f"{found[:57]}...")


def require_one_of(found: str, allowed: Sequence[str], *, where: str, what: str, error: type[FabrictuneError]) -> str:
    """Return `found` if it is one of `allowed`; otherwise raise `error`, naming the nearest."""
    if found in allowed:
        return found
    raise error(
        Mistake(
            where=where,
            found=f"unknown {what} {quote(found)}",
            allowed=", ".join(allowed),
            nearest=nearest_name(found, allowed),
        )
    )
