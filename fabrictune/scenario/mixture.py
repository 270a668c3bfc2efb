"""Mixtures of traffic: jobs beside one another, a job at the same time as a storage burst, an incast and their victims.

`TRAFFIC` lists all that a scenario can send: each kind alone, and mixtures of them. A part of a mixture has a name,
which the record's `transfers` carry and which bounds can be set for.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.seeds import stream_key
from fabrictune.foundation.settings.binding import Choice, Chosen, keys_named
from fabrictune.foundation.units import PS_PER_NS
from fabrictune.netsim.workloads.merge import join
from fabrictune.netsim.workloads.table import GeneratedTraffic, Workload
from fabrictune.scenario.job_places import PlacedPart, require_own_places, shared_nics
from fabrictune.scenario.jobs import FREE, JobSpec
from fabrictune.scenario.traffic import SINGLE_TRAFFIC
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.placement import Placement

OWN_NUMBERS = "observed"  # its queue pairs have the numbers that were seen, and cannot be given others
PART_CHOICE = Choice(
    "workload", {name: workload.spec for name, workload in SINGLE_TRAFFIC.items() if name != OWN_NUMBERS}
)


@dataclass(frozen=True, kw_only=True)
class Part:
    """One kind of traffic among others."""

    name: str = field(metadata={"help": "of the part, in the record and in `expect`"})
    traffic: Annotated[Chosen, PART_CHOICE] = field(
        metadata={"help": "what is sent, and from where", "known_as": ("hosts", "first_host", "placement", "layout")}
    )
    start_ns: int = field(default=0, metadata={"help": "how much later than it would alone"})
    job: str = field(default="", metadata={"help": "of several parts that are collectives of one job: its name"})

    def __post_init__(self) -> None:
        if not self.name:
            raise InputError(Mistake(where="name", found="an empty name", allowed="a name of its own"))
        if self.start_ns < 0:
            raise InputError(Mistake(where="start", found=f"{self.start_ns} ns", allowed="0 ns or more"))

    @property
    def of_job(self) -> str:
        """The name of the job: its own, or that of the part."""
        return self.job or self.name


@dataclass(frozen=True, kw_only=True)
class MixSpec:
    """Several kinds of traffic over one fabric."""

    parts: tuple[Part, ...] = field(
        metadata={"help": "each with a name, a workload and a start", "known_as": ("jobs",)}
    )

    def __post_init__(self) -> None:
        names = [part.name for part in self.parts]
        if not names:
            raise InputError(Mistake(where="parts", found="no parts", allowed="one or more"))
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputError(Mistake(where="parts", found=f"two parts named {twice[0]!r}", allowed="a name of its own"))


def mix(spec: MixSpec, fabric: Fabric, seed: int) -> tuple[GeneratedTraffic, NDArray[np.object_]]:
    """Return the queue pairs and transfers of all parts, and the part's name for each transfer; raises InputError.

    The random draws of a part depend on the seed and its name only, not on the other parts.
    """
    spec = place_parts(spec, fabric)
    parts = [_make(part, number, fabric, seed) for number, part in enumerate(spec.parts)]
    names = np.array([part.name for part in spec.parts], object)
    start_ps = [part.start_ns * PS_PER_NS for part in spec.parts]
    joined = join(parts, start_ps, notes=[*shared_nics(_placed_parts(spec), fabric)])
    return joined, np.repeat(names, [len(traffic) for _, traffic in parts])


def place_parts(spec: MixSpec, fabric: Fabric) -> MixSpec:
    """Return the mixture with the ranks of its jobs placed, once for all that ask for their places; raises InputError.

    A job on free hosts gets those of no job whose hosts are named, and of no job on free hosts before it.
    """
    parts = list(spec.parts)
    is_free = [isinstance(part.traffic.spec, JobSpec) and part.traffic.spec.hosts == (FREE,) for part in parts]
    taken: dict[int, str] = {}  # by which job
    for number in sorted(range(len(parts)), key=is_free.__getitem__):
        job = parts[number].traffic.spec
        if isinstance(job, JobSpec):
            own = parts[number].of_job
            others = {host for host, by in taken.items() if by != own}
            with _placed(parts[number], number):
                placement = job.place_on(fabric, name=own, taken=others)
            parts[number] = with_placement(parts[number], placement)
            taken |= dict.fromkeys(placement.host_R.tolist(), own)
    placed = MixSpec(parts=tuple(parts))
    require_own_places(_placed_parts(placed), fabric)
    return placed


def with_placement(part: Part, placement: Placement) -> Part:
    """Return the part with its ranks at these places, whatever its keys say of them."""
    return replace(part, traffic=replace(part.traffic, spec=replace(part.traffic.spec, planned=placement)))


def placements(spec: MixSpec, fabric: Fabric) -> dict[str, Placement]:
    """Return where the ranks of each part run that is a job's, by the part's name; raises InputError."""
    return {part.name: part.placement for part in _placed_parts(place_parts(spec, fabric))}


def _placed_parts(spec: MixSpec) -> list[PlacedPart]:
    jobs = ((number, part, part.traffic.spec) for number, part in enumerate(spec.parts))
    return [
        PlacedPart(number=number, name=part.name, job=part.of_job, placement=job.planned)
        for number, part, job in jobs
        if isinstance(job, JobSpec) and job.planned is not None
    ]


def _make(part: Part, number: int, fabric: Fabric, seed: int) -> GeneratedTraffic:
    """Return the traffic of a part; raises InputError."""
    with _placed(part, number):
        return SINGLE_TRAFFIC[part.traffic.name].make(
            part.traffic.spec, fabric, stream_key(seed, "mix", part.name) >> 65
        )


@contextmanager
def _placed(part: Part, number: int) -> Iterator[None]:
    """Put the keys from the mixture to what is wrong in front of a part's mistakes."""
    try:
        yield
    except InputError as error:
        raise type(error)(*(_in_part(mistake, part, number) for mistake in error.mistakes)) from error


def _in_part(mistake: Mistake, part: Part, number: int) -> Mistake:
    keys = keys_named(type(part.traffic.spec), mistake)
    is_of_part = bool(keys) or mistake.where in ("", "traffic")
    return replace(mistake, where=".".join(["parts", str(number), "traffic", *keys])) if is_of_part else mistake


def make_mix(spec: MixSpec, fabric: Fabric, seed: int) -> GeneratedTraffic:
    """Return what `mix` does but for the names."""
    return mix(spec, fabric, seed)[0]


TRAFFIC: Mapping[str, Workload] = {
    **SINGLE_TRAFFIC,
    "mix": Workload(
        spec=MixSpec, make=make_mix, summary="several jobs or others of these, each with a name and a start"
    ),
}
