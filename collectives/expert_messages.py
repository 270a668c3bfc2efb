"""Messages of an exchange with experts: a dispatch, the experts' work, and a combine.

By `deduplication` a sender's message to a rank has a copy for each expert, or one of each token (`rank`). With `node` a
host's copies go to the rank with the sender's place there, which passes them on to the ranks of its host over NVLink;
within the sender's own host tokens go straight. A combine is the dispatch backwards: the passing rank waits for the
ranks of its host, and adds up.

A message that is passed on, and what passes it on, are cut into as many slices, each of which waits for its own. At
no step do all send to the same one.

Source: DeepEP (normal kernels, NVLink and RDMA forwarding); Megatron Core, `MoEAlltoAllTokenDispatcher`.

Shapes: n members of a group, g of them a host, H hosts, M messages.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from fabrictune.collectives.expert_exchange import TokenCounts, bytes_of
from fabrictune.foundation.arrays import IntArray

Deduplication = Literal["none", "rank", "node"]
Phase = Literal["dispatch", "combine", "both"]

MAX_SLICES = 1024


@dataclass(frozen=True, kw_only=True)
class Message:
    """Bytes from one member to another, or a member's work, which moves none."""

    sender: int
    receiver: int
    num_bytes: int = 0
    delay_ps: int = 0
    num_slices: int = 1
    waits: tuple[int, ...] = ()  # earlier messages: slice for slice where there are as many, else all of them


@dataclass(frozen=True, kw_only=True)
class Relay:
    """Who passes on the copies of a sender for another host."""

    sender: int
    passing: int  # member with the sender's place there
    others: Sequence[int]  # members of that host, from the right of the passing one


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """What the ranks of a group exchange, by bytes: whom a message goes to, and how it is cut."""

    counts: TokenCounts
    ranks_per_host: int
    deduplication: Deduplication
    slice_bytes: int | None = None

    def direct_bytes_nn(self, token_bytes: int) -> IntArray:
        """Return the bytes of tokens that go straight from member to member."""
        is_single = self.deduplication == "none"
        return bytes_of(self.counts.choices_nn if is_single else self.counts.ranks_nn, token_bytes)

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield each sender with each other member that gets its tokens straight, round the group from its right."""
        n, g = self.counts.num_ranks, self.ranks_per_host
        by_node = self.deduplication == "node"
        for distance in range(1, g if by_node else n):
            for sender in range(n):
                yield sender, sender // g * g + (sender + distance) % g if by_node else (sender + distance) % n

    def relays(self) -> Iterator[list[Relay]]:
        """Yield for each other host, from the right, the relays of all senders, which have different members."""
        n, g = self.counts.num_ranks, self.ranks_per_host
        for distance in range(g, n if self.deduplication == "node" else 0, g):
            relays = []
            for sender in range(n):
                passing = (sender + distance) % n
                first = passing // g * g
                others = [first + (passing + step) % g for step in range(1, g)]
                relays.append(Relay(sender=sender, passing=passing, others=others))
            yield relays

    def num_slices(self, sender: int, member: int, token_bytes: int) -> int:
        """Return the slices of a sender's copies for a member's host, which are passed on one by one."""
        if self.slice_bytes is None or self.deduplication != "node":
            return 1
        host = member // self.ranks_per_host
        num_bytes = int(bytes_of(self.counts.hosts_nH[sender : sender + 1, host : host + 1], token_bytes)[0, 0])
        return min(MAX_SLICES, max(1, -(-num_bytes // self.slice_bytes)))


@dataclass
class ExpertMessages:
    """Messages of one group, in an order in which each waits for earlier ones alone."""

    exchange: Exchange
    messages: list[Message] = field(default_factory=list)
    work_of: dict[int, int] = field(default_factory=dict)  # message of each member's work, which its combine awaits

    def dispatch(self, token_bytes: int) -> None:
        """Add the tokens' way to the ranks of their experts."""
        exchange, direct_nn = self.exchange, self.exchange.direct_bytes_nn(token_bytes)
        hosts_nH = bytes_of(exchange.counts.hosts_nH, token_bytes)
        for sender, receiver in exchange.pairs():
            num_slices = exchange.num_slices(sender, receiver, token_bytes)
            self._add(sender, receiver, int(direct_nn[sender, receiver]), num_slices=num_slices)
        for relays in exchange.relays():
            for relay in relays:
                num_slices = exchange.num_slices(relay.sender, relay.passing, token_bytes)
                num_bytes = int(hosts_nH[relay.sender, relay.passing // exchange.ranks_per_host])
                arrival = self._add(relay.sender, relay.passing, num_bytes, num_slices=num_slices)
                for receiver in relay.others:
                    num_bytes = int(direct_nn[relay.sender, receiver])
                    self._add(relay.passing, receiver, num_bytes, num_slices=num_slices, waits=(arrival,))

    def work(self, duration_ps: int) -> None:
        """Add each member's work, once all its tokens have come."""
        arrivals: list[list[int]] = [[] for _ in range(self.exchange.counts.num_ranks)]
        for row, message in enumerate(self.messages):
            arrivals[message.receiver].append(row)
        for member, rows in enumerate(arrivals):
            self.work_of[member] = self._add(member, member, delay_ps=duration_ps, waits=tuple(rows))

    def combine(self, token_bytes: int) -> None:
        """Add the results' way back to the tokens' ranks."""
        exchange, direct_nn = self.exchange, self.exchange.direct_bytes_nn(token_bytes)
        hosts_nH = bytes_of(exchange.counts.hosts_nH, token_bytes)
        for owner, member in exchange.pairs():
            num_slices = exchange.num_slices(owner, member, token_bytes)
            self._add(member, owner, int(direct_nn[owner, member]), num_slices=num_slices, waits=self._work(member))
        for relays in exchange.relays():
            sums: list[list[int]] = [[] for _ in relays]
            for step in range(exchange.ranks_per_host - 1):
                for relay, parts in zip(relays, sums, strict=True):
                    parts.append(self._to_passing(relay, relay.others[step], direct_nn, token_bytes))
            for relay, parts in zip(relays, sums, strict=True):
                num_bytes = int(hosts_nH[relay.sender, relay.passing // exchange.ranks_per_host])
                num_slices = exchange.num_slices(relay.sender, relay.passing, token_bytes)
                waits = (*parts, *self._work(relay.passing))
                self._add(relay.passing, relay.sender, num_bytes, num_slices=num_slices, waits=waits)

    def _to_passing(self, relay: Relay, member: int, direct_nn: IntArray, token_bytes: int) -> int:
        """Add a member's results on their way to the one that adds up, and return the message's number."""
        return self._add(
            member,
            relay.passing,
            int(direct_nn[relay.sender, member]),
            num_slices=self.exchange.num_slices(relay.sender, relay.passing, token_bytes),
            waits=self._work(member),
        )

    def _work(self, member: int) -> tuple[int, ...]:
        return (self.work_of[member],) if member in self.work_of else ()

    def _add(
        self,
        sender: int,
        receiver: int,
        num_bytes: int = 0,
        *,
        delay_ps: int = 0,
        num_slices: int = 1,
        waits: tuple[int, ...] = (),
    ) -> int:
        """Add a message and return its number."""
        self.messages.append(
            Message(
                sender=sender,
                receiver=receiver,
                num_bytes=num_bytes,
                delay_ps=delay_ps,
                num_slices=num_slices,
                waits=waits,
            )
        )
        return len(self.messages) - 1
