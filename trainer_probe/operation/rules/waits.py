"""What the ranks of a snapshot wait for: `fabrictune.foundation.waits` follows it."""

from collections.abc import Mapping, Sequence

from fabrictune.foundation.waits import Wait
from fabrictune.trainer_probe.operation.observations import RankStatus, message_ranks


def build_waits(
    ranks: Mapping[int, RankStatus], groups: Mapping[int, Sequence[int]], num_ranks: int
) -> Mapping[int, Wait]:
    """Return the waits of all ranks that are in one."""
    waits = {}
    for rank, status in ranks.items():
        if status.waits_for is None or status.section in ("done", "failed"):
            continue
        group, number = status.waits_for
        members = tuple(groups.get(group, ())) if group >= 0 else message_ranks(group, num_ranks)
        waits[rank] = Wait(
            rank=rank,
            group=group,
            number=number,
            members=members,
            blockers=tuple(
                member
                for member in members
                if member != rank and (member not in ranks or ranks[member].issued.get(group, 0) <= number)
            ),
        )
    return waits
