"""Importers: files that others wrote in, Fabric out. One format a file, listed here; a file or a package
may add one as `IMPORTER`.

A topology file says what is cabled to what, seldom all that an engine needs: each importer says which defaults it fills
in and what it skips, and returns a note of every such case with the fabric.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fabrictune.foundation.errors import InputError, Mistake, require_one_of
from fabrictune.foundation.extensions.kinds import Extension, Kind, is_path
from fabrictune.foundation.extensions.tables import Table
from fabrictune.foundation.unread_formats import refuse_unread
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.files import is_own_file, read_fabric
from fabrictune.topology.graphs import is_graphml, read_graphml
from fabrictune.topology.importers.cabling import the_only
from fabrictune.topology.importers.containerlab import is_containerlab, load_containerlab
from fabrictune.topology.importers.csv_cabling import is_csv, load_csv
from fabrictune.topology.importers.hpcc import is_hpcc, load_hpcc
from fabrictune.topology.importers.htsim import is_htsim, load_htsim
from fabrictune.topology.importers.ibnetdiscover import is_ibnetdiscover, load_ibnetdiscover
from fabrictune.topology.importers.infragraph import is_infragraph, load_infragraph
from fabrictune.topology.importers.lldp import is_lldp, load_lldp
from fabrictune.topology.importers.minigraph import is_minigraph, load_minigraph
from fabrictune.topology.importers.sonic import is_sonic, load_sonic
from fabrictune.topology.importers.sonic_dump import is_sonic_dump, load_sonic_dump
from fabrictune.topology.importers.unread import UNREAD_TOPOLOGIES


@dataclass(frozen=True, kw_only=True)
class Importer:
    """A format that can be read."""

    summary: str
    recognises: Callable[[Path], bool]
    load: Callable[[Sequence[Path]], Fabric]


def _load_own(paths: Sequence[Path]) -> Fabric:
    return read_fabric(the_only(paths))


def _load_graphml(paths: Sequence[Path]) -> Fabric:
    return read_graphml(the_only(paths))


IMPORTER = Kind(what="importer", group="fabrictune.importers", value_type=Importer, attribute="IMPORTER")

_OWN = {  # the first that recognises every file reads them
    "fabrictune": Importer(summary="the project's own JSON file", recognises=is_own_file, load=_load_own),
    "infragraph": Importer(  # before those that go by the file's name alone
        summary="InfraGraph infrastructure (YAML or JSON)", recognises=is_infragraph, load=load_infragraph
    ),
    "containerlab": Importer(
        summary="containerlab topology (*.clab.yml)", recognises=is_containerlab, load=load_containerlab
    ),
    "csv": Importer(summary="cabling list (*.csv), a row for each cable", recognises=is_csv, load=load_csv),
    "graphml": Importer(summary="GraphML, as `topo export` writes it", recognises=is_graphml, load=_load_graphml),
    "hpcc": Importer(summary="HPCC or SimAI topology text", recognises=is_hpcc, load=load_hpcc),
    "htsim": Importer(summary="htsim tree topology (*.topo)", recognises=is_htsim, load=load_htsim),
    "ibnetdiscover": Importer(
        summary="InfiniBand subnet: ibnetdiscover (also -p), iblinkinfo, nets of ibsim",
        recognises=is_ibnetdiscover,
        load=load_ibnetdiscover,
    ),
    "lldp": Importer(
        summary="LLDP tables of lldpctl or of a switch, one file a device", recognises=is_lldp, load=load_lldp
    ),
    "minigraph": Importer(
        summary="SONiC minigraph.xml, one file a switch", recognises=is_minigraph, load=load_minigraph
    ),
    "sonic-dump": Importer(  # before configurations, which go by any table in capitals
        summary="SONiC's databases: redis dumps and archives of techsupport, one a switch",
        recognises=is_sonic_dump,
        load=load_sonic_dump,
    ),
    "sonic": Importer(summary="SONiC config_db.json, one file a switch", recognises=is_sonic, load=load_sonic),
}

IMPORTERS = Table(IMPORTER, _OWN)


def import_fabric(paths: Sequence[Path], format: str | Extension[Importer] | None = None) -> Fabric:  # noqa: A002
    """Return the fabric that the files describe, in a format or the one they look like; raises InputError.

    It has a note of every default filled in and everything skipped. A folder means the files in it, except those whose
    names begin with a dot.
    """
    paths = files_of(paths)
    missing = [path for path in paths if not path.is_file()]
    if missing or not paths:
        raise InputError(*(_missing(path) for path in missing or [Path("topology")]))
    if isinstance(format, Extension):
        return _load_outside(format.value, paths, origin=f"{format.file}, SHA-256 {format.sha256}")
    if format is not None:
        require_one_of(format, tuple(IMPORTERS), where="format", what="format", error=InputError)
        if not all(IMPORTERS[format].recognises(path) for path in paths):
            refuse_unread(paths, UNREAD_TOPOLOGIES, error=InputError, reads_packed=False)
        return _load(format, paths)
    for name, importer in IMPORTERS.items():
        if all(importer.recognises(path) for path in paths):
            return _load(name, paths)
    refuse_unread(paths, UNREAD_TOPOLOGIES, error=InputError, reads_packed=False)
    raise InputError(
        Mistake(
            where=", ".join(str(path) for path in paths),
            found="a format that no importer recognises",
            allowed="; ".join(f"{name}: {importer.summary}" for name, importer in IMPORTERS.items()),
            next_step="name the format",
        )
    )


def files_of(paths: Sequence[Path]) -> list[Path]:
    """Return files as they are and folders as the files in them, by name; a folder without files stays itself."""
    return [file for path in paths for file in _files_at(path)]


def find_importer(name: str | None, *, trust_code: bool) -> str | Extension[Importer] | None:
    """Return a format's name as it is, and the importer in a file that is named instead.

    Raises UntrustedCodeError for a file without `trust_code`, InputError for one that has no importer.
    """
    return IMPORTERS.load(Path(name), trust_code=trust_code) if name and is_path(name) else name


def _load(name: str, paths: Sequence[Path]) -> Fabric:
    """Return the fabric that an importer of the table reads."""
    outside = None if name in IMPORTERS.own else IMPORTERS.installed[name]
    if outside is None:
        return IMPORTERS[name].load(paths)
    return _load_outside(IMPORTERS[name], paths, origin=f"{name} of {outside.package} {outside.version}")


def _load_outside(importer: Importer, paths: Sequence[Path], *, origin: str) -> Fabric:
    """Return the fabric that an extension reads, with a note of which it was."""
    fabric: object = importer.load(paths)
    if not isinstance(fabric, Fabric):
        found = f"an importer that returned {type(fabric).__name__}"
        raise InputError(Mistake(where=origin, found=found, allowed="Fabric"))
    return replace(fabric, notes=(f"read by the importer {origin}", *fabric.notes))


def _files_at(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith(".")) or [path]


def _missing(path: Path) -> Mistake:
    found = "a folder without files" if path.is_dir() else "no such file"
    return Mistake(where=str(path), found=found, next_step="check the path")
