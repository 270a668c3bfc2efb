"""Links between nodes that are both alive.

Three signs: all members have issued a request and it still does not complete, ranks fail because a peer's connection
broke while no rank, executor or service is at fault, or ranks of other nodes cannot reach a store that runs. Of failed
ranks those count whose peers had not failed before. Each suspects the pairs of its node and the other members' nodes;
pairs whose nodes say that they do not reach each other come first, then those most suspected, then those whose traffic
has stopped.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from fabrictune.foundation.waits import Wait
from fabrictune.trainer_probe.operation.decisions import Diagnosis
from fabrictune.trainer_probe.operation.observations import NodeView, RankStatus, message_ranks
from fabrictune.trainer_probe.operation.rules.deaths import error_kind, has_failed
from fabrictune.trainer_probe.operation.rules.view import View, seconds

Pair = tuple[str, str]  # of nodes, in order of names; twice the same for a node's own transport

STALLED_FRACTION = 0.01  # of a node's usual traffic


def find_stalled_transport(waits: Mapping[int, Wait], overdue: Iterable[int], view: View) -> Diagnosis | None:
    """Return the diagnosis of requests that all members have issued and that do not complete."""
    stalled = [
        waits[rank]
        for rank in overdue
        if rank in waits
        and not waits[rank].blockers
        and not _has_member_at_work(waits[rank], waits, view)
        and all(view.has_heard(member, view.ranks[rank].quiet_s) for member in waits[rank].members)
    ]
    if not stalled:
        return None
    evidence = tuple(
        f"rank {wait.rank} waits for {seconds(view.ranks[wait.rank].quiet_s)} for request {wait.number} of group "
        f"{wait.group} ({view.ranks[wait.rank].tag}); all of ranks {', '.join(map(str, wait.members))} have issued it"
        for wait in stalled
    )
    suspects = [_pairs(wait.rank, wait.members, view) for wait in stalled]
    return _diagnosis(suspects, [view.ranks[wait.rank] for wait in stalled], evidence, view)


def find_broken_transport(view: View) -> Diagnosis | None:
    """Return the diagnosis of ranks that lost a peer although all nodes have reported and none is at fault."""
    failed = [
        status
        for status in view.ranks.values()
        if has_failed(status) and error_kind(status) == "peers" and view.has_settled(status)
    ]
    if not failed:
        return None
    first = [status for status in failed if not _is_explained(status, failed, view)]
    evidence = tuple(f"rank {status.rank} failed in step {status.step}: {status.error}" for status in first)
    suspects = [_pairs(status.rank, _members(status, view), view) for status in first]
    return _diagnosis(suspects, first, evidence, view)


def find_unreached_store(view: View) -> Diagnosis | None:
    """Return the diagnosis of ranks that could not reach a store although it runs, all on other nodes than its own."""
    home = next((node.node for node in view.nodes if _runs_store(node)), None)
    failed = [
        status
        for status in view.ranks.values()
        if has_failed(status) and error_kind(status) == "store" and view.has_settled(status)
    ]
    if home is None or not failed or any(view.node_of(status.rank) == home for status in failed):
        return None
    evidence = tuple(
        f"rank {status.rank} has not reached the store of node {home}, which runs: {status.error}" for status in failed
    )
    suspects = [frozenset({_pair(home, view.node_of(status.rank))}) for status in failed]
    return _diagnosis(suspects, failed, evidence, view)


def _runs_store(node: NodeView) -> bool:
    services = node.heartbeat.services if node.heartbeat is not None else ()
    return any(service.name == "store" and service.process_state not in ("", "Z", "X") for service in services)


def _is_explained(status: RankStatus, failed: Sequence[RankStatus], view: View) -> bool:
    """Return whether a member of the request that a rank waited for failed before it."""
    members = _members(status, view)
    return any(other.rank in members and view.since_s(other) > view.since_s(status) for other in failed)


def _has_member_at_work(wait: Wait, waits: Mapping[int, Wait], view: View) -> bool:
    """Return whether a member still computes, so that its part of a transfer may only be late."""
    patience_s = view.limits.busy_s
    return any(
        member not in waits
        and (status := view.ranks.get(member)) is not None
        and status.quiet_s < patience_s
        and (status.idle_s is None or status.idle_s < view.settings.busy_idle_s or status.quiet_s < view.limits.hang_s)
        for member in wait.members
    )


def _members(status: RankStatus, view: View) -> Sequence[int]:
    """Return the ranks of the request that a rank waited for, or all."""
    if status.waits_for is None:
        return tuple(view.snapshot.node_of_rank)
    group = status.waits_for[0]
    return view.snapshot.groups.get(group, ()) if group >= 0 else message_ranks(group, view.num_ranks)


def _pairs(rank: int, members: Sequence[int], view: View) -> frozenset[Pair]:
    own = view.node_of(rank)
    others = {view.node_of(member) for member in members if member in view.snapshot.node_of_rank} - {own}
    return frozenset(_pair(own, other) for other in others or {own})


def _pair(first: str, second: str) -> Pair:
    return min(first, second), max(first, second)


def _diagnosis(
    suspects: Sequence[frozenset[Pair]], victims: Sequence[RankStatus], evidence: tuple[str, ...], view: View
) -> Diagnosis:
    unreachable = view.unreachable_pairs()
    votes = Counter(pair for pairs in suspects for pair in pairs)
    silent = {node.node for node in view.nodes if _has_stalled(node.traffic_bps)}
    best = max(
        votes,
        key=lambda pair: (pair in unreachable, votes[pair], sum(node in silent for node in pair), _reversed(pair)),
    )
    is_within = best[0] == best[1]
    more = [f"nodes {best[0]} and {best[1]} do not reach each other"] if best in unreachable else []
    more += [f"traffic of node {node} has stopped" for node in best if node in silent]
    return Diagnosis(
        cause="link cut",
        entity=f"node {best[0]}" if is_within else f"link {best[0]}-{best[1]}",
        nodes=tuple(dict.fromkeys(best)),
        evidence=(
            *more,
            f"suspected by {votes[best]} of {len(suspects)} ranks",
            *evidence,
        ),
        quiet_s=max(status.quiet_s for status in victims),
        is_fatal=True,
        step=min(status.step for status in victims),
        error=next((status.error for status in victims if status.error), "no transfer"),
    )


def _has_stalled(traffic_bps: Sequence[float]) -> bool:
    """Return whether a node's traffic is next to nothing, compared with its usual."""
    if len(traffic_bps) < 4:
        return False
    usual_bps = sorted(traffic_bps)[len(traffic_bps) // 2]
    return max(traffic_bps[-2:]) <= STALLED_FRACTION * usual_bps


def _reversed(pair: Pair) -> tuple[tuple[int, ...], ...]:
    """Return a key by which the first pair by name is the largest, so that a tie has one outcome."""
    return tuple(tuple(-ord(letter) for letter in node) for node in pair)
