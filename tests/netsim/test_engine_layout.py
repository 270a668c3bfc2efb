"""The two sides of the law interface: C structs in netsim/engine/law.hpp, NumPy records in cc/interface.py."""

import numpy as np

from fabrictune.cc.interface import FLOW_HEADER, MIN_CWND_BYTES, MIN_RATE_BPS, TELEMETRY_DTYPE
from fabrictune.netsim import _engine


def test_records_have_the_same_layout_on_both_sides() -> None:
    """A field at another offset would be read as another number, silently."""
    header = np.dtype(list(FLOW_HEADER), align=True)
    offsets = {name: field[1] for name, field in (header.fields or {}).items()}
    telemetry = {f"telemetry.{name}": field[1] for name, field in (TELEMETRY_DTYPE.fields or {}).items()}
    sizes = {"flow_header": header.itemsize, "telemetry": TELEMETRY_DTYPE.itemsize}
    assert _engine.law_layout() == offsets | telemetry | sizes


def test_both_sides_refuse_the_same_rates_and_windows() -> None:
    """The message names the bounds that the engine holds a law to."""
    assert (_engine.MIN_RATE_BPS, _engine.MIN_CWND_BYTES) == (MIN_RATE_BPS, MIN_CWND_BYTES)


def test_what_a_hop_touches_fits_in_cache_lines() -> None:
    """Two packets in a line; a port's hot half in one, its ledger in two."""
    assert _engine.BYTES_PER_PACKET == 32
    assert _engine.BYTES_PER_PORT == 3 * 64
