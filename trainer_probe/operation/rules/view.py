"""A snapshot as the rules read it: the ranks of this generation by number, and how fresh each node's report is.

Heartbeats of another generation say nothing of this one's ranks. A node that is ending its ranks, or is no part of the
generation, has no faults.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from fabrictune.trainer_probe.operation.observations import NodeView, RankStatus, Snapshot
from fabrictune.trainer_probe.operation.rules.settings import RuleSettings
from fabrictune.trainer_probe.operation.rules.thresholds import Limits, measure_limits


@dataclass(frozen=True, kw_only=True)
class View:
    """A snapshot with its limits."""

    snapshot: Snapshot
    settings: RuleSettings

    @cached_property
    def limits(self) -> Limits:
        """The limits that follow from what the job has measured."""
        return measure_limits(self.snapshot, self.settings)

    @cached_property
    def nodes(self) -> tuple[NodeView, ...]:
        """The nodes that have ranks of this generation, by name."""
        used = set(self.snapshot.node_of_rank.values())
        return tuple(
            sorted(
                (
                    view
                    for view in self.snapshot.nodes
                    if view.node in used and (view.heartbeat is None or view.heartbeat.state != "ending")
                ),
                key=lambda view: view.node,
            )
        )

    @cached_property
    def ranks(self) -> Mapping[int, RankStatus]:
        """The last status of each rank that has reported in this generation, in order of ranks."""
        statuses = {
            status.rank: status
            for view in self.nodes
            if view.heartbeat is not None and view.heartbeat.generation == self.snapshot.generation
            for status in view.heartbeat.ranks
        }
        return dict(sorted(statuses.items()))

    @cached_property
    def age_s(self) -> Mapping[str, float]:
        """Age of the last heartbeat by node."""
        return {view.node: view.age_s for view in self.nodes}

    @property
    def num_ranks(self) -> int:
        """Ranks of the job."""
        return len(self.snapshot.node_of_rank)

    def node_of(self, rank: int) -> str:
        """Return the node of a rank."""
        return self.snapshot.node_of_rank[rank]

    def since_s(self, status: RankStatus) -> float:
        """Return how long ago a rank's last sign was, as far as is known: its page changed, it failed, or it ended."""
        signs_s = [status.quiet_s]
        if status.section == "failed":
            signs_s.append(status.section_s)
        if status.process_state == "" and status.state_s is not None:
            signs_s.append(status.state_s)
        return min(signs_s) + self.age_s.get(self.node_of(status.rank), 0.0)

    def has_settled(self, status: RankStatus) -> bool:
        """Return whether all nodes have reported since a rank's last sign, so that a cause elsewhere would be known."""
        since_s = self.since_s(status)
        return not self._awaits_exit_code and all(
            view.has_ended or view.age_s + self.settings.settle_s <= since_s for view in self.nodes
        )

    @cached_property
    def _awaits_exit_code(self) -> bool:
        """Whether a rank's process is gone, and whether a signal ended it will be known in a moment."""
        gone = [status for status in self.ranks.values() if status.process_state == "" and status.exit_code is None]
        ages_s = [status.state_s for status in gone if status.state_s is not None]
        return any(age_s < self.settings.heartbeat_limit_s for age_s in ages_s)

    def has_heard(self, rank: int, wait_s: float) -> bool:
        """Return whether a rank's node has reported in the second half of a wait for it: else it may itself be gone."""
        return 2 * self.age_s.get(self.node_of(rank), 0.0) <= wait_s

    def log_lines(self, node: str) -> tuple[str, ...]:
        """Return the last lines of a node's log that match a keyword."""
        return next((view.heartbeat.log_lines for view in self.nodes if view.node == node and view.heartbeat), ())

    def unreachable_pairs(self) -> frozenset[tuple[str, str]]:
        """Return the pairs of nodes of which one did not reach the other, each in order of names."""
        names = set(self.age_s)
        return frozenset(
            (min(view.node, other), max(view.node, other))
            for view in self.nodes
            if view.heartbeat is not None
            for other in view.heartbeat.unreachable
            if other in names and other != view.node
        )


def seconds(value_s: float) -> str:
    """Return a duration as a sentence shows it."""
    return f"{value_s:.2g} s" if value_s < 10 else f"{value_s:.0f} s"
