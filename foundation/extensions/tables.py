"""Tables of what a scenario can name: the project's own entries, and those of installed packages.

A package adds an entry by an entry point in the table's group. Entry points are looked up where a name is not the
project's own, and where all names are listed; an entry is imported when it is asked for. The project's own names win.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any, Generic, TypeVar

from fabrictune.foundation.errors import Mistake
from fabrictune.foundation.extensions.files import load_file, take_entry
from fabrictune.foundation.extensions.guards import Origin, describe_error, guarded
from fabrictune.foundation.extensions.kinds import Extension, Installed, Kind, Value

Made = TypeVar("Made")


class Table(Mapping[str, Value]):
    """A mapping of names to entries."""

    def __init__(self, kind: Kind[Value], own: Mapping[str, Value]) -> None:
        self.kind = kind
        self.own = own
        self._loaded: dict[str, Value] = {}

    def __getitem__(self, name: str) -> Value:
        """Return an entry; raises KeyError, and the kind's error for one of a package that cannot be used."""
        if name in self.own:
            return self.own[name]
        if name not in self._loaded:
            self._loaded[name] = self._load(self._points[name])
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in self._points

    def __iter__(self) -> Iterator[str]:
        return chain(self.own, (name for name in self._points if name not in self.own))

    def __len__(self) -> int:
        return len(self.own.keys() | self._points.keys())

    def load(self, path: Path, *, trust_code: bool) -> Extension[Value]:
        """Return the entry in a file; raises UntrustedCodeError without `trust_code`, and the kind's error."""
        return load_file(self.kind, path, self, trust_code=trust_code)

    @property
    def installed(self) -> dict[str, Installed]:
        """The entry points of the table's group by name, without those whose name is the project's own."""
        return {name: _describe(points[0]) for name, points in self._points.items() if name not in self.own}

    @property
    def hidden(self) -> tuple[Installed, ...]:
        """Entry points that cannot be named, because the project or another package has the name."""
        return tuple(
            _describe(point)
            for name, points in self._points.items()
            for point in (points if name in self.own else points[1:])
        )

    @cached_property
    def _points(self) -> dict[str, tuple[EntryPoint, ...]]:
        points: dict[str, tuple[EntryPoint, ...]] = {}
        for point in sorted(entry_points(group=self.kind.group), key=lambda point: (point.name, _package(point))):
            if point not in points.get(point.name, ()):
                points[point.name] = (*points.get(point.name, ()), point)
        return points

    def _load(self, points: tuple[EntryPoint, ...]) -> Value:
        point, described = points[0], _describe(points[0])
        if len(points) > 1:
            found = f"{self.kind.what} of two packages: {', '.join(_package(point) for point in points)}"
            raise self.kind.error(Mistake(where=point.name, found=found, next_step="uninstall one of them"))
        origin = Origin(root=_root_of(point), name=described.place)
        try:
            value = point.load()
        except (Exception, SystemExit) as error:
            step = f"repair or uninstall {described.package}"
            mistake = Mistake(where=origin.place_of(error), found=describe_error(error), next_step=step)
            raise self.kind.error(mistake) from error
        return take_entry(self.kind, guarded(value, origin) if point.attr else value, where=described.place)


@dataclass(frozen=True, eq=False)
class Extensible:
    """Annotation of a field that takes a name of a table or the file of an extension.

    Bound, the field is the name, or the Path of the file; `load` puts an Extension in the place of the Path.
    """

    table: Table[Any]


def extensible(hint: Any) -> Extensible | None:
    """Return the table that a type is annotated with, if it is."""
    return next((entry for entry in getattr(hint, "__metadata__", ()) if isinstance(entry, Extensible)), None)


class Derived(Mapping[str, Made], Generic[Value, Made]):
    """What a function makes of each entry of a table, once it is asked for, and some more."""

    def __init__(self, table: Mapping[str, Value], make: Callable[[Value], Made], **more: Made) -> None:
        self._table, self._make, self._more = table, make, more
        self._made: dict[str, Made] = {}

    def __getitem__(self, name: str) -> Made:
        if name in self._more:
            return self._more[name]
        if name not in self._made:
            self._made[name] = self._make(self._table[name])
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._table or name in self._more

    def __iter__(self) -> Iterator[str]:
        return chain(self._table, self._more)

    def __len__(self) -> int:
        return len(self._table) + len(self._more)


def _describe(point: EntryPoint) -> Installed:
    version = point.dist.version if point.dist else "unknown"
    return Installed(name=point.name, target=point.value, package=_package(point), version=version)


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "unknown"


def _root_of(point: EntryPoint) -> Path | None:
    """Return the folder of an entry point's package, or its file where it is one module; nothing is imported."""
    spec = find_spec(point.module.partition(".")[0])
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin)
