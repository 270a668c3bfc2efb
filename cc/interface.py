"""Law interface: how a congestion-control algorithm (law) written in Python drives a flow in the engine.

A law is a module of pure functions, one per event it cares about, each `handler(params, flow, now_ps, ...) -> status`.
`params` and `flow` are records (NumPy structured scalars when interpreted, C structs when compiled); a handler reads
the event and writes the flow. The engine obeys three fields of the flow after every handler: it paces to `rate_bps`,
keeps at most `cwnd_bytes` in flight (below one packet is allowed: one packet every `cwnd/mtu` round trips), and calls
`on_timer(k)` when the clock reaches `deadline_ps[k]`, which it first sets back to NEVER. Both limits always hold, and
neither may be 0 or so small that it means never (`MIN_RATE_BPS`, `MIN_CWND_BYTES`).

A module that is a law defines:

- `PARAMETERS`: tuple of `Parameter`; become the fields of `params`
- `STATE`: tuple of (name, type) or (name, type, (length,)), type one of f8, i8, i4; fields of `flow` after the engine's
  header, zero at the start
- `on_start(params, flow, now_ps)`: the flow's first data is ready; the engine has put it at line rate, without a window
  and without a timer; and any of
- `on_ack(params, flow, now_ps, acked_bytes, rtt_ps, endpoint_delay_ps, num_hops, is_ecn_marked, telemetry)`: payload
  newly acknowledged; the round trip of the packet that caused the acknowledgement, the part of it spent in end hosts,
  the links it crossed, and whether it was marked
- `on_cnp(params, flow, now_ps)`: a congestion notification arrived
- `on_nack(params, flow, now_ps)`: the receiver reports a gap; `on_timeout(params, flow, now_ps)`: the retransmission
  timer expired; in both cases the engine goes back by itself
- `on_timer(params, flow, now_ps, timer)`: deadline_ps[timer] was reached; it reads NEVER until the law sets it again
- `on_send(params, flow, now_ps, sent_bytes)`: a packet left with so much payload, first or repeated
- `on_trim(params, flow, now_ps, trimmed_bytes, rtt_ps, is_last_hop)`: a switch cut this payload off a packet, at the
  last hop or before; the round trip of the rest. A law without it hears `on_nack`
- `VARIANT`: which form of its algorithm it is, where others go by the same name; tables and notes say it
- `MARKING`: a `MarkingRule`, if switches are to mark for it otherwise than for DCQCN
- `USES_TELEMETRY = True` if it reads `telemetry` (in-band telemetry, `num_hops` records of TELEMETRY_DTYPE, the
  NIC's own port first); without it the engine collects none and passes an array it must not read.

A handler not defined is not called. Functions and numbers of the module, and functions it imports, may be used in
handlers; the module needs no compiler's decorators. Interpreted and compiled runs agree bit for bit if handlers use
only + - * / on numbers, // and % on integers, comparisons, `min`, `max`, `abs`, `math.sqrt` and `integer_power`; `**`
and `exp` round differently in compiled code.
A handler fails, and ends the run, where it raises, loops more than 100,000 times in one call, takes // or % of zero,
uses an index outside its array, or makes a whole number of a float that is too large or no number (`places`).
This interface is frozen: it may grow at the end of a record or by a new event, never change before it.

Source: the events are those that DCQCN (SIGCOMM'15), TIMELY (SIGCOMM'15), HPCC (SIGCOMM'19) and Swift (SIGCOMM'20)
react to.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from fabrictune.cc.link_rules import RED, MarkingRule, Rule
from fabrictune.cc.places import Place

NEVER = np.iinfo(np.int64).max  # a timer that is not set
NUM_TIMERS = 4
UNLIMITED_CWND_BYTES = 1e18
MIN_RATE_BPS = 1.0  # a law that goes below has lost its flow: a packet would take hours
MIN_CWND_BYTES = 0.001

# The engine's header: what every flow record begins with. 72 bytes.
FLOW_HEADER: tuple[tuple[str, str] | tuple[str, str, tuple[int, ...]], ...] = (
    ("rate_bps", "f8"),  # written by the law: pace of payload and headers
    ("cwnd_bytes", "f8"),  # written by the law: limit of payload in flight
    ("deadline_ps", "i8", (NUM_TIMERS,)),  # written by the law: when on_timer(k) is due
    ("line_rate_bps", "f8"),  # rate of the flow's NIC
    ("base_rtt_ps", "i8"),  # round trip of one full packet and its acknowledgement on empty queues
    ("mtu_bytes", "i4"),  # payload of a full packet
    ("num_hops", "i4"),  # links from source to destination
)

TELEMETRY_DTYPE = np.dtype(
    [("time_ps", "i8"), ("tx_bytes", "i8"), ("queue_bytes", "i8"), ("rate_bps", "f8")],
    align=True,
)
MAX_TELEMETRY_HOPS = 16


class Argument(NamedTuple):
    """One argument of an event: its name, its C type, and the values that are usual on a 400G fabric."""

    name: str
    kind: str
    low: int = 0
    high: int = 0


_NOW = Argument("now_ps", "i8")

# Each event's arguments after params and flow; a compiled handler returns its status as int64. Compiled entries, rules
# and random tests of laws all follow from this table.
EVENTS: dict[str, tuple[Argument, ...]] = {
    "on_start": (_NOW,),
    "on_ack": (
        _NOW,
        Argument("acked_bytes", "i8", 1, 2**22),
        Argument("rtt_ps", "i8", 1_000_000, 200_000_000),
        Argument("endpoint_delay_ps", "i8", 0, 200_000_000),  # a part of rtt_ps
        Argument("num_hops", "i4", 1, MAX_TELEMETRY_HOPS),
        Argument("is_ecn_marked", "i4", 0, 1),
        Argument("telemetry", "TELEMETRY*"),  # of num_hops
    ),
    "on_cnp": (_NOW,),
    "on_timer": (_NOW, Argument("timer", "i4", 0, NUM_TIMERS - 1)),
    "on_nack": (_NOW,),
    "on_timeout": (_NOW,),
    "on_send": (_NOW, Argument("sent_bytes", "i8", 1, 2**22)),
    "on_trim": (
        _NOW,
        Argument("trimmed_bytes", "i8", 1, 2**22),
        Argument("rtt_ps", "i8", 1_000_000, 200_000_000),
        Argument("is_last_hop", "i4", 0, 1),
    ),
}


class Status(IntEnum):
    """Return value of a handler. Anything but OK stops the run with a LawError naming law, event, flow and time."""

    OK = 0
    RAISED = 1  # set by the compiled entry when the handler raised or failed a check; the bits from 32 on say where
    REFUSED = 2  # the law met a state it declares impossible
    BAD_RATE = 3  # set by the engine: rate_bps is below MIN_RATE_BPS, infinite, or no number
    BAD_CWND = 4  # set by the engine: cwnd_bytes is below MIN_CWND_BYTES, or no number
    BAD_DEADLINE = 5  # set by the engine: a deadline in the past


PLACE_SHIFT = 32  # a compiled handler's status is a Status, and above it the number of the place that failed plus 1
STATUS_MASK = 2**PLACE_SHIFT - 1


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One tunable number of a law."""

    name: str  # with its unit: "additive_increase_bps"
    default: float
    low: float  # smallest and largest value that make sense
    high: float
    meaning: str
    dtype: str = "f8"  # "i8" for counts and durations
    rule: Rule | None = None  # by which the default follows the link; `default` is then the paper's own


@dataclass(frozen=True, kw_only=True)
class CompiledLaw:
    """A law ready for an engine: C pointers to its handlers, and the layout of its records."""

    name: str
    source: str  # text of the module, kept in run records
    handler_address: dict[str, int]  # event -> C function pointer; events the law does not handle are absent
    params: np.ndarray  # one record, the law's parameters as set
    flow_dtype: np.dtype[np.void]
    uses_telemetry: bool
    reads_marks: bool  # whether it matters to the law if a packet was marked
    keep_alive: Any  # what the pointers point into
    places: tuple[Place, ...] = ()  # of each check, by its number
    unset: tuple[Parameter, ...] = ()  # those with a rule, of which only the default is known
    chosen: tuple[Parameter, ...] = ()  # those with a rule that are set
    derived: Mapping[str, str] = field(default_factory=dict)  # parameter -> the rule that gave its value, with source
    marking: MarkingRule = RED  # how switches mark for it
    variant: str = ""  # which form of its algorithm it is, where there are several
    file_sha256: str = ""  # of a law in a file of the user's

    def failed_place(self, status: int) -> Place | None:
        """Return where a handler failed that returned this status; None where it did not, or at no known place."""
        number = (status >> PLACE_SHIFT) - 1
        has_failed = status & STATUS_MASK == Status.RAISED and 0 <= number < len(self.places)
        return self.places[number] if has_failed else None
