"""Choice of a fabric by a scenario or a command: built by name from settings, or read from a topology file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fabrictune.foundation.documents import Key, key_path
from fabrictune.foundation.errors import InputError, Mistake, require_one_of
from fabrictune.foundation.settings.binding import Choice, Chosen, bind
from fabrictune.foundation.settings.mistakes import to_mistakes
from fabrictune.foundation.settings.quantities import key_of
from fabrictune.foundation.units import LINK_RATES, MAX_LINK_RATE_BPS, format_rate
from fabrictune.scenario.assignments import parse_setting
from fabrictune.topology.builders import BUILDERS
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.files import write_fabric
from fabrictune.topology.graphs import write_graphml
from fabrictune.topology.importers import IMPORTERS, import_fabric
from fabrictune.topology.link_overrides import LinkOverride, override_links

WRITERS = {".json": write_fabric, ".graphml": write_graphml}


@dataclass(frozen=True, kw_only=True)
class FabricFile:
    """A fabric described in a topology file."""

    file: Path = field(metadata={"help": "topology file"})
    format: str | None = field(
        default=None, metadata={"help": "by default recognised from the file", "one_of": tuple(IMPORTERS)}
    )
    rate_bps: int | None = field(default=None, metadata={"help": "rate of every link, in place of the file's"})
    cable_mm: int | None = field(default=None, metadata={"help": "length of every cable, in place of the file's"})
    delay_ps: int | None = field(default=None, metadata={"help": "delay of every link, in place of a cable's"})
    links: tuple[LinkOverride, ...] = field(default=(), metadata={"help": "the same between two tiers"})

    def __post_init__(self) -> None:
        if self.format is not None:
            require_one_of(self.format, tuple(IMPORTERS), where="format", what="format", error=InputError)
        self.overrides()

    def overrides(self) -> tuple[LinkOverride, ...]:
        """Return what takes the place of the file's values, of all links first; raises InputError."""
        of_all: tuple[LinkOverride, ...] = ()
        if not self.rate_bps is self.cable_mm is self.delay_ps is None:
            of_all = (LinkOverride(rate_bps=self.rate_bps, cable_mm=self.cable_mm, delay_ps=self.delay_ps),)
        return (*of_all, *self.links)


FABRIC_CHOICE = Choice("builder", {**{name: builder.spec for name, builder in BUILDERS.items()}, "file": FabricFile})


def make_fabric(chosen: Chosen) -> Fabric:
    """Build or import a fabric; raises InputError."""
    if isinstance(chosen.spec, FabricFile):
        imported = import_fabric([chosen.spec.file], chosen.spec.format)
        return override_links(imported, chosen.spec.overrides(), where="fabric.links")
    _check_rates(chosen.spec)
    return BUILDERS[chosen.name].build(chosen.spec)


def build_from_settings(builder: str, settings: Sequence[str]) -> Fabric:
    """Build a fabric from texts such as `radix=8`, with the keys of a scenario; raises InputError."""
    return build_named(builder, dict(map(parse_setting, settings)), where="BUILDER")


def build_named(builder: str, values: Mapping[str, Any], *, where: str = "builder") -> Fabric:
    """Build a fabric from the values of a scenario's keys; raises InputError with every mistake in them.

    `where` is the place that a mistake in the builder's name is reported at.
    """
    require_one_of(builder, tuple(BUILDERS), where=where, what="builder", error=InputError)
    try:
        spec: Any = bind(BUILDERS[builder].spec, dict(values), folder=Path())
    except ValidationError as error:
        raise InputError(*to_mistakes(error, CommandLine(builder))) from None
    _check_rates(spec)
    return BUILDERS[builder].build(spec)


def _check_rates(spec: Any) -> None:
    """Raise InputError for each setting that is a link's rate and beyond what a link has."""
    rates = {name: value for name, value in vars(spec).items() if name.endswith("rate_bps") and value is not None}
    mistakes = [
        Mistake(where=key_of(name), found=format_rate(rate_bps), allowed=LINK_RATES)
        for name, rate_bps in rates.items()
        if not 1 <= rate_bps <= MAX_LINK_RATE_BPS
    ]
    if mistakes:
        raise InputError(*mistakes)


def save_fabric(fabric: Fabric, path: Path) -> None:
    """Write a fabric in the format that the file's ending names; raises InputError for another ending."""
    require_one_of(path.suffix, tuple(WRITERS), where=str(path), what="file ending", error=InputError)
    WRITERS[path.suffix](fabric, path)


@dataclass(frozen=True)
class CommandLine:
    """The place of settings that no file holds, in the order in which they were given."""

    builder: str

    def where(self, *keys: Key) -> str:
        """Return `clos: num_hosts`."""
        return f"{self.builder}: {key_path(keys)}"

    def line(self, *keys: Key) -> int:
        """Return the same for all: there is one line."""
        return 1
