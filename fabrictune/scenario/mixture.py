"""Mixtures of traffic: a job at the same time as a storage burst, an incast and their victims.

`TRAFFIC` lists all that a scenario can send: each kind alone, and mixtures of them. A part of a mixture has a name,
which the record's `transfers` carry and which bounds can be set for.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.seeds import stream_key
from fabrictune.foundation.settings.binding import Choice, Chosen, keys_named
from fabrictune.foundation.units import PS_PER_NS
from fabrictune.netsim.workloads.merge import join
from fabrictune.netsim.workloads.table import GeneratedTraffic, Workload
from fabrictune.scenario.jobs import JobSpec
from fabrictune.scenario.traffic import SINGLE_TRAFFIC
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.placement import Placement

MAX_NAMES = 4  # of places in one note
OWN_NUMBERS = "observed"  # its queue pairs have the numbers that were seen, and cannot be given others
PART_CHOICE = Choice(
    "workload", {name: workload.spec for name, workload in SINGLE_TRAFFIC.items() if name != OWN_NUMBERS}
)


@dataclass(frozen=True, kw_only=True)
class Part:
    """One kind of traffic among others."""

    name: str = field(metadata={"help": "of the part, in the record and in `expect`"})
    traffic: Annotated[Chosen, PART_CHOICE] = field(metadata={"help": "what is sent"})
    start_ns: int = field(default=0, metadata={"help": "how much later than it would alone"})

    def __post_init__(self) -> None:
        if not self.name:
            raise InputError(Mistake(where="name", found="an empty name", allowed="a name of its own"))
        if self.start_ns < 0:
            raise InputError(Mistake(where="start", found=f"{self.start_ns} ns", allowed="0 ns or more"))


@dataclass(frozen=True, kw_only=True)
class MixSpec:
    """Several kinds of traffic over one fabric."""

    parts: tuple[Part, ...] = field(metadata={"help": "each with a name, a workload and a start"})

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
    spec = MixSpec(parts=tuple(_on_fabric(part, number, fabric) for number, part in enumerate(spec.parts)))
    parts = [_make(part, number, fabric, seed) for number, part in enumerate(spec.parts)]
    names = np.array([part.name for part in spec.parts], object)
    start_ps = [part.start_ns * PS_PER_NS for part in spec.parts]
    joined = join(parts, start_ps, notes=[*shared_places(spec, fabric)])
    return joined, np.repeat(names, [len(traffic) for _, traffic in parts])


def _on_fabric(part: Part, number: int, fabric: Fabric) -> Part:
    """Return the part with the ranks of its job placed, once for all that asks for their places; raises InputError."""
    job = part.traffic.spec
    if not isinstance(job, JobSpec):
        return part
    with _placed(part, number):
        return replace(part, traffic=replace(part.traffic, spec=replace(job, planned=job.place_on(fabric))))


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


def placements(spec: MixSpec, fabric: Fabric) -> dict[str, Placement]:
    """Return where the ranks of each part run that is a job's, by the part's name; raises InputError."""
    jobs = {part.name: part.traffic.spec for part in spec.parts if isinstance(part.traffic.spec, JobSpec)}
    return {name: job.place_on(fabric) for name, job in jobs.items()}


def shared_places(spec: MixSpec, fabric: Fabric) -> Iterator[str]:
    """Yield a note for each two parts whose ranks run on the same GPUs, or leave through the same NICs.

    Every part is placed as if it were alone. That is right for collectives of one job; two jobs would have GPUs of
    their own.
    """
    for (first, ranks), (second, others) in combinations(placements(spec, fabric).items(), 2):
        gpus, nics = _gpus(ranks) & _gpus(others), set(ranks.nic_R.tolist()) & set(others.nic_R.tolist())
        if gpus:
            names = [f"{fabric.node_name_N[host]} GPU {gpu}" for host, gpu in sorted(gpus)[:MAX_NAMES]]
            what, reading = f"the same {len(gpus)} GPUs", "as two collectives of one job do"
        elif nics:
            names = [fabric.nic_label(nic) for nic in sorted(nics)[:MAX_NAMES]]
            what, reading = f"GPUs of the same {len(nics)} NICs", "and share their rate"
        else:
            continue
        more = ", ..." if max(len(gpus), len(nics)) > MAX_NAMES else ""
        yield (
            f"traffic.parts: {first!r} and {second!r} have ranks on {what} ({', '.join(names)}{more}), {reading}; "
            "for two jobs side by side, write one part whose layout has both"
        )


def _gpus(placement: Placement) -> set[tuple[int, int]]:
    return set(zip(placement.host_R.tolist(), placement.gpu_R.tolist(), strict=True))


def make_mix(spec: MixSpec, fabric: Fabric, seed: int) -> GeneratedTraffic:
    """Return what `mix` does but for the names."""
    return mix(spec, fabric, seed)[0]


TRAFFIC: Mapping[str, Workload] = {
    **SINGLE_TRAFFIC,
    "mix": Workload(spec=MixSpec, make=make_mix, summary="several of these at once, each with a name and a start"),
}
