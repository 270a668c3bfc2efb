"""Builders: parameters in, Fabric out. One shape a file, listed here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from topology.builders.clos import ClosSpec, build_clos
from topology.builders.fat_tree import FatTreeSpec, build_fat_tree
from topology.fabric import Fabric


@dataclass(frozen=True, kw_only=True)
class Builder:
    """A shape that can be asked for by name."""

    spec: type
    build: Callable[[Any], Fabric]
    summary: str


BUILDERS: Mapping[str, Builder] = {
    "clos": Builder(
        spec=ClosSpec,
        build=build_clos,
        summary="two- or three-tier CLOS with ToR sets, rails and split downlinks, as in MegaScale",
    ),
    "fat_tree": Builder(
        spec=FatTreeSpec,
        build=build_fat_tree,
        summary="three-tier fat tree of equal k-port switches, k**3 / 4 hosts",
    ),
}
