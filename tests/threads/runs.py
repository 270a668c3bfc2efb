"""One run over several threads, and every result in which it differs from one thread's."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from fabrictune.cc.interface import CompiledLaw
from fabrictune.netsim import _engine, packet
from fabrictune.netsim.engine_inputs.inputs import EngineInputs
from fabrictune.netsim.packet import make_simulation
from tests.skip.runs import results


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What threads changed in a run, and how many it took."""

    differences: tuple[str, ...]  # names of results
    num_parts: int
    num_events: int
    peak_packets: int  # of all parts, each at its own time


def compare(inputs: EngineInputs, law: CompiledLaw, num_threads: int, *, events_per_slice: int = 10**8) -> Comparison:
    """Simulate on one thread and on several."""
    truth = results(finished(inputs, law, 1, events_per_slice=10**8))
    parted = finished(inputs, law, num_threads, events_per_slice=events_per_slice)
    ours = results(parted)
    return Comparison(
        differences=tuple(name for name in truth if truth[name] != ours[name]),
        num_parts=parted.num_parts,
        num_events=parted.num_events,
        peak_packets=parted.peak_packets,
    )


def finished(inputs: EngineInputs, law: CompiledLaw, num_threads: int, *, events_per_slice: int) -> _engine.Simulation:
    """Return the engine after the run."""
    settings = {**inputs.settings, "num_threads": num_threads, "skips_repeats": False}
    simulation = make_simulation(replace(inputs, settings=settings), law)
    while simulation.advance(events_per_slice) == _engine.Outcome.RUNNING:
        pass
    return simulation


@contextmanager
def every_run_compared(num_threads: int) -> Iterator[list[Comparison]]:
    """Compare every run that the packet engine is asked for; yields the comparisons so far."""
    made: list[Comparison] = []
    original = packet.make_simulation

    def compared(inputs: EngineInputs, law: CompiledLaw) -> _engine.Simulation:
        made.append(compare(inputs, law, num_threads))
        return original(inputs, law)

    packet.make_simulation = compared
    try:
        yield made
    finally:
        packet.make_simulation = original
