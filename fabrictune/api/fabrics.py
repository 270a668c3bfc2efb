"""Fabrics: built from a few settings, read from the files of other tools, saved."""

import warnings
from os import PathLike
from pathlib import Path
from typing import Any

from fabrictune.foundation.errors import FabrictuneWarning
from fabrictune.scenario import fabrics
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.importers import find_importer, import_fabric


def build_fabric(builder: str, *, trust_code: bool = False, **settings: Any) -> Fabric:
    """Return a fabric of a named shape, such as "clos", "fat_tree" or "megascale", or of a Python file's.

    `settings` are those of the scenario key `fabric`, as a file has them: `num_hosts=16, nic_rate="400 Gbps"`.
    A Python file runs only with `trust_code`. Raises InputError with every mistake in them.
    """
    return fabrics.build_named(builder, settings, trust_code=trust_code)


def load_fabric(
    *paths: str | PathLike[str],
    format: str | None = None,  # noqa: A002
    trust_code: bool = False,
) -> Fabric:
    """Return the fabric in files of one format: SONiC, LLDP, containerlab, CSV, GraphML, InfiniBand, our own JSON.

    The format is recognized by content unless `format` names it, or a Python file that reads it, which runs only with
    `trust_code`. Each default filled in and each part of a file that was skipped is a FabrictuneWarning, and one of the
    fabric's `notes`, which its own file keeps. Raises InputError.
    """
    fabric = import_fabric([Path(path) for path in paths], find_importer(format, trust_code=trust_code))
    for note in fabric.notes:
        warnings.warn(note, FabrictuneWarning, stacklevel=2)
    return fabric


def save_fabric(fabric: Fabric, path: str | PathLike[str]) -> Path:
    """Write a fabric as .json (complete) or .graphml (for other tools); returns the path. Raises InputError."""
    fabrics.save_fabric(fabric, Path(path))
    return Path(path)
