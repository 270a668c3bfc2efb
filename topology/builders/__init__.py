"""Builders: parameters in, Fabric out. One shape a file, listed here; a file or a package may add one as `BUILDER`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from fabrictune.foundation.errors import Mistake
from fabrictune.foundation.extensions.kinds import Kind
from fabrictune.foundation.extensions.tables import Table
from fabrictune.topology.builders.barre import BarreSpec
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.builders.fat_tree import FatTreeSpec, build_fat_tree
from fabrictune.topology.builders.hpn import HpnSpec
from fabrictune.topology.builders.megascale import MegascaleSpec
from fabrictune.topology.builders.meta24k import Meta24kSpec
from fabrictune.topology.builders.rail_only import RailOnlySpec
from fabrictune.topology.fabric import Fabric


@dataclass(frozen=True, kw_only=True)
class Builder:
    """A shape that can be built by name."""

    spec: type
    build: Callable[[Any], Fabric]
    summary: str


def _check_builder(builder: Builder) -> Iterator[Mistake]:
    spec = builder.spec
    where = f"BUILDER: spec: {spec.__name__}"
    if not is_dataclass(spec):
        yield Mistake(where=where, found="no dataclass", allowed="a frozen dataclass whose fields are the settings")
    elif any(isinstance(one.type, str) for one in fields(spec)):
        found = "fields whose types are text"
        yield Mistake(where=where, found=found, next_step="leave out `from __future__ import annotations`")


TOPOLOGY = Kind(
    what="topology", group="fabrictune.topologies", value_type=Builder, attribute="BUILDER", check=_check_builder
)

_OWN = {
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
    "megascale": Builder(
        spec=MegascaleSpec,
        build=build_clos,
        summary="ByteDance's 12,288 GPUs: eight rails of 200 Gbps, split downlinks, three tiers at 1:1",
    ),
    "barre": Builder(
        spec=BarreSpec,
        build=build_clos,
        summary="one generation later: eight rails of 400 Gbps on ports of 800 Gbps",
    ),
    "hpn": Builder(
        spec=HpnSpec,
        build=build_clos,
        summary="Alibaba's pod of 15,360 GPUs: NICs on two ToRs, two planes, core at 15:1",
    ),
    "meta24k": Builder(
        spec=Meta24kSpec,
        build=build_clos,
        summary="Meta's 24,576 GPUs: racks of 16, pods of 3,072 at full bisection, 7:1 above them",
    ),
    "rail_only": Builder(
        spec=RailOnlySpec,
        build=build_clos,
        summary="a two-tier network for each of eight rails, and nothing that joins them",
    ),
}

BUILDERS = Table(TOPOLOGY, _OWN)
