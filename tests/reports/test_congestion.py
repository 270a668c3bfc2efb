"""Samples are thinned without losing a burst, and all runs of a page share one scale."""

from collections.abc import Callable

import numpy as np
import pytest

from fabrictune.foundation.records import RunRecord
from fabrictune.reports.congestion import MAX_INSTANTS, SharedScale, congestion_section, thin, worst_ports
from fabrictune.reports.record_view import open_run

MakeRecord = Callable[..., RunRecord]


def test_a_burst_of_one_sample_survives_thinning() -> None:
    """One deep sample among 10,000 instants of one port; 320 spans are drawn, one of them shows it in full."""
    queue_bytes = np.zeros(10_000, np.int64)
    queue_bytes[7_777] = 123_456
    timeline = thin(
        "run",
        {
            "time_ps": np.arange(10_000) * 1000,
            "port": np.zeros(10_000, np.int64),
            "queue_bytes": queue_bytes,
            "paused": np.zeros(10_000, np.int64),
        },
    )
    assert len(timeline.time_ps_B) == MAX_INSTANTS
    assert sorted(timeline.deepest_bytes_B.tolist())[-2:] == [0, 123_456]
    assert timeline.queue_bytes_KB.max() == 123_456


def test_paused_ports_are_counted_at_each_instant() -> None:
    """Three ports, two instants: first ports 0 and 2 are paused, then none. Samples may come in any order."""
    timeline = thin(
        "run",
        {
            "time_ps": np.array([5, 0, 0, 0, 5, 5]),
            "port": np.array([0, 0, 1, 2, 1, 2]),
            "queue_bytes": np.array([10, 20, 0, 7, 0, 0]),
            "paused": np.array([0, 1, 0, 1, 0, 0]),
        },
    )
    assert timeline.paused_ports_B.tolist() == [2, 0]
    assert timeline.deepest_bytes_B.tolist() == [20, 10]
    assert timeline.port_K == (0, 2)  # port 1 never queued
    assert timeline.queue_bytes_KB.tolist() == [[20, 10], [7, 0]]


def test_the_numbers_are_those_of_all_samples() -> None:
    """Of 10,000 samples one is deep: the median is 0, and not that of the deepest of each span drawn."""
    queue_bytes = np.where(np.arange(10_000) % 31 == 0, 500, 0)
    queue_bytes[7_777] = 9_000
    samples = {
        "time_ps": np.arange(10_000) * 1000,
        "port": np.zeros(10_000, np.int64),
        "queue_bytes": queue_bytes,
        "paused": np.zeros(10_000, np.int64),
    }
    timeline = thin("run", samples)
    assert np.median(timeline.queue_bytes_KB[0]) == 500
    assert (timeline.peak_bytes_K, timeline.peak_time_ps_K, timeline.median_bytes_K) == ((9_000,), (7_777_000,), (0,))


@pytest.mark.parametrize("is_counted", [True, False])
def test_ports_that_were_paused_unsampled_are_not_denied(make_record: MakeRecord, is_counted: bool) -> None:
    """Two of twelve ports were paused, neither when it was sampled: "never paused" stood above their table."""
    samples = {**make_record().tables["samples"], "paused": np.zeros(4, np.int64)}
    counts = {} if is_counted else {"ports": None}
    section = congestion_section([open_run(make_record(tables={"samples": samples, **counts}), "run")])
    assert section is not None
    caption = (
        "run: queue depth over time at 2 sampled ports; shaded, the deepest port. None of them was paused at a sample."
    )
    assert section.blocks[0].caption == caption + (" Paused at any time: 2 of all 12 ports." if is_counted else "")


def test_one_scale_holds_every_run() -> None:
    """The deeper queue of one run and the longer time of the other set the axes of both."""

    def sample(time_ps: int, queue_bytes: int) -> dict[str, np.ndarray]:
        values = {"time_ps": time_ps, "port": 0, "queue_bytes": queue_bytes, "paused": 0}
        return {name: np.array([value]) for name, value in values.items()}

    scale = SharedScale.of([thin("a", sample(1000, 5)), thin("b", sample(10, 900))])
    assert (scale.time_ps, scale.queue_bytes, scale.paused_ports) == (1000, 900, 0)


def test_the_longest_paused_port_stands_first(record: RunRecord) -> None:
    """NIC ports 0 and 2 were paused 15 us each, of a job of 200 us: 7.5 %; then port 8, whose queue was deep."""
    table = worst_ports(open_run(record, "run"))
    assert table is not None
    assert [row[0].text for row in table.rows] == [
        "h0:eth0 → tor0:swp1",
        "h1:eth0 → tor0:swp2",
        "tor0:swp3 → tor1:swp3",
    ]
    assert [cell.text for cell in table.rows[0]][1:4] == ["1", "15 us", "7.5 %"]
