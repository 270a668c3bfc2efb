"""Entropy values on two ToRs joined by four aggregation switches: each value is a path, and REPS keeps good ones."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.records import RunRecord
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.path_choice import PathChoiceConfig
from fabrictune.netsim.config.switch import EcnConfig, PfcConfig
from fabrictune.netsim.config.transport import TransportConfig
from tests.netsim.scenarios import random_scenario, with_trimming
from tests.netsim.test_path_choice import BARE, two_tors, uplink_packets
from tests.netsim.test_reference import assert_equals_reference

Simulate = Callable[..., RunRecord]
LOSSY = replace(
    BARE,
    pfc=PfcConfig(enabled=False),
    transport=TransportConfig(reliability="selective-repeat", reorder_window_ns=1_000_000),
)


def by_entropy(config: PacketConfig = LOSSY, **settings: object) -> PacketConfig:
    """Return a configuration that chooses by entropy."""
    return replace(config, path_choice=PathChoiceConfig(mode="entropy", **settings))  # type: ignore[arg-type]


def test_one_value_is_one_path(simulate: Simulate) -> None:
    """All packets of a queue pair have the same hash."""
    record = simulate([(0, 4)], [{"bytes": 1_000_000}], by_entropy(entropy_values=1), fabric=two_tors())
    assert sorted(uplink_packets(record).tolist()) == [0, 0, 0, 1000]
    assert record.run["packets"]["data_out_of_order"] == 0


def test_many_values_use_every_path_alike(simulate: Simulate) -> None:
    """1,000 packets over four ports: 250 each, with a standard deviation of 13.7; five of them are 68."""
    record = simulate([(0, 4)], [{"bytes": 1_000_000}], by_entropy(entropy_values=2**16), fabric=two_tors())
    assert np.abs(uplink_packets(record) - 250).max() < 68


def test_reps_keeps_queues_shorter_than_chance(simulate: Simulate) -> None:
    """Four flows fill four uplinks. Values without a mark are used again, so fewer packets meet by chance."""
    config = replace(LOSSY, ecn=EcnConfig(kmin_bytes=3_000, kmax_bytes=3_001, pmax_fraction=1.0))
    pairs = [(0, 4), (1, 5), (2, 6), (3, 7)]
    rows = [{"bytes": 2_000_000, "qp": qp} for qp in range(4)]
    chance, reps = (
        simulate(pairs, rows, by_entropy(config, entropy=entropy), fabric=two_tors(), law="nscc")
        for entropy in ("random", "reps")
    )
    for table, column in (("transfers", "finish_ps"), ("ports", "max_queue_bytes")):
        assert reps.tables[table][column].max() < chance.tables[table][column].max()


def test_reps_freezes_on_what_works_when_a_path_fails(simulate: Simulate) -> None:
    """Random wires lose 5 %, so timeouts come; the runs end, and each value still is one path."""
    lossy = by_entropy(replace(LOSSY, loss_fraction=0.05), entropy="reps", freeze_ns=50_000)
    config = replace(lossy, transport=replace(lossy.transport, timeout_ns=20_000))
    record = simulate([(0, 4)], [{"bytes": 300_000}], config, fabric=two_tors())
    assert record.run["outcome"] == "finished"


@pytest.mark.parametrize("first_seed", range(0, 40, 20))
def test_compiled_engine_equals_the_reference(first_seed: int) -> None:
    """REPS over random runs with and without trimming: marks, losses, timeouts, faults."""
    for seed in range(first_seed, first_seed + 20):
        scenario = random_scenario(seed)
        if seed % 2 == 0:
            scenario = with_trimming(scenario, "nscc")
        values = 64 if seed % 3 else 5
        choice = PathChoiceConfig(
            mode="entropy",
            entropy="reps",
            entropy_values=values,
            freeze_ns=5_000 * (seed % 4),
            acknowledgements="same" if seed % 5 else "hash",
        )
        assert_equals_reference(replace(scenario, config=replace(scenario.config, path_choice=choice)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"entropy_values": 0}, "path_choice.entropy_values: 0\n  allowed: 1 to 65536"),
        ({"freeze_ns": -1}, "path_choice.freeze: -1 ns\n  allowed: 0 to 100000000000000 ns"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, int], message: str) -> None:
    """Where, what was found, what is allowed."""
    with pytest.raises(InputError) as error:
        PathChoiceConfig(**settings)  # type: ignore[arg-type]
    assert str(error.value) == message
