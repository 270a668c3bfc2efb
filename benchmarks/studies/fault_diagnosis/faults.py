"""Faults of the model, and what a diagnosis of each must name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.studies.fault_diagnosis.job import TICK_S, Job, Rank


@dataclass(frozen=True, kw_only=True)
class Truth:
    """What was done, as a diagnosis names it."""

    causes: tuple[str, ...]  # each of them is right
    entities: tuple[str, ...]


def _kill_rank(job: Job) -> Truth:
    rank = _any_rank(job)
    job.kill(rank, job.random.choice((-9, -11, -15)))
    return Truth(causes=("rank killed",), entities=(f"rank {rank.rank}",))


def _stop_rank(job: Job) -> Truth:
    rank = _any_rank(job)
    rank.is_stopped = True
    return Truth(causes=("rank stopped",), entities=(f"rank {rank.rank}",))


def _hang_rank(job: Job) -> Truth:
    rank = _any_rank(job)
    rank.is_hung = True
    return Truth(causes=("rank hung",), entities=(f"rank {rank.rank}",))


def _loop_rank(job: Job) -> Truth:
    rank = _any_rank(job)
    rank.is_looping = True
    return Truth(causes=("rank hung",), entities=(f"rank {rank.rank}",))


def _fail_rank(job: Job) -> Truth:
    rank = _any_rank(job)
    job.kill(rank, 1, "ValueError: shapes (3,) and (4,)")
    return Truth(causes=("rank failed",), entities=(f"rank {rank.rank}",))


def _kill_executor(job: Job) -> Truth:
    node = job.random.choice(list(job.nodes.values()))
    node.is_alive, node.has_ended = False, job.random.random() < 0.5  # known at once, or by its silence
    for rank in job.ranks:
        if rank.node == node.name:
            job.kill(rank)
    return Truth(causes=("executor lost",), entities=(f"node {node.name}",))


def _stop_executor(job: Job) -> Truth:
    node = job.random.choice(list(job.nodes.values()))
    node.is_stopped = True
    return Truth(causes=("executor lost",), entities=(f"node {node.name}",))


def _lose_node(job: Job) -> Truth:
    node = job.random.choice(list(job.nodes.values()))
    node.is_reachable = node.is_alive = False
    for rank in job.ranks:
        if rank.node == node.name:
            job.kill(rank)
    return Truth(causes=("node lost",), entities=(f"node {node.name}",))


def _cut_link(job: Job) -> Truth:
    used = sorted(
        {
            tuple(sorted((job.ranks[rank].node, job.ranks[other].node)))
            for rank in range(8)
            for other in (rank ^ 1, rank ^ 2, rank ^ 4)
            if job.ranks[rank].node != job.ranks[other].node
        }
    )
    first, second = job.random.choice(used)
    job.cut.add(frozenset((first, second)))
    job.does_cut_break = job.random.random() < 0.5
    job.cut_s = job.now_s
    return Truth(causes=("link cut",), entities=(f"link {first}-{second}",))


def _kill_loader(job: Job) -> Truth:
    node = job.random.choice(list(job.nodes.values()))
    node.loader_state, node.loader_since_s = "", job.now_s
    return Truth(causes=("loader failed",), entities=(f"loader {node.name}",))


def _stop_loader(job: Job) -> Truth:
    node = job.random.choice(list(job.nodes.values()))
    node.loader_state, node.loader_since_s = "T", job.now_s
    return Truth(causes=("loader failed",), entities=(f"loader {node.name}",))


def _any_rank(job: Job) -> Rank:
    return job.random.choice(job.ranks)


FAULTS: Mapping[str, Callable[[Job], Truth]] = {
    "rank killed": _kill_rank,
    "rank stopped": _stop_rank,
    "rank hung": _hang_rank,
    "rank in a loop": _loop_rank,
    "rank failed": _fail_rank,
    "executor killed": _kill_executor,
    "executor stopped": _stop_executor,
    "node lost": _lose_node,
    "link cut": _cut_link,
    "loader killed": _kill_loader,
    "loader stopped": _stop_loader,
}


def _run_slowly(job: Job) -> None:
    _any_rank(job).pace = 1 / job.random.uniform(1.5, 6.0)


def _run_in_turns(job: Job) -> None:
    """A rank is stopped and continued, as by a limit on its processor's time."""
    rank = _any_rank(job)
    shortest_s = 4 * TICK_S  # a period of about a tick would stop it for long stretches
    period_s, part = max(shortest_s, job.random.uniform(0.1, 1.0) * job.step_s), job.random.uniform(0.3, 0.7)
    rank.runs = lambda now_s: now_s % period_s < part * period_s


def _pause_once(job: Job) -> None:
    """A rank sleeps once, as in a garbage collection or a retried read."""
    _any_rank(job).sleeps_s = job.random.uniform(1.0, 6.0) * job.step_s


def _report_late(job: Job) -> None:
    job.random.choice(list(job.nodes.values())).late_until_s = job.now_s + job.random.uniform(1.0, 6.0)


def _run_unevenly(job: Job) -> None:
    for rank in job.ranks:
        rank.pace = 1 / job.random.uniform(1.0, 3.0)


# A job under these is healthy: nothing may be ended.
TROUBLES: Mapping[str, Callable[[Job], None]] = {
    "slow": _run_slowly,
    "stopped in turns": _run_in_turns,
    "paused once": _pause_once,
    "late heartbeats": _report_late,
    "uneven": _run_unevenly,
}
