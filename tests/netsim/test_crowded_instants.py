"""More events at one instant than the queue of events has room for at first."""

import pytest

from fabrictune.foundation.traces import Medium
from fabrictune.netsim import _engine
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.engine_inputs.inputs import make_engine_inputs
from fabrictune.netsim.packet import make_simulation
from tests.netsim.conftest import Rows, compiled, network_of, one_switch, traffic_of

DELAYS_PS = [number * 7_919 % 13 for number in range(20_000)]


def finishes(rows: Rows) -> list[int]:
    """Return when each transfer ends."""
    network, traffic, law = network_of(one_switch(2), [(0, 1)]), traffic_of(rows), compiled("none")
    simulation = make_simulation(make_engine_inputs(network, traffic, law, PacketConfig(), seed=0, probe=None), law)
    assert simulation.advance(10**9) == _engine.Outcome.FINISHED
    ends: list[int] = simulation.transfer_columns()["finish_ps"].tolist()
    return ends


@pytest.mark.parametrize("start_ps", [0, 1_000, 10**12])
def test_all_that_begins_at_one_instant_ends_after_its_own_delay(start_ps: int) -> None:
    """At once, soon, and beyond what the queue keeps by slots."""
    rows = [{"medium": Medium.NONE, "start_ps": start_ps, "delay_ps": delay_ps} for delay_ps in DELAYS_PS]
    assert finishes(rows) == [start_ps + delay_ps for delay_ps in DELAYS_PS]


def test_what_one_end_sets_free_follows_at_that_instant() -> None:
    """All but the first row wait for it: their events come while those of the instant are handled."""
    rows: Rows = [{"medium": Medium.NONE, "delay_ps": delay_ps, "waits": [0]} for delay_ps in DELAYS_PS]
    rows[0] = {"medium": Medium.NONE, "delay_ps": 10}
    assert finishes(rows) == [10, *(10 + delay_ps for delay_ps in DELAYS_PS[1:])]


def test_a_run_of_no_transfers_has_ended() -> None:
    """At 0."""
    assert finishes([]) == []
