"""The compiled simulation by itself: counts beyond 32 bits, and readers while it advances."""

import ctypes
import threading
from dataclasses import replace

import numpy as np
import pytest

from fabrictune.netsim import _engine
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.engine_inputs.inputs import EngineInputs, make_engine_inputs
from fabrictune.netsim.packet import make_simulation
from fabrictune.topology.draft import FabricDraft
from tests.netsim.conftest import compiled, network_of, one_switch, traffic_of

FULL_BYTES, ACK_BYTES, PS_PER_BYTE = 1000, 100, 80  # at 100 Gb/s
ON_START = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
MOST = 2**62


def _inputs(num_bytes: int) -> EngineInputs:
    network, traffic = network_of(one_switch(2), [(0, 1)]), traffic_of([{"bytes": num_bytes}])
    return make_engine_inputs(network, traffic, compiled("none"), PacketConfig(), seed=0, probe=None)


@pytest.mark.parametrize("engine", ["lean", "force_full", "skips_repeats"])
def test_packets_of_a_port_are_counted_beyond_32_bits(engine: str) -> None:
    """A count that begins two below 2^32 is full after two of 4,000 packets, and the result is 4,000 all the same."""
    inputs, law = _inputs(4000 * 4096), compiled("none")
    chosen = {name: name == engine for name in ("force_full", "skips_repeats")}
    counts = []
    for first in (0, 2**32 - 2):
        settings = {**inputs.settings, "first_packet_count": first, **chosen}
        simulation = make_simulation(replace(inputs, settings=settings), law)
        assert simulation.advance(MOST) == _engine.Outcome.FINISHED
        assert (simulation.num_skipped_events > 0) == (engine == "skips_repeats")
        counts.append(simulation.port_columns())
    assert set(counts[0]["data_packets"].tolist()) == {0, 4000}
    for name, column in counts[0].items():
        np.testing.assert_array_equal(counts[1][name], column, err_msg=name)


def test_a_simulation_is_read_only_between_two_slices() -> None:
    """It advances without the interpreter's lock: another thread would read columns that change beneath it."""
    inputs = _inputs(4096)
    errors: list[str] = []
    running: list[_engine.Simulation] = []

    def read() -> None:
        simulation = running[0]
        for use in (simulation.port_columns, lambda: simulation.now_ps, lambda: simulation.advance(1)):
            try:
                use()
            except RuntimeError as error:
                errors.append(str(error))

    def on_start(params: int, flow: int, now_ps: int) -> int:
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
        return 0

    handler = ON_START(on_start)
    address = ctypes.cast(handler, ctypes.c_void_p).value
    assert address
    running.append(
        _engine.Simulation(
            settings=inputs.settings,
            law=_engine.Law(handlers={"on_start": address}, params=0, uses_telemetry=False, reads_marks=False),
            arrays={**inputs.arrays, "flow": inputs["flow"].view("u1")},
        )
    )
    for arrays in inputs.transfers():
        running[0].add_transfers(arrays)
    running[0].start()
    assert running[0].advance(MOST) == _engine.Outcome.FINISHED
    message = "the simulation is advancing in another thread; use it between two calls of advance"
    assert errors == [message] * 3
    assert running[0].now_ps > 0


def test_it_starts_once_with_all_its_transfers_before_it_advances() -> None:
    """Without a start it stalled at time 0, as if its transfers were done for."""
    inputs, law = _inputs(4096), compiled("none")
    simulation = _engine.Simulation(
        settings=inputs.settings,
        law=_engine.Law(
            handlers=law.handler_address,
            params=law.params.ctypes.data,
            uses_telemetry=law.uses_telemetry,
            reads_marks=law.reads_marks,
        ),
        arrays={**inputs.arrays, "flow": inputs["flow"].view("u1")},
    )
    (arrays,) = inputs.transfers()
    simulation.add_transfers(arrays)
    with pytest.raises(
        RuntimeError, match=r"^the simulation has not started; call start once it has all its transfers$"
    ):
        simulation.advance(MOST)
    simulation.start()
    for late in (simulation.start, lambda: simulation.add_transfers(arrays)):
        with pytest.raises(RuntimeError, match=r"^the simulation has started; make a new one for other transfers$"):
            late()
    assert simulation.advance(MOST) == _engine.Outcome.FINISHED


def test_the_first_samples_have_the_round_trips_of_the_law_s_records() -> None:
    """At 0 ps, before any answer, each pair's is that of its own cables: 10 ns each, and 500 to host 2."""
    draft = FabricDraft("cables")
    switch = draft.add_switch("tor")
    for number, delay_ps in enumerate((10_000, 10_000, 500_000)):
        host = draft.add_host(f"host{number}")
        draft.add_link((host, "nic0"), (switch, f"host{number}"), rate_bps=10**11, delay_ps=delay_ps)
    network, law = network_of(draft.finish(), [(0, 1), (1, 2)]), compiled("none")
    traffic = traffic_of([{"bytes": 100_000, "qp": qp} for qp in range(2)])
    config = PacketConfig(mtu_bytes=FULL_BYTES, wire_overhead_bytes=0, ack_bytes=ACK_BYTES)
    probe = ProbeConfig(interval_ns=1_000, all_flows=True)
    simulation = make_simulation(make_engine_inputs(network, traffic, law, config, seed=0, probe=probe), law)
    simulation.advance(10**6)
    first = {name: column[:2].tolist() for name, column in simulation.flow_sample_columns().items()}
    sending_ps = 2 * (FULL_BYTES + ACK_BYTES) * PS_PER_BYTE
    assert first["time_ps"] == [0, 0]
    assert first["rtt_ps"] == [sending_ps + 4 * 10_000, sending_ps + 2 * 10_000 + 2 * 500_000]
