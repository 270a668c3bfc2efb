"""The law interface is frozen: what laws in users' files and compiled code rest on."""

from dataclasses import replace

import numpy as np

from fabrictune.cc.compiler import compile_law
from fabrictune.cc.interface import (
    EVENTS,
    FLOW_HEADER,
    MAX_TELEMETRY_HOPS,
    MIN_CWND_BYTES,
    MIN_RATE_BPS,
    NEVER,
    NUM_TIMERS,
    PLACE_SHIFT,
    TELEMETRY_DTYPE,
    UNLIMITED_CWND_BYTES,
    CompiledLaw,
    Status,
)
from fabrictune.cc.laws import load_law
from fabrictune.cc.places import Check, Place

PLACES = tuple(Place(check=Check.STEP, path="my_law.py", line=line, function="on_start") for line in (3, 5))


def law() -> CompiledLaw:
    """Return a law with two places that may fail."""
    return replace(compile_law(load_law("none")), places=PLACES)


def test_a_flow_begins_with_these_fields() -> None:
    """In C's layout, 72 bytes."""
    fields = np.dtype([tuple(entry) for entry in FLOW_HEADER], align=True).fields
    assert fields is not None
    assert {name: (offset, dtype.base.str, dtype.shape) for name, (dtype, offset, *_) in fields.items()} == {
        "rate_bps": (0, "<f8", ()),
        "cwnd_bytes": (8, "<f8", ()),
        "deadline_ps": (16, "<i8", (4,)),
        "line_rate_bps": (48, "<f8", ()),
        "base_rtt_ps": (56, "<i8", ()),
        "mtu_bytes": (64, "<i4", ()),
        "num_hops": (68, "<i4", ()),
    }
    assert TELEMETRY_DTYPE.itemsize == 32


def test_every_event_has_its_arguments() -> None:
    """Random tests of laws draw them between these ends, which are usual on a fabric of 400 Gb/s."""
    shown = {event: [tuple(argument) for argument in arguments] for event, arguments in EVENTS.items()}
    now = ("now_ps", "i8", 0, 0)
    assert shown == {
        "on_start": [now],
        "on_ack": [
            now,
            ("acked_bytes", "i8", 1, 4 * 2**20),
            ("rtt_ps", "i8", 10**6, 2 * 10**8),
            ("endpoint_delay_ps", "i8", 0, 2 * 10**8),
            ("num_hops", "i4", 1, 16),
            ("is_ecn_marked", "i4", 0, 1),
            ("telemetry", "TELEMETRY*", 0, 0),
        ],
        "on_cnp": [now],
        "on_timer": [now, ("timer", "i4", 0, 3)],
        "on_nack": [now],
        "on_timeout": [now],
        "on_send": [now, ("sent_bytes", "i8", 1, 4 * 2**20)],
        "on_trim": [
            now,
            ("trimmed_bytes", "i8", 1, 4 * 2**20),
            ("rtt_ps", "i8", 10**6, 2 * 10**8),
            ("is_last_hop", "i4", 0, 1),
        ],
    }


def test_numbers_that_laws_and_engines_share() -> None:
    """NEVER is the last picosecond of the clock; no law needs a limit of its own for 'no window'."""
    assert NEVER == 2**63 - 1
    assert (NUM_TIMERS, MAX_TELEMETRY_HOPS) == (4, 16)
    assert (MIN_RATE_BPS, MIN_CWND_BYTES, UNLIMITED_CWND_BYTES) == (1.0, 0.001, 1e18)
    assert {status.name: status.value for status in Status} == {
        "OK": 0,
        "RAISED": 1,
        "REFUSED": 2,
        "BAD_RATE": 3,
        "BAD_CWND": 4,
        "BAD_DEADLINE": 5,
    }


def test_a_status_says_at_which_place_a_handler_failed() -> None:
    """RAISED with the number of the place plus 1 in the bits from 32 on; anything else names none."""
    statuses = [Status.RAISED + (number << PLACE_SHIFT) for number in range(4)]
    assert [law().failed_place(status) for status in statuses] == [None, *PLACES, None]
    assert law().failed_place(Status.REFUSED + (1 << 32)) is None
    assert law().failed_place(Status.OK) is None
