"""Transfer phases of a NIC, worked out by hand."""

from pathlib import Path

import numpy as np
import pytest

from fabrictune.rdma_bench.counters.catalog import meaning_of
from fabrictune.rdma_bench.monitor.phases import find_phases, link_rates
from fabrictune.rdma_bench.monitor.sources import CounterFile


def counter(name: str) -> CounterFile:
    return CounterFile(device="eth0", name=name, meaning=meaning_of(name), path=Path(name), descriptor=-1)


def test_phases_are_of_the_links_rate() -> None:
    """At 100 Mbps a millisecond has 12,500 B. Four of half of that, a pause of two, three whole ones: 62,500 B in 9 ms.

    A pause of three ends a phase; what is below a tenth of the rate is none.
    """
    counters = [counter("tx_bytes"), counter("np_cnp_sent")]
    sent_K = [6250] * 4 + [0] * 2 + [12_500] * 3 + [0] * 3 + [12_500] + [1000] * 3
    rise_KC = np.array([sent_K, [0, 3] + [0] * 14]).T
    phases = find_phases(counters, np.arange(17) / 1000.0, rise_KC, {"eth0": 100_000_000})
    assert [(phase.num_samples, phase.num_bytes) for phase in phases] == [(9, 62_500), (1, 12_500)]
    assert phases[0].share_fraction == pytest.approx(62_500 / (9 * 12_500))
    assert phases[0].signals["cnps"] == 3
    assert phases[1].begin_s == pytest.approx(0.012)


def test_rates_are_those_that_settings_say() -> None:
    """Megabits of an interface, the text of an RDMA port; an interface without a link says -1 or nothing."""
    settings = {
        ("eth0", "speed"): "400000",
        ("eth1", "speed"): "-1",
        ("eth2", "speed"): "",
        ("mlx5_0/1", "rate"): "200 Gb/sec (4X HDR)",
        ("mlx5_1/1", "rate"): "unknown",
    }
    assert link_rates(settings) == {"eth0": 400_000_000_000, "mlx5_0/1": 200_000_000_000}
