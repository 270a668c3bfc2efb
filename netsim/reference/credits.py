"""Receiver credits: a NIC lets in no more than its link carries, shared among the senders that want to send to it.

A packet leaves only where there is credit, and says up to where its sender wants some. The receiver's NIC grants a few
packets to one queue pair after another, at its link's rate; while no one wants any, it grants up to a window to those
that have wanted some. All counts run on from the start, so that a later one makes up for those that were lost.

Source: netsim/engine/events/credits.inl, which says whose rules these are.
"""

from fabrictune.netsim.reference.forwarding import Forwarding
from fabrictune.netsim.reference.ports import Packet, Port, priority_of, serialization_ps
from fabrictune.netsim.reference.run import ClockEvent, EventKind, RunState


class Credit:
    """The sender's side of one queue pair's credit; without a window there is no end of it."""

    def __init__(self, run: RunState, pair: int) -> None:
        self.run = run
        windows = run.columns["credit_window"]
        self.window_bytes: int | None = windows[pair] if windows else None
        self.credit_bytes = self.window_bytes or 0
        self.granted_bytes = self.target_bytes = 0

    @property
    def is_used_up(self) -> bool:
        """Whether no packet may leave."""
        return self.window_bytes is not None and self.credit_bytes <= 0

    def wanted_target(self, backlog_bytes: int, cwnd_bytes: float) -> int:
        """Return up to where the sender wants credit: what waits, within its two windows."""
        assert self.window_bytes is not None, "asked before"
        wanted_bytes = min(backlog_bytes, self.window_bytes)
        window_bytes = cwnd_bytes + float(self.run.settings.mtu_bytes)
        if window_bytes < wanted_bytes:
            wanted_bytes = int(window_bytes)
        return max(self.target_bytes, self.granted_bytes + max(wanted_bytes - self.credit_bytes, 0))

    def take(self, granted_bytes: int) -> bool:
        """Take a grant; return False for one that a later one has overtaken."""
        if self.window_bytes is None or granted_bytes <= self.granted_bytes:
            return False
        self.credit_bytes = min(self.credit_bytes + granted_bytes - self.granted_bytes, self.window_bytes)
        self.granted_bytes = granted_bytes
        return True

    def forget_target(self) -> None:
        """Let the same be asked for again."""
        self.target_bytes = self.granted_bytes


class GrantPacers:
    """What every NIC grants, and to whom."""

    def __init__(self, run: RunState, forwarding: Forwarding) -> None:
        self.run, self.forwarding = run, forwarding
        self.window_bytes: list[int] = run.columns["credit_window"]  # by queue pair, as the next three
        self.granted_bytes = [0] * len(self.window_bytes)
        self.target_bytes = [0] * len(self.window_bytes)
        self.place: list[tuple[int, bool] | None] = [None] * len(self.window_bytes)  # port, and whether it wants some
        self.turns: dict[tuple[int, bool], list[int]] = {}  # queue pairs in turn, by the same
        self.next_ps: dict[int, int] = {}  # by port: when the last grant has passed
        self.has_event: set[int] = set()

    def note_target(self, port: Port, packet: Packet) -> None:
        """Take what a packet says that has come up to a NIC."""
        if not self.window_bytes:
            return
        pair = packet.pair
        self.target_bytes[pair] = max(self.target_bytes[pair], packet.credit_bytes)
        wants = self.target_bytes[pair] > self.granted_bytes[pair] or packet.kind == "credit-request"
        place = self.place[pair]
        if place is not None:
            if place[1] or not wants:
                return
            self.turns[place].remove(pair)
        self._wait(pair, port.number, wants=wants)
        if port.number not in self.has_event:
            self.has_event.add(port.number)
            time_ps = max(self.run.now_ps, self.next_ps.get(port.number, 0))
            self.run.schedule(time_ps, EventKind.CLOCK, ClockEvent.GRANT, port.number)

    def on_grant(self, number: int) -> None:
        """Grant to the queue pair whose turn it is, at the NIC behind a port."""
        for wants in (True, False):
            turns = self.turns.get((number, wants), [])
            if turns:
                self._grant(turns.pop(0), number, wants=wants)
                return
        self.has_event.discard(number)

    def _grant(self, pair: int, number: int, *, wants: bool) -> None:
        more_bytes = self.run.settings.grant_bytes
        if wants:
            more_bytes = min(max(self.target_bytes[pair] - self.granted_bytes[pair], 0), more_bytes)
        self.granted_bytes[pair] += more_bytes
        self.place[pair] = None
        unwanted_bytes = self.granted_bytes[pair] - self.target_bytes[pair]
        if unwanted_bytes < self.window_bytes[pair]:
            self._wait(pair, number, wants=unwanted_bytes < 0)
        self._send(pair)
        passing_bytes = max(more_bytes, self.run.settings.ack_bytes)
        rate_bps = self.run.columns["grant_rate"][number]
        self.next_ps[number] = self.run.now_ps + serialization_ps(passing_bytes, rate_bps)
        self.run.schedule(self.next_ps[number], EventKind.CLOCK, ClockEvent.GRANT, number)

    def _wait(self, pair: int, number: int, *, wants: bool) -> None:
        self.place[pair] = number, wants
        self.turns.setdefault((number, wants), []).append(pair)

    def _send(self, pair: int) -> None:
        run = self.run
        first, *path = self.forwarding.routes.path(pair, 1)
        grant = Packet("credit", pair, 0, run.settings.ack_bytes, run.now_ps, path, priority_of(run, "credit", pair))
        grant.credit_bytes = self.granted_bytes[pair]
        run.num_live += 1
        self.forwarding.enqueue(self.forwarding.ports[first], grant)
