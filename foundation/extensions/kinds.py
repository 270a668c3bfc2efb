"""Kind of an extension: what a table takes, and where a file or a package has it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from fabrictune.foundation.errors import InputError, Mistake

Value = TypeVar("Value")

MAX_BYTES = 2**20  # of a file


def no_mistakes(_value: Any) -> tuple[Mistake, ...]:
    """Return none: the type says all that there is to check."""
    return ()


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[Value]):
    """What is extended: hash functions, laws and so on."""

    what: str  # as messages name it: "hash function"
    group: str  # of entry points: "fabrictune.hashes"
    value_type: type[Value]
    attribute: str = ""  # name of the entry in its module; "" where the module is the entry
    check: Callable[[Value], Iterable[Mistake]] = no_mistakes  # beyond the type
    error: type[InputError] = InputError


@dataclass(frozen=True, kw_only=True)
class Extension(Generic[Value]):
    """An entry from a file that the user trusts, with the digest of the file."""

    file: Path
    sha256: str
    value: Value = field(repr=False, compare=False)

    def __str__(self) -> str:
        return str(self.file)


@dataclass(frozen=True, kw_only=True)
class Installed:
    """An entry point of an installed package. Nothing of it has been imported."""

    name: str
    target: str  # "my_package.ring:BUILDER"
    package: str
    version: str

    @property
    def place(self) -> str:
        """Return where it is, for messages."""
        return f"{self.package} {self.version}: entry point {self.name} = {self.target}"


def is_path(name_or_path: str) -> bool:
    """Return whether a text names a file rather than an entry of a table."""
    return name_or_path.endswith(".py") or "/" in name_or_path
