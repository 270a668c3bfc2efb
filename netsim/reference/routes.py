"""Routes: the paths in force, and the choice among ports of equal cost.

A flow is a queue pair's data, or its answers: number 2 * queue pair + direction.

Source: netsim/config/path_choice.py has the papers.
"""

from fabrictune.netsim.engine_inputs.limits import NO_ROUTE, PATH_END
from fabrictune.netsim.reference.ports import Packet, Port
from fabrictune.netsim.reference.run import (
    ENTROPY,
    HASH,
    LEAST_QUEUE,
    QUALITY,
    RANDOM,
    ROUND_ROBIN,
    ClockEvent,
    EventKind,
    RandomStream,
    RunState,
)


class Router:
    """Names the port through which a packet leaves the node that it has reached."""

    def __init__(self, run: RunState, ports: list[Port]) -> None:
        self.run, self.ports = run, ports
        self.num_flows = 2 * run.num_pairs
        self.position = [flow * run.settings.path_stride for flow in range(self.num_flows)]  # in the table of paths
        self.path_set = self.next_epoch = 0
        self.streams: dict[int, RandomStream] = {}  # by the port through which packets arrive
        self.turns: dict[int, int] = {}  # by set of next hops
        self.flowlets: dict[tuple[int, int], tuple[int, int, int]] = {}  # last packet, port, set
        self.num_switches = 1 + max((switch for switch in self._switch_behind if switch != PATH_END), default=-1)
        self._schedule_epoch()

    @property
    def _switch_behind(self) -> list[int]:
        return self.run.columns["next_hop_switch"]

    def path(self, pair: int, direction: int) -> list[int]:
        """Return the ports of a flow's path."""
        start = self.position[2 * pair + direction]
        row = self.run.columns["path"][start : start + self.run.settings.path_stride]
        return [port for port in row if port != PATH_END]

    def begin_epoch(self) -> list[int]:
        """Put the paths in force that routing has converged on; return the flows that may have changed theirs."""
        columns, stride = self.run.columns, self.run.settings.path_stride
        changed = [flow for flow, start in enumerate(self.position) if start != flow * stride]
        for flow in changed:
            self.position[flow] = flow * stride
        self.path_set = columns["epoch_set"][self.next_epoch]
        for row in range(*columns["path_set_offset"][self.path_set : self.path_set + 2]):
            flow = columns["path_set_flow"][row]
            self.position[flow] = columns["path_set_position"][row]
            changed.append(flow)
        self.next_epoch += 1
        self._schedule_epoch()
        return changed

    def _schedule_epoch(self) -> None:
        if self.next_epoch < len(self.run.columns["epoch_time"]):
            self.run.schedule(self.run.columns["epoch_time"][self.next_epoch], EventKind.CLOCK, ClockEvent.REROUTE)

    def next_port(self, arrived: Port, packet: Packet) -> int | None:
        """Return the next port of a packet, NO_ROUTE if there is none; None in its host."""
        settings = self.run.settings
        fixed = packet.path.pop(0) if packet.path else None
        if settings.path_rule == HASH or not (packet.is_forward or settings.control_has_choice):
            return fixed
        switch = self._switch_behind[arrived.number]
        if switch == PATH_END:
            return None
        flow = 2 * packet.pair + (not packet.is_forward)
        row = self.path_set * self.num_flows + flow
        hops = self._next_hops(row, switch)
        candidates = self.run.columns["next_hop_port"][self._choices(hops)]
        if len(candidates) <= 1:
            return candidates[0] if candidates else self._exit(switch, row)
        if settings.path_rule == ENTROPY:
            visit = (flow * self.num_switches + switch) << 16 | packet.entropy
            return int(candidates[RandomStream(settings.path_choice_key, visit).next_below(len(candidates))])
        return self._choose_for_flowlet(arrived, flow, switch, hops)

    def _next_hops(self, row: int, switch: int) -> int:
        """Return the set of next hops from a switch for a flow in a set of paths."""
        columns = self.run.columns
        return int(columns["next_hop_set"][columns["next_hop_row"][row] + switch])

    def _choices(self, hops: int) -> slice:
        return slice(*self.run.columns["next_hop_offset"][hops : hops + 2])

    def _exit(self, switch: int, row: int) -> int:
        """Return the port from the switch straight to the destination, that of the fixed path if it is here."""
        exits = [port for port in self.run.columns["next_hop_exit"][2 * row : 2 * row + 2] if port != PATH_END]
        here = [port for port in exits if self._switch_behind[self.ports[port].peer.number] == switch]
        return here[0] if here else NO_ROUTE

    def _choose_for_flowlet(self, arrived: Port, flow: int, switch: int, hops: int) -> int:
        """Choose a port for the first packet of a flowlet; the others follow it."""
        now_ps, entry = self.run.now_ps, self._entry(flow, switch, hops)
        last_ps, port, last_hops = self.flowlets.get(entry, (None, 0, 0))
        if last_ps is None or now_ps - last_ps >= self.run.settings.flowlet_gap_ps or last_hops != hops:
            port = self._choose(arrived, flow, switch, hops)
        self.flowlets[entry] = (now_ps, port, hops)
        return port

    def _entry(self, flow: int, switch: int, hops: int) -> tuple[int, int]:
        """Return the place of a flow's flowlet: its own at the switch, or one of those of the set, by a hash."""
        settings = self.run.settings
        if settings.max_flows == 0:
            return flow, switch
        stream = RandomStream(settings.path_choice_key, flow * self.num_switches + switch)
        return hops, stream.next_below(settings.max_flows)

    def _choose(self, arrived: Port, flow: int, switch: int, hops: int) -> int:
        columns, key, rule = self.run.columns, self.run.settings.path_choice_key, self.run.settings.path_rule
        candidates: list[int] = columns["next_hop_port"][self._choices(hops)]
        stream = self.streams.setdefault(arrived.number, RandomStream(key, arrived.number))
        if rule == RANDOM:
            return candidates[stream.next_below(len(candidates))]
        if rule == ROUND_ROBIN:
            turn = self.turns.get(hops, 0)
            self.turns[hops] = turn + 1
            return candidates[turn % len(candidates)]
        if rule == LEAST_QUEUE:
            return self._least([self._queue_level(port) for port in candidates], candidates, stream)
        if rule == QUALITY:
            return self._least([self._quality(port) for port in candidates], candidates, stream)
        weights = columns["next_hop_weight"][self._choices(hops)]
        drawn = RandomStream(key, flow * self.num_switches + switch).next_below(sum(weights))
        return [port for port, weight in zip(candidates, weights, strict=True) for _ in range(weight)][drawn]

    def _queue_level(self, port: int) -> int:
        settings = self.run.settings
        return int(min(self.ports[port].queued_bytes // settings.queue_step_bytes, settings.queue_levels - 1))

    def _quality(self, port: int) -> int:
        meter = self.ports[port].load
        assert meter is not None, "every port has one under this rule"
        self.ports[port].sample_load()
        return meter.quality

    def _least(self, ranks: list[int], candidates: list[int], stream: RandomStream) -> int:
        """Return the port of the lowest rank; among equals the first, or any with equal chances."""
        least = [port for port, rank in zip(candidates, ranks, strict=True) if rank == min(ranks)]
        if len(least) == 1 or not self.run.settings.is_tie_random:
            return least[0]
        return least[stream.next_below(len(least))]
