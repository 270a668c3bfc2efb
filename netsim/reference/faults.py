"""Faults of the reference engine: what ails each port now, and which paths are in force."""

from dataclasses import dataclass, field

from fabrictune.netsim.engine_inputs.inputs import EngineInputs
from fabrictune.netsim.reference.state import Packet, RandomStream

CAUSES = ("link_down", "no_route", "bit_error")


@dataclass
class Health:
    """What ails one port."""

    random: RandomStream
    is_down: bool = False
    num_downs: int = 0
    lost_pause_frames: int = 0  # of those sent to this port, all up to this one are void
    loss_fraction: float = 0.0
    byte_arrives: float = 1.0
    dropped: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CAUSES, 0))

    def departure(self) -> int:
        """Return what a packet that leaves now must find on arrival."""
        return self.num_downs - self.is_down

    def has_error(self, packet: Packet) -> bool:
        """Draw whether a packet has an error; only where there are any."""
        if self.loss_fraction > 0 and self.random.next_fraction() < self.loss_fraction:
            return True
        return self.byte_arrives < 1 and self.random.next_fraction() >= _power(self.byte_arrives, packet.wire_bytes)


class Epochs:
    """The table of paths, and where in it each flow's path stands now."""

    def __init__(self, inputs: EngineInputs) -> None:
        self.inputs = inputs
        self.position = [row * inputs.settings["path_stride"] for row in range(2 * len(inputs["flow"]))]  # by flow
        self.path_set = self.next = 0

    def begin_next(self) -> list[int]:
        """Put the next epoch's paths in force; return the flows that may have changed theirs."""
        changed = [
            flow for flow, start in enumerate(self.position) if start != flow * self.inputs.settings["path_stride"]
        ]
        for flow in changed:
            self.position[flow] = flow * self.inputs.settings["path_stride"]
        self.path_set = int(self.inputs["epoch_set"][self.next])
        for row in range(*(int(bound) for bound in self.inputs["path_set_offset"][self.path_set : self.path_set + 2])):
            flow = int(self.inputs["path_set_flow"][row])
            self.position[flow] = int(self.inputs["path_set_position"][row])
            changed.append(flow)
        self.next += 1
        return changed


def _power(base: float, exponent: int) -> float:
    """Return a power by products in the compiled engine's order."""
    result = 1.0
    while exponent:
        if exponent % 2:
            result *= base
        exponent //= 2
        base *= base
    return result
