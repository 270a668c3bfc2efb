"""Profiler traces: kernels become requests with their times, missing ranks follow, and damage is named."""

import gzip
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fabrictune.collectives.traces.kineto import is_kineto, read_kineto
from fabrictune.foundation.errors import TraceError
from fabrictune.foundation.traces import UNKNOWN, Operation


def event(name: str, start_us: float, duration_us: float, **more: Any) -> dict[str, Any]:
    arguments = {
        "Collective name": name,
        "In msg nelems": 100,
        "Out msg nelems": 100,
        "dtype": "BFloat16",
        "Process Group Ranks": "[0, 1]",
    }
    entry = {"ph": "X", "cat": "kernel", "name": "ncclDevKernel", "pid": 0, "tid": 7}
    return {**entry, "ts": start_us, "dur": duration_us, "args": {**arguments, **more}}


def save(path: Path, *events: dict[str, Any], rank: int = 0) -> Path:
    document = {"distributedInfo": {"rank": rank}, "traceEvents": [{"ph": "M", "name": "process_name"}, *events]}
    text = json.dumps(document).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_kernels_become_requests(name: str, tmp_path: Path) -> None:
    """200 B each; the second starts 3 us after the first has ended, on the same stream. Rank 1 has no trace."""
    later = event("_allgather_base", 18.25, 1, **{"Out msg nelems": 200})
    path = save(tmp_path / name, later, event("allreduce", 10, 5.25))
    assert is_kineto(path)
    trace = read_kineto([path])
    assert trace.rank_N.tolist() == [0, 0, 1, 1]
    assert trace.operation_N.tolist() == [Operation.ALL_REDUCE, Operation.ALL_GATHER] * 2
    assert trace.bytes_N.tolist() == [200, 400] * 2
    assert trace.compute_before_ps_N[:2].tolist() == [0, 3_000_000]
    assert trace.issue_ps_N.tolist() == [10_000_000, 18_250_000, UNKNOWN, UNKNOWN]
    assert [trace.dependencies.of(row).tolist() for row in range(4)] == [[], [0], [], [2]]


def test_entries_of_the_host_count_where_no_kernel_tells(tmp_path: Path) -> None:
    """A gloo job: `record_param_comms`, of which waits and ends of groups are no requests."""
    on_host = {"cat": "cpu_op", "name": "record_param_comms"}
    path = save(tmp_path / "trace.json", {**event("broadcast", 1, 1), **on_host}, {**event("wait", 2, 1), **on_host})
    assert read_kineto([path]).operation_N.tolist() == [Operation.BROADCAST] * 2


def test_a_list_of_ranks_cut_short_is_completed(tmp_path: Path) -> None:
    """Kineto shortens long lists; first rank, stride and length tell the rest."""
    more = {
        "Process Group Ranks": "[0, 8, ...]",
        "Global rank start": 0,
        "Global rank stride": 8,
        "Group size": 4,
    }
    assert read_kineto([save(tmp_path / "trace.json", event("allreduce", 1, 1, **more))]).groups == ((0, 8, 16, 24),)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"dtype": "Quaternion"}, "elements of type 'Quaternion'"),
        ({"In msg nelems": -1}, "elements"),
        ({"Process Group Ranks": "everyone"}, "ranks 'everyone'"),
        ({"Collective name": "send"}, "no 'Dst Rank'"),
    ],
)
def test_what_cannot_be_used_is_named(change: dict[str, Any], found: str, tmp_path: Path) -> None:
    """With file, collective and time."""
    path = save(tmp_path / "trace.json", event("allreduce", 17, 1, **change))
    with pytest.raises(TraceError) as error:
        read_kineto([path])
    assert found in str(error.value)
    assert "at 17 us" in str(error.value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(data=st.data(), is_packed=st.booleans())
def test_damage_is_a_trace_or_a_named_error(data: st.DataObject, is_packed: bool, tmp_path: Path) -> None:
    """Bytes changed, cut off and put in, packed or not: never another exception."""
    name = "trace.json.gz" if is_packed else "trace.json"
    path = save(tmp_path / name, event("allreduce", 1, 1), event("broadcast", 2, 1))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    with suppress(TraceError):
        read_kineto([path])
