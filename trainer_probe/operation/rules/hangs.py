"""Ranks that others wait for: hung, in an endless loop, slow, or waiting for one another.

A job hangs when a rank is quiet beyond its section's limit. Those that wait are not to blame: the waits-for graph is
followed to the ranks that wait for nobody. One that does nothing is hung. One that uses its processor may be slow and
gets more patience before it counts as an endless loop; until then it is named, and nothing is ended. Where several do
nothing the one that is furthest behind is named. A rank that others wait for in nearly all steps, and did not before,
is slow as well (`late_steps.py`).
"""

from collections.abc import Mapping
from functools import partial

from fabrictune.foundation.waits import Wait, find_circle, find_roots
from fabrictune.trainer_probe.operation.decisions import Diagnosis
from fabrictune.trainer_probe.operation.observations import RankStatus
from fabrictune.trainer_probe.operation.rules.links import find_stalled_transport
from fabrictune.trainer_probe.operation.rules.services import service_cause, service_entity
from fabrictune.trainer_probe.operation.rules.view import View, seconds
from fabrictune.trainer_probe.operation.rules.waits import build_waits


def find_hang(view: View) -> Diagnosis | None:
    """Return the diagnosis of a job that stands still, or of a rank that keeps it waiting; None where neither is."""
    waits = build_waits(view.ranks, view.snapshot.groups, view.num_ranks)
    overdue = [rank for rank, status in view.ranks.items() if _is_overdue(status, view)]
    if overdue:
        roots = [view.ranks[rank] for rank in find_roots(waits, overdue) if rank in view.ranks]
        searches = (
            partial(_find_hung, overdue, roots, waits, view),
            partial(_find_deadlock, waits, view),
            partial(find_stalled_transport, waits, overdue, view),
        )
        for search in searches:
            if diagnosis := search():
                return diagnosis
    return _find_slow(waits, view) or _find_often_late(view)


def _is_overdue(status: RankStatus, view: View) -> bool:
    limit_s = view.limits.of_section(status.section)
    return limit_s is not None and status.quiet_s > limit_s


def _find_hung(overdue: list[int], roots: list[RankStatus], waits: Mapping[int, Wait], view: View) -> Diagnosis | None:
    hung = [status for status in roots if status.rank not in waits and _is_hung(status, view)]
    if not hung:
        return None
    first = min(hung, key=lambda status: (status.step, -status.quiet_s, status.rank))
    if first.tag in ("loader", "store"):
        return _service(first, view)
    guilty = [status for status in hung if status.step == first.step]
    nodes = tuple(dict.fromkeys(view.node_of(status.rank) for status in [first, *guilty]))
    return Diagnosis(
        cause="rank hung",
        entity=f"rank {first.rank}",
        ranks=(first.rank, *(status.rank for status in guilty if status is not first)),
        nodes=nodes,
        evidence=(*(_describe(status, view) for status in guilty), *_waiting(first.rank, overdue, waits)),
        quiet_s=first.quiet_s,
        is_fatal=True,
        step=first.step,
    )


def _is_hung(status: RankStatus, view: View) -> bool:
    limit_s = view.limits.of_section(status.section)
    if limit_s is None:
        return False
    return status.quiet_s > (limit_s * view.settings.busy_factor if _is_busy(status, view) else limit_s)


def _is_busy(status: RankStatus, view: View) -> bool:
    return status.idle_s is None or status.idle_s < view.settings.busy_idle_s


def _service(first: RankStatus, view: View) -> Diagnosis:
    node = view.node_of(first.rank)
    return Diagnosis(
        cause=service_cause(first.tag),
        entity=service_entity(first.tag, node),
        nodes=(node,),
        evidence=(f"rank {first.rank} waits for the {first.tag} for {seconds(first.quiet_s)}",),
        quiet_s=first.quiet_s,
        is_fatal=True,
        step=first.step,
    )


def _find_deadlock(waits: Mapping[int, Wait], view: View) -> Diagnosis | None:
    circle = find_circle({rank: wait for rank, wait in waits.items() if _is_overdue(view.ranks[rank], view)})
    if not circle:
        return None
    return Diagnosis(
        cause="deadlock",
        entity=f"ranks {', '.join(map(str, circle))}",
        ranks=circle,
        nodes=tuple(dict.fromkeys(view.node_of(rank) for rank in circle)),
        evidence=tuple(
            f"rank {rank} waits for request {waits[rank].number} of group {waits[rank].group} "
            f"({view.ranks[rank].tag}), which rank {blocker} has not issued"
            for rank, blocker in zip(circle, (*circle[1:], circle[0]), strict=True)
        ),
        quiet_s=min(view.ranks[rank].quiet_s for rank in circle),
        is_fatal=True,
        step=min(view.ranks[rank].step for rank in circle),
        error="deadlock",
    )


def _find_slow(waits: Mapping[int, Wait], view: View) -> Diagnosis | None:
    """Return the rank at work that others wait for as long as for one that hangs."""
    late = [rank for rank in waits if view.ranks[rank].quiet_s > view.limits.hang_s]
    roots = [view.ranks[rank] for rank in find_roots(waits, late) if rank in view.ranks and rank not in waits]
    wait_s = max((view.ranks[rank].quiet_s for rank in late), default=0.0)
    slow = [
        status
        for status in roots
        if view.limits.of_section(status.section) == view.limits.hang_s and view.has_heard(status.rank, wait_s)
    ]
    if not slow or len(slow) == len(view.ranks):
        return None
    first = min(slow, key=lambda status: (status.step, status.rank))
    return Diagnosis(
        cause="rank slow",
        entity=f"rank {first.rank}",
        ranks=(first.rank,),
        nodes=(view.node_of(first.rank),),
        evidence=(_describe(first, view), *_waiting(first.rank, late, waits)),
        quiet_s=wait_s,
        is_fatal=False,
        step=first.step,
    )


def _find_often_late(view: View) -> Diagnosis | None:
    """Return the rank that others wait for in nearly all of the last steps, and did not before."""
    late = view.snapshot.late_steps
    if late.rank not in view.ranks or not late.num_steps or not late.num_steps_before:
        return None
    share, before = late.num_late / late.num_steps, late.num_late_before / late.num_steps_before
    if share < view.settings.slow_share or share - before < view.settings.slow_rise:
        return None
    status = view.ranks[late.rank]
    return Diagnosis(
        cause="rank slow",
        entity=f"rank {late.rank}",
        ranks=(late.rank,),
        nodes=(view.node_of(late.rank),),
        evidence=(
            f"others waited for rank {late.rank} in {late.num_late} of the last {late.num_steps} steps, "
            f"and in {late.num_late_before} of the {late.num_steps_before} before",
        ),
        quiet_s=0.0,
        is_fatal=False,
        step=status.step,
    )


def _describe(status: RankStatus, view: View) -> str:
    work = (
        "uses its processor" if _is_busy(status, view) else f"has used no processor for {seconds(status.idle_s or 0)}"
    )
    return (
        f"rank {status.rank}, in section {status.section} of step {status.step}, waits for nobody, has changed nothing "
        f"for {seconds(status.quiet_s)} and {work}"
    )


def _waiting(root: int, overdue: list[int], waits: Mapping[int, Wait]) -> tuple[str, ...]:
    """Return a sentence with the ranks that wait for a rank, if any do."""
    ranks = [rank for rank in overdue if rank != root and root in find_roots(waits, [rank])]
    return (f"waited for, in the end, by ranks {', '.join(map(str, ranks))}",) if ranks else ()
