"""Choice of a fabric by a scenario or a command: built by name from settings, or read from a topology file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import ValidationError

from fabrictune.foundation.documents import Key, key_path
from fabrictune.foundation.errors import InputError, Mistake, require_one_of
from fabrictune.foundation.extensions.kinds import Extension, is_path
from fabrictune.foundation.extensions.tables import Derived, Extensible
from fabrictune.foundation.settings.binding import Choice, Chosen, FileSettings, bind
from fabrictune.foundation.settings.mistakes import Places, to_mistakes
from fabrictune.foundation.settings.quantities import key_of
from fabrictune.foundation.units import LINK_RATES, MAX_LINK_RATE_BPS, format_rate
from fabrictune.scenario.assignments import parse_setting
from fabrictune.topology.builders import BUILDERS, Builder
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.files import write_fabric
from fabrictune.topology.graphs import write_graphml
from fabrictune.topology.importers import IMPORTERS, Importer, import_fabric
from fabrictune.topology.link_overrides import LinkOverride, override_links

WRITERS = {".json": write_fabric, ".graphml": write_graphml}


@dataclass(frozen=True, kw_only=True)
class FabricFile:
    """A fabric described in a topology file."""

    file: Path = field(metadata={"help": "topology file"})
    format: Annotated[str | Path | Extension[Importer], Extensible(IMPORTERS)] | None = field(
        default=None, metadata={"help": "by default recognised from the file; or a Python file", "one_of": IMPORTERS}
    )
    rate_bps: int | None = field(default=None, metadata={"help": "rate of every link, in place of the file's"})
    cable_mm: int | None = field(default=None, metadata={"help": "length of every cable, in place of the file's"})
    delay_ps: int | None = field(default=None, metadata={"help": "delay of every link, in place of a cable's"})
    links: tuple[LinkOverride, ...] = field(default=(), metadata={"help": "the same between two tiers"})

    def __post_init__(self) -> None:
        if isinstance(self.format, str):
            require_one_of(self.format, tuple(IMPORTERS), where="format", what="format", error=InputError)
        self.overrides()

    def overrides(self) -> tuple[LinkOverride, ...]:
        """Return what takes the place of the file's values, of all links first; raises InputError."""
        of_all: tuple[LinkOverride, ...] = ()
        if not self.rate_bps is self.cable_mm is self.delay_ps is None:
            of_all = (LinkOverride(rate_bps=self.rate_bps, cable_mm=self.cable_mm, delay_ps=self.delay_ps),)
        return (*of_all, *self.links)


FABRIC_CHOICE = Choice("builder", Derived(BUILDERS, lambda builder: builder.spec, file=FabricFile), takes_files=True)


def make_fabric(chosen: Chosen) -> Fabric:
    """Build or import a fabric; raises InputError."""
    if isinstance(chosen.spec, FabricFile):
        assert not isinstance(chosen.spec.format, Path), f"{chosen.spec.format} is loaded before it is used"
        imported = import_fabric([chosen.spec.file], chosen.spec.format)
        return override_links(imported, chosen.spec.overrides(), where="fabric.links")
    if chosen.extension is None:
        return _build(BUILDERS[chosen.name], chosen.spec, origin=chosen.name)
    builder: Builder = chosen.extension.value
    return _build(builder, chosen.spec, origin=str(chosen.extension))


def load_builder(chosen: Chosen, places: Places, *prefix: str, folder: Path = Path(), trust_code: bool) -> Chosen:
    """Return the choice of a builder in a file with the builder's own settings; any other choice as it is.

    Raises UntrustedCodeError without `trust_code`, and InputError with every mistake in file and settings.
    """
    if not isinstance(chosen.spec, FileSettings):
        return chosen
    file = chosen.spec.file
    extension = BUILDERS.load(file, trust_code=trust_code)
    spec: Any = _bound(extension.value, chosen.spec.settings, folder, places, *prefix)
    return Chosen(name=chosen.name, spec=spec, extension=extension)


def build_from_settings(builder: str, settings: Sequence[str], *, trust_code: bool = False) -> Fabric:
    """Build a fabric from texts such as `radix=8`, with the keys of a scenario; raises InputError."""
    return build_named(builder, dict(map(parse_setting, settings)), where="BUILDER", trust_code=trust_code)


def build_named(builder: str, values: Mapping[str, Any], *, where: str = "builder", trust_code: bool = False) -> Fabric:
    """Build a fabric from the values of a scenario's keys; raises InputError with every mistake in them.

    `builder` may be a Python file, which runs only with `trust_code`. `where` is the place that a mistake in the
    builder's name is reported at.
    """
    if is_path(builder):
        settings = FileSettings(file=Path(builder), settings=values)
        return make_fabric(
            load_builder(Chosen(name=builder, spec=settings), CommandLine(builder), trust_code=trust_code)
        )
    require_one_of(builder, tuple(BUILDERS), where=where, what="builder", error=InputError)
    spec = _bound(BUILDERS[builder], values, Path(), CommandLine(builder))
    return _build(BUILDERS[builder], spec, origin=builder)


def _bound(builder: Builder, values: Mapping[str, Any], folder: Path, places: Places, *prefix: str) -> Any:
    """Return the settings of a builder; raises InputError with every mistake in them."""
    try:
        return bind(builder.spec, dict(values), folder=folder)
    except ValidationError as error:
        raise InputError(*to_mistakes(error, places, *prefix)) from None


def _build(builder: Builder, spec: Any, *, origin: str) -> Fabric:
    _check_rates(spec)
    fabric: object = builder.build(spec)
    if not isinstance(fabric, Fabric):
        found = f"a builder that returned {type(fabric).__name__}"
        raise InputError(Mistake(where=origin, found=found, allowed="Fabric"))
    return fabric


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
