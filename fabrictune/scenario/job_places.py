"""Places of the jobs of a mixture: free hosts, GPUs that two jobs want, NICs that they share.

Jobs whose hosts are named are placed first, those with `hosts: free` after them in their order. Parts with one `job`
are collectives of that job: a rank has one place in all of them. Ranks of two jobs on one GPU are a mistake; other GPUs
behind one NIC share its rate, which is noted.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.placement import Placement

MAX_NAMES = 4  # of places in one note
MAX_MISTAKES = 20


@dataclass(frozen=True, kw_only=True)
class PlacedPart:
    """The part of a mixture at a place in its list, and where its ranks run."""

    number: int
    name: str
    job: str
    placement: Placement


def require_own_places(parts: Sequence[PlacedPart], fabric: Fabric) -> None:
    """Raise InputError for ranks of two jobs on one GPU, and for a rank of one job at two places."""
    if len(parts) < 2:
        return
    first_on: dict[tuple[int, int], tuple[PlacedPart, int]] = {}
    first_of: dict[tuple[str, int], tuple[PlacedPart, int]] = {}
    shared: dict[tuple[int, int], list[tuple[int, int, int]]] = {}  # by both parts: GPU's host and number, and rank
    moved: dict[tuple[int, int], tuple[PlacedPart, PlacedPart, int]] = {}
    by_number = {part.number: part for part in parts}
    for part in parts:
        hosts, gpus = part.placement.host_R.tolist(), part.placement.gpu_R.tolist()
        for rank, place in enumerate(zip(hosts, gpus, strict=True)):
            other, _ = first_on.setdefault(place, (part, rank))
            if other.job != part.job:
                shared.setdefault((other.number, part.number), []).append((*place, rank))
            same, _ = first_of.setdefault((part.job, rank), (part, rank))
            if _place(same, rank) != place:
                moved.setdefault((same.number, part.number), (same, part, rank))
    mistakes = [
        _two_on_one_gpu(by_number[first], by_number[second], places, first_on, fabric)
        for (first, second), places in shared.items()
    ]
    mistakes += [_two_places(first, second, rank, fabric) for first, second, rank in moved.values()]
    if mistakes:
        raise InputError(*mistakes[:MAX_MISTAKES])


def _place(part: PlacedPart, rank: int) -> tuple[int, int]:
    return int(part.placement.host_R[rank]), int(part.placement.gpu_R[rank])


def _two_on_one_gpu(
    first: PlacedPart,
    second: PlacedPart,
    places: Sequence[tuple[int, int, int]],
    first_on: Mapping[tuple[int, int], tuple[PlacedPart, int]],
    fabric: Fabric,
) -> Mistake:
    host, gpu, rank = places[0]
    _, other = first_on[host, gpu]
    more = f"; the same on {len(places) - 1} more GPUs" if len(places) > 1 else ""
    return Mistake(
        where=f"traffic.parts.{second.number}",
        found=f"rank {rank} of {second.name!r} on {fabric.node_name_N[host]} GPU {gpu}, where rank {other} of "
        f"{first.name!r} is{more}",
        allowed="one rank a GPU",
        next_step=f"give {second.name!r} other hosts in its `traffic` (`hosts: free`, a list, a switch, `first_host`, "
        f"or `placement: FILE`); if both are collectives of one job, set `job: {first.job}` in both",
    )


def _two_places(first: PlacedPart, second: PlacedPart, rank: int, fabric: Fabric) -> Mistake:
    (host, gpu), (other_host, other_gpu) = _place(second, rank), _place(first, rank)
    return Mistake(
        where=f"traffic.parts.{second.number}",
        found=f"rank {rank} of the job {second.job!r} on {fabric.node_name_N[host]} GPU {gpu} in {second.name!r}, and "
        f"on {fabric.node_name_N[other_host]} GPU {other_gpu} in {first.name!r}",
        allowed="one place for a rank of a job",
        next_step="give both the same hosts, placement and order of ranks",
    )


def shared_nics(parts: Sequence[PlacedPart], fabric: Fabric) -> Iterator[str]:
    """Yield a note for each two jobs with ranks on other GPUs behind the same NICs."""
    nics = {part.number: set(part.placement.nic_R.tolist()) for part in parts}
    for first, second in combinations(parts, 2):
        both = nics[first.number] & nics[second.number]
        if first.job != second.job and both:
            names = [fabric.nic_label(nic) for nic in sorted(both)[:MAX_NAMES]]
            more = ", ..." if len(both) > MAX_NAMES else ""
            yield (
                f"traffic.parts: {first.name!r} and {second.name!r} have ranks on GPUs of the same {len(both)} NICs "
                f"({', '.join(names)}{more}), and share their rate"
            )
