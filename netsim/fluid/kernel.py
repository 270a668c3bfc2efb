"""The compiled fluid of a run, and how its transfers' bounds are widened."""

from collections.abc import Callable
from dataclasses import dataclass

from fabrictune.netsim import _engine
from fabrictune.netsim.engine_inputs.inputs import EngineInputs

MOST_UNCROWDED = 1024  # flows of a group whose transfers end at any instant
EVENTS_PER_SLICE = 1_000_000  # less than a second


@dataclass(frozen=True, kw_only=True)
class Widening:
    """How much earlier and later a transfer may be done, in parts of the time for which others had a say in it."""

    early: float = 0.0
    late: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Widenings:
    """The widening of transfers that nothing held, and of those that shared a full port."""

    alone: Widening = Widening()
    held: Widening = Widening()


WITHOUT_BOUNDS = Widenings()


def make_fluid(inputs: EngineInputs, *, most_uncrowded: int = MOST_UNCROWDED) -> _engine.Fluid:
    """Return the fluid of a packet engine's inputs, with all its transfers; larger groups of flows are crowds."""
    settings = inputs.settings
    fluid = _engine.Fluid(
        path=inputs["path"].ravel(),
        path_stride=settings["path_stride"],
        port_rate_bps=inputs["port_rate_bps"],
        port_delay_ps=inputs["port_delay_ps"],
        **{name: settings[name] for name in ("mtu_bytes", "wire_overhead_bytes", "ack_bytes", "ack_every_packets")},
        **{name: settings[name] for name in ("nvlink_rate_bps", "time_limit_ps")},
        num_transfers=len(inputs.traffic),
        most_uncrowded=most_uncrowded,
    )
    for arrays in inputs.transfers():
        fluid.add_transfers(arrays)
    return fluid


def start(fluid: _engine.Fluid, widenings: Widenings = WITHOUT_BOUNDS) -> None:
    """Begin, or begin anew, with these bounds."""
    fluid.start(*((widening.early, widening.late) for widening in (widenings.alone, widenings.held)))


def run_to_the_end(fluid: _engine.Fluid, tell: Callable[[], None] = lambda: None) -> None:
    """Advance until nothing is left to do, or the time limit has come; `tell` is called now and then."""
    while fluid.advance(EVENTS_PER_SLICE):
        tell()
