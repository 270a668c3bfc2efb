"""Entropy values: what a sender puts into its packets, by which switches choose their path.

A value stands for a path. At random, every packet has any value. REPS keeps the last values whose packets were
acknowledged without a mark, or trimmed at the last hop, which no path avoids; it sends over the oldest of them, each
once, and where none is left, at random. After a timeout it sends over what it has kept, again and again, for a while,
and then explores.

Source: Bonato et al., "REPS: Recycled Entropy Packet Spraying for Adaptive Load Balancing and Failure Mitigation"
(arXiv 2407.21625), algorithm 1 and its cache of eight; exploring with 16 packets is the Ultra Ethernet Consortium's
htsim model's.
"""

from fabrictune.netsim.reference.ports import Packet
from fabrictune.netsim.reference.run import RandomStream, RunState

CACHE_SIZE = 8
NUM_EXPLORED = 16


class EntropyCache:
    """The values of one queue pair; without a number of values in the settings, all are 0."""

    def __init__(self, run: RunState, pair: int) -> None:
        self.run = run
        self.random = RandomStream(run.settings.entropy_key, pair)
        self.kept: list[int] = [0] * CACHE_SIZE
        self.next_place = self.num_kept = 0
        self.num_fresh = 0  # of the kept, the newest: not yet sent over again
        self.thaws_ps: int | None = None  # None: it is not frozen
        self.frozen_place = 0
        self.num_to_explore = 0

    def next_value(self) -> int:
        """Return the next packet's value."""
        num_values = self.run.settings.num_entropy_values
        if not num_values:
            return 0
        if self.num_to_explore or not self.num_kept or (not self.num_fresh and self.thaws_ps is None):
            self.num_to_explore = max(self.num_to_explore - 1, 0)
            return self.random.next_below(num_values)
        if self.num_fresh:
            place = (self.next_place - self.num_fresh) % CACHE_SIZE
            self.num_fresh -= 1
        else:
            place = self.frozen_place = (self.frozen_place + 1) % self.num_kept
        return self.kept[place]

    def learn_from(self, answer: Packet) -> None:
        """Keep the value of a packet that was acknowledged without a mark, or trimmed where no path avoids it."""
        is_good = not answer.is_marked and (answer.kind == "ack" or answer.is_last_hop)
        if not self.run.settings.recycles_entropy or not is_good:
            return
        if self.thaws_ps is not None and self.run.now_ps > self.thaws_ps:
            self.thaws_ps, self.num_to_explore = None, NUM_EXPLORED
        self.kept[self.next_place] = answer.entropy
        self.next_place = (self.next_place + 1) % CACHE_SIZE
        self.num_kept = min(self.num_kept + 1, CACHE_SIZE)
        self.num_fresh = min(self.num_fresh + 1, CACHE_SIZE)

    def freeze(self) -> None:
        """Use what is known to work for a while: a path has failed."""
        if self.thaws_ps is None and not self.num_to_explore:
            self.thaws_ps = self.run.now_ps + self.run.settings.entropy_freeze_ps
