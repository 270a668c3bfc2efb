"""Timelines of simulated runs."""

from pathlib import Path

import numpy as np
import pytest

from fabrictune.foundation.errors import RecordError
from fabrictune.foundation.records import RunRecord
from fabrictune.observability.timeline.perfetto import write_perfetto
from fabrictune.observability.timeline.simulation import simulation_timeline
from tests.observability.timeline.trace_processor import TraceProcessor

FABRIC = {
    "port": np.array([0, 1]),
    "node": np.array([0, 1]),
    "node_name": np.array(["host0", "host1"], object),
    "node_kind": np.array(["host", "host"], object),
    "tier": np.array([0, 0]),
    "group": np.array([-1, -1]),
    "port_name": np.array(["nic0", "nic0"], object),
    "peer_port": np.array([1, 0]),
    "rate_bps": np.array([400 * 10**9] * 2),
    "delay_ps": np.array([1000, 1000]),
    "nic": np.array([0, 1]),
    "rail": np.array([0, 0]),
}
TRANSFERS = {
    "transfer": np.arange(4),
    "qp": np.array([0, 0, 0, -1]),
    "source": np.array([0, 0, 0, 0]),
    "destination": np.array([1, 1, 1, 1]),
    "bytes": np.array([1000, 2000, 3000, 0]),
    "ready_ps": np.array([0, 0, 5000, 0]),
    "start_ps": np.array([1000, 4999, -1, 0]),
    "finish_ps": np.array([5000, 9999, -1, 10]),
}
SAMPLES = {
    "time_ps": np.array([0, 1_000_000]),
    "port": np.array([0, 0]),
    "queue_bytes": np.array([0, 512]),
    "tx_bytes": np.array([0, 25_000]),  # half of 400 Gbps for a microsecond
    "paused": np.array([0, 0]),
    "paused_ps": np.array([0, 0]),
}


def record(**tables: dict[str, np.ndarray]) -> RunRecord:
    """Return the record of a simulated run."""
    return RunRecord(
        kind="sim run", run={"end_ps": 20_000}, tables={"fabric": FABRIC, "transfers": TRANSFERS, **tables}
    )


def test_transfers_lie_on_tracks_of_their_queue_pair_and_host(processor: TraceProcessor, tmp_path: Path) -> None:
    """The second begins a picosecond before the first ends, so rounded down they overlap: 1 to 5, and 4 to 9."""
    timeline = simulation_timeline(record(samples=SAMPLES), facts={})
    assert timeline.facts["transfers that never finished, left out"] == 1
    assert timeline.facts["delays that move no bytes, left out"] == 1
    assert timeline.facts["ports that were not sampled"] == 1
    write_perfetto(timeline, tmp_path / "run.pftrace")
    trace = processor.load(tmp_path / "run.pftrace")
    assert trace.query(
        "select process.name, track.name, slice.name, ts, dur from slice "
        "join process_track track on track_id = track.id "
        "join process using (upid) order by ts"
    ) == [
        ("host0", "queue pair 0 to host1:nic0", "transfer 0", 1, 4),
        ("host0", "queue pair 0 to host1:nic0 (2)", "transfer 1", 4, 5),
    ]
    assert trace.query(
        "select track.name, unit, ts, value from counter join counter_track track on track_id = track.id order by 1, 3"
    ) == [
        ("load of host0:nic0", "%", 0, 50.0),
        ("load of host0:nic0", "%", 1000, 0.0),
        ("queue of host0:nic0", "bytes", 0, 0.0),
        ("queue of host0:nic0", "bytes", 1000, 512.0),
    ]


def test_faults_aborts_and_the_critical_path_have_tracks() -> None:
    """A fault that never ends lasts to the run's end."""
    goodput = {f"goodput_{when}_bps": np.array([0]) for when in ("before", "during", "after")}
    timeline = simulation_timeline(
        record(
            faults={
                "fault": np.array([0]),
                "description": np.array(["link down host0:nic0"], object),
                "begin_ps": np.array([3000]),
                "end_ps": np.array([-1]),
                "times": np.array([1]),
                **goodput,
            },
            aborts={"qp": np.array([0]), "time_ps": np.array([7000])},
            critical_path={
                "begin_ps": np.array([0, 5000]),
                "duration_ps": np.array([5000, 4000]),
                "step": np.array([0, 0]),
                "axis": np.array(["work", "dp"], object),
                "operation": np.array(["", "all_reduce"], object),
                "tag": np.array(["", "gradients"], object),
                "rank": np.array([3, 1]),
                "transfers": np.array([0, 2]),
                "port": np.array([-1, 0]),
            },
        ),
        facts={},
    )
    rows = zip(
        timeline.slices.name_N, timeline.slices.start_ns_N.tolist(), timeline.slices.end_ns_N.tolist(), strict=True
    )
    assert list(rows)[:4] == [
        ("link down host0:nic0", 3, 20),
        ("queue pair 0", 7, 7),
        ("work, rank 3", 0, 5),
        ("dp all_reduce gradients, rank 1", 5, 9),
    ]


def test_a_record_of_another_kind_is_refused() -> None:
    """A plan was never run."""
    with pytest.raises(RecordError, match="not a simulated run"):
        simulation_timeline(RunRecord(kind="train plan", run={}), facts={})
