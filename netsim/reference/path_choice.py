"""Path choice of the reference engine: one port of those of equal cost."""

from fabrictune.netsim.engine_inputs.inputs import EngineInputs
from fabrictune.netsim.engine_inputs.limits import NO_ROUTE, PATH_END
from fabrictune.netsim.reference.state import Packet, Port, RandomStream

HASH, RANDOM, ROUND_ROBIN, LEAST_QUEUE, _WEIGHTED = range(5)


class PathChooser:
    """Names the port through which a packet leaves the node that it has reached."""

    def __init__(self, inputs: EngineInputs) -> None:
        self.settings, self.inputs = inputs.settings, inputs
        self.num_pairs = len(inputs["flow"])
        self.key = self.settings["path_choice_key"]
        self.streams: dict[int, RandomStream] = {}  # by the port through which packets arrive
        self.turns: dict[int, int] = {}  # by set
        self.flowlets: dict[tuple[int, int], tuple[int, int, int]] = {}  # by flow and switch: last packet, port, set
        self.path_set = 0  # in force, which has next hops of its own

    def next_port(self, arrived: int, packet: Packet, now_ps: int, ports: list[Port]) -> int | None:
        """Return the next port of the packet; None in a host."""
        fixed = packet.path.pop(0) if packet.path else None
        is_data = packet.kind == "data"
        if self.settings["path_rule"] == HASH or not (is_data or self.settings["control_has_choice"]):
            return fixed
        switch = int(self.inputs["next_hop_switch"][arrived])
        if switch == PATH_END:
            return None
        flow = 2 * packet.pair + (0 if is_data else 1)
        row = self.path_set * 2 * self.num_pairs + flow
        number = int(self.inputs["next_hop_set"][self.inputs["next_hop_row"][row] + switch])
        choices = slice(*(int(bound) for bound in self.inputs["next_hop_offset"][number : number + 2]))
        candidates = [int(port) for port in self.inputs["next_hop_port"][choices]]
        if len(candidates) <= 1:
            return candidates[0] if candidates else self._exit(switch, row)
        last_ps, port, last_set = self.flowlets.get((flow, switch), (None, 0, 0))
        if last_ps is None or now_ps - last_ps >= self.settings["flowlet_gap_ps"] or last_set != number:
            weights = [int(weight) for weight in self.inputs["next_hop_weight"][choices]]
            visit = flow * self._num_switches() + switch
            stream = self.streams.setdefault(arrived, RandomStream(self.key, arrived))
            port = self._choose(candidates, weights, number, visit, stream, ports)
        self.flowlets[flow, switch] = (now_ps, port, number)
        return port

    def _num_switches(self) -> int:
        behind = self.inputs["next_hop_switch"]
        return int(behind[behind != PATH_END].max()) + 1

    def _exit(self, switch: int, row: int) -> int:
        """Return the port from the switch straight to the destination, that of the fixed path if it is here."""
        exits = [int(port) for port in self.inputs["next_hop_exit"][2 * row : 2 * row + 2] if port != PATH_END]
        here = [port for port in exits if self.inputs["next_hop_switch"][self.inputs["port_peer"][port]] == switch]
        return here[0] if here else NO_ROUTE

    def _choose(
        self,
        candidates: list[int],
        weights: list[int],
        number: int,
        visit: int,
        stream: RandomStream,
        ports: list[Port],
    ) -> int:
        rule = self.settings["path_rule"]
        if rule == RANDOM:
            return candidates[stream.next_below(len(candidates))]
        if rule == ROUND_ROBIN:
            turn = self.turns.get(number, 0)
            self.turns[number] = turn + 1
            return candidates[turn % len(candidates)]
        if rule == LEAST_QUEUE:
            return self._least_queue(candidates, stream, ports)
        drawn = RandomStream(self.key, visit).next_below(sum(weights))
        return [port for port, weight in zip(candidates, weights, strict=True) for _ in range(weight)][drawn]

    def _least_queue(self, candidates: list[int], stream: RandomStream, ports: list[Port]) -> int:
        step_bytes, last_level = self.settings["queue_step_bytes"], self.settings["queue_levels"] - 1
        levels = [min(ports[port].queued_bytes // step_bytes, last_level) for port in candidates]
        least = [port for port, level in zip(candidates, levels, strict=True) if level == min(levels)]
        if len(least) == 1 or not self.settings["is_tie_random"]:
            return least[0]
        return least[stream.next_below(len(least))]
