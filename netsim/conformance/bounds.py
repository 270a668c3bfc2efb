"""Lower bounds: never beaten, and nearly reached."""

from functools import partial

from foundation.cases import Case
from netsim.conformance.one_switch import (
    GBPS,
    last_finish_us,
)

_HTSIM = "Broadcom/csg-htsim, validate.txt: {} at 100 Gb/s; lower bound N * S * 8 / C"


def cases() -> tuple[Case, ...]:
    """Return the cases."""

    def bound(name: str, what: str, senders: int, message_bytes: int, limit_us: float) -> Case:
        bound_us = senders * message_bytes * 8 / (100 * GBPS) * 1e6
        run = partial(last_finish_us, senders, message_bytes, 100 * GBPS, wire_overhead_bytes=0)
        return Case(
            name=name, source=_HTSIM.format(what), unit="us", expected=bound_us, low=bound_us, high=limit_us, run=run
        )

    return (
        bound("netsim.htsim-single-flow", "single flow of 2 MB, 180 to 190 us", 1, 2_000_000, 190.0),
        bound("netsim.htsim-incast-15-to-1", "15:1 incast of 2 MB, 2500 us", 15, 2_000_000, 2500.0),
    )
