"""PFC headroom: the bytes that still arrive after a node has decided to pause its neighbour.

In the worst case the pause frame first waits for a full frame on its own port, then crosses the cable; the neighbour
takes its response time, and just before it stops it begins one more full frame, which crosses the cable behind all that
was on it:

    headroom = rate * (2 * cable delay + response) + two full frames + one pause frame

The response of a MAC is bounded by the standard in pause quanta of 512 bit times. Rates that have no bound of their own
take the quanta of the next faster rate that has (more room, never less), rates beyond all the fastest one's time.

Source: IEEE 802.1Qbb annex O (form of the sum); IEEE 802.3 clause 31B and annex 31B (quanta).
"""

from fabrictune.foundation.errors import InputError, Mistake

PAUSE_FRAME_BYTES = 84  # 64 B of frame, 20 B of preamble and gap
QUANTUM_BITS = 512
RESPONSE_QUANTA = {  # link rate in bps -> bound
    10_000_000_000: 60,
    25_000_000_000: 80,
    40_000_000_000: 118,
    100_000_000_000: 394,
    400_000_000_000: 905,
}


def pfc_response_ps(rate_bps: int) -> int:
    """Return the longest time from a pause frame's arrival to silence that the standard allows at a rate."""
    listed = [rate for rate in RESPONSE_QUANTA if rate >= rate_bps]
    if not listed:
        fastest = max(RESPONSE_QUANTA)
        return _ceil(RESPONSE_QUANTA[fastest] * QUANTUM_BITS * 10**12, fastest)
    return _ceil(RESPONSE_QUANTA[min(listed)] * QUANTUM_BITS * 10**12, rate_bps)


def pfc_headroom_bytes(*, rate_bps: int, delay_ps: int, full_frame_bytes: int, response_ps: int | None = None) -> int:
    """Return the headroom of an ingress port fed at `rate_bps` over a cable of `delay_ps`.

    `full_frame_bytes` is the longest frame on the wire; `response_ps` defaults to the standard's bound.
    """
    if rate_bps <= 0 or delay_ps < 0:
        raise InputError(Mistake(where="headroom", found=f"{rate_bps} bps over {delay_ps} ps", allowed="a real link"))
    if response_ps is None:
        response_ps = pfc_response_ps(rate_bps)
    in_flight = _ceil(rate_bps * (2 * delay_ps + response_ps), 8 * 10**12)
    return in_flight + 2 * full_frame_bytes + PAUSE_FRAME_BYTES


def _ceil(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)
