"""What both sides of the compiled engine agree on.

C structs in netsim/engine/state/law.hpp and NumPy records in cc/interface.py; settings and arrays by name.
"""

from dataclasses import replace

import numpy as np
import pytest

from fabrictune.cc.interface import FLOW_HEADER, MIN_CWND_BYTES, MIN_RATE_BPS, TELEMETRY_DTYPE
from fabrictune.netsim import _engine
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.engine_inputs.inputs import make_engine_inputs
from fabrictune.netsim.packet import make_simulation
from tests.netsim.conftest import compiled, network_of, one_switch, traffic_of


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
    """Two packets in a line; a port's hot half in one, its statistics in two."""
    assert _engine.BYTES_PER_PACKET == 32
    assert _engine.BYTES_PER_PORT == 3 * 64


def test_a_setting_or_array_that_one_side_does_not_know_is_refused() -> None:
    """The engine's lists are complete on both sides: no default hides a name that is missing, unknown or mistyped."""
    inputs = make_engine_inputs(
        network_of(one_switch(2), [(0, 1)]),
        traffic_of([{"bytes": 1}]),
        compiled("none"),
        PacketConfig(),
        seed=0,
        probe=None,
    )
    without = {name: value for name, value in inputs.settings.items() if name != "mtu_bytes"}
    with pytest.raises(KeyError, match="setting mtu_bytes is missing"):
        make_simulation(replace(inputs, settings=without), compiled("none"))
    with pytest.raises(TypeError, match="setting mtu is unknown"):
        make_simulation(replace(inputs, settings={**inputs.settings, "mtu": 1}), compiled("none"))
    with pytest.raises(TypeError, match="setting mtu_bytes has a wrong type"):
        make_simulation(replace(inputs, settings={**inputs.settings, "mtu_bytes": "4 KiB"}), compiled("none"))
    for name in ("path_rule", "marking", "past_load"):  # an enumerator, a curve and a range
        with pytest.raises(TypeError, match=f"setting {name} has a wrong type"):
            make_simulation(replace(inputs, settings={**inputs.settings, name: "none"}), compiled("none"))
    arrays = {name: array for name, array in inputs.arrays.items() if name != "port_peer"}
    with pytest.raises(KeyError, match="array port_peer is missing"):
        make_simulation(replace(inputs, arrays=arrays), compiled("none"))
    with pytest.raises(TypeError, match="array port_peers is unknown"):
        make_simulation(replace(inputs, arrays={**inputs.arrays, "port_peers": arrays["path"]}), compiled("none"))
    narrow = inputs["port_peer"].astype(np.int32)
    with pytest.raises(TypeError, match="array port_peer has a wrong type"):
        make_simulation(replace(inputs, arrays={**inputs.arrays, "port_peer": narrow}), compiled("none"))
