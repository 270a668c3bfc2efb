"""Dumps of the flight recorder: those of real processes over gloo, groups, windows that differ, and damage."""

import json
import os
import pickle
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fabrictune.collectives.request_matching import match_requests
from fabrictune.collectives.traces.flight_recorder import is_flight_recorder, read_flight_recorder
from fabrictune.collectives.traces.formats import read_trace
from fabrictune.foundation.errors import InputError, TraceError
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Operation
from fabrictune.trainer_probe.launcher.processes import launch
from tests.patience import patience

if TYPE_CHECKING:
    from fabrictune.collectives.startup.process_groups import Member

START_NS = 1_795_452_338_542_168_000  # a time of 2026


def record(member: "Member") -> dict[str, NDArray[Any]]:
    """Communicate over all ranks; returns the dump in both forms."""
    import torch
    import torch.distributed as dist
    from torch._C import _distributed_c10d

    os.environ["TORCH_FR_BUFFER_SIZE"] = "100"  # read with the first request
    everyone = member.process_groups["dp0"]
    values = torch.ones(1024)
    dist.all_reduce(values, group=everyone)
    dist.all_gather([torch.empty(1024) for _ in range(4)], values, group=everyone)
    dist.broadcast(values, 2, group=everyone)
    dist.reduce(values, 1, group=everyone)
    dist.barrier(group=everyone)
    dist.gather(values, [torch.empty(1024) for _ in range(4)] if member.rank == 0 else None, group=everyone)
    names = {"json": "_dump_fr_trace_json", "pickle": "_dump_fr_trace"}  # which torch's types leave out
    dumps = {form: getattr(_distributed_c10d, name)() for form, name in names.items()}
    as_bytes = {name: dump.encode() if isinstance(dump, str) else dump for name, dump in dumps.items()}
    return {name: np.frombuffer(dump, np.uint8) for name, dump in as_bytes.items()}


@cache
def dumps_of_processes() -> tuple[Mapping[str, bytes], ...]:
    """The dumps of four ranks."""
    ranks = launch(ParallelLayout(dp=4), record, timeout_s=patience(120))
    return tuple({name: dump.tobytes() for name, dump in found.items()} for found in ranks)


@pytest.fixture(params=["json", "pickle"])
def real_dumps(request: pytest.FixtureRequest, tmp_path: Path) -> list[Path]:
    """The dumps as PyTorch's heartbeat names them."""
    paths = []
    for rank, dumps in enumerate(dumps_of_processes()):
        paths.append(tmp_path / (f"nccl_trace_rank_{rank}" + (".json" if request.param == "json" else "")))
        paths[-1].write_bytes(dumps[request.param])
    return paths


def test_dumps_of_real_processes_are_read(real_dumps: list[Path]) -> None:
    """Four ranks over gloo, which lists no groups; 4 KiB, and 16 KiB where a rank has all parts."""
    assert all(map(is_flight_recorder, real_dumps))
    trace = read_trace(real_dumps)
    operations = [Operation.ALL_REDUCE, Operation.ALL_GATHER, Operation.BROADCAST, Operation.BROADCAST]
    operations.append(Operation.BARRIER)
    root, other = [*operations, *[Operation.RECEIVE] * 3], [*operations, Operation.SEND]
    assert trace.operation_N.tolist() == [*root, *other * 3]
    assert trace.bytes_N.tolist() == [4096, 16384, 4096, 4096, 0, *[4096] * 3, *[4096, 16384, 4096, 4096, 0, 4096] * 3]
    assert trace.peer_N.tolist()[2:4] == [0, 1], "from the first, and to the first from the second"
    assert trace.groups == ((0, 1, 2, 3),)
    assert trace.issue_ps_N.min() == 0
    assert (trace.complete_ps_N == UNKNOWN).all(), "gloo's requests are not timed"
    first = "taken as their group's first rank"
    assert trace.notes == (
        "groups whose ranks the dumps do not list, taken as the ranks whose dumps name them: 1",
        f"gathers and scatters whose root the trace does not name, {first}: 4",
        f"broadcasts whose root the trace does not name, {first}: 4",
        f"reduces whose root the trace does not name, {first}, and as broadcasts, which move the same: 4",
    )
    assert len(match_requests(trace)) == 5


def entry(name: str, number: int, **more: Any) -> dict[str, Any]:
    """A request of one KiB, which takes 5 us, 20 us after the one before."""
    begin_ns = START_NS + 20_000 * number
    return {
        "record_id": number,
        "process_group": ["0", "default_pg"],
        "collective_seq_id": number,
        "profiling_name": f"nccl:{name}",
        "time_created_ns": begin_ns - 1000,
        "input_sizes": [[16, 16]],
        "input_dtypes": ["Float"],
        "output_sizes": [[16, 16]],
        "output_dtypes": ["Float"],
        "state": "completed",
        "time_discovered_started_ns": begin_ns,
        "time_discovered_completed_ns": begin_ns + 5000,
        **more,
    }


def save(path: Path, *entries: object, ranks: object = "[0, 1]") -> Path:
    groups = {"0": {"name": "0", "desc": "default_pg", "ranks": ranks}}
    path.write_text(json.dumps({"version": "2.10", "pg_config": groups, "entries": entries}))
    return path


def read_pair(folder: Path, *windows: tuple[int, ...]) -> CommTrace:
    """All-reduces by their numbers, of each rank those of its window."""
    return read_flight_recorder(
        [
            save(folder / f"dump_{rank}", *(entry("all_reduce", number) for number in window))
            for rank, window in enumerate(windows)
        ]
    )


def test_what_nccl_timed_becomes_work_and_times(tmp_path: Path) -> None:
    """15 us between the end of one and the beginning of the next; times count from the first."""
    trace = read_pair(tmp_path, (1, 2), (1, 2))
    assert trace.compute_before_ps_N.tolist() == [0, 15_000_000] * 2
    assert trace.issue_ps_N.tolist() == [0, 20_000_000] * 2
    assert trace.complete_ps_N.tolist() == [5_000_000, 25_000_000] * 2
    assert [trace.dependencies.of(row).tolist() for row in range(4)] == [[], [0], [], [2]]
    assert set(trace.tag_N) == {"default_pg"}
    assert trace.notes == ()


def test_the_stretch_that_all_dumps_have_is_kept(tmp_path: Path) -> None:
    """Rank 0 has forgotten the first, and rank 1 was not asked for the last."""
    trace = read_pair(tmp_path, (2, 3, 4), (1, 2, 3))
    assert trace.rank_N.tolist() == [0, 0, 1, 1]
    assert trace.notes == ("collectives that not every dump of their group has, left out: 2",)
    with pytest.raises(TraceError, match="no collective that all dumps of its group have"):
        read_pair(tmp_path, (1,), (2,))


def test_messages_are_between_places_of_their_group(tmp_path: Path) -> None:
    """Group ranks 0 and 1 are ranks 4 and 6 of the job."""
    message = {"is_p2p": True, "collective_seq_id": 0, "p2p_seq_id": 1}
    paths = [
        save(tmp_path / "dump_4", entry("send 0->1", 1, **message), ranks="[4, 6]"),
        save(tmp_path / "dump_6", entry("recv 1<-0", 1, **message), ranks="[4, 6]"),
    ]
    trace = read_flight_recorder(paths)
    assert trace.operation_N.tolist() == [Operation.SEND, Operation.RECEIVE]
    assert trace.peer_N.tolist() == [6, 4]
    assert trace.bytes_N.tolist() == [1024, 1024]
    with pytest.raises(TraceError, match="'send 0->2' in a group of 2"):
        read_flight_recorder([save(tmp_path / "dump_4", entry("send 0->2", 1, **message), ranks="[4, 6]")])


def test_ranks_without_a_dump_follow(tmp_path: Path) -> None:
    """As with profiles."""
    trace = read_flight_recorder([save(tmp_path / "dump_1", entry("all_reduce", 1), ranks="[0, 1, 2]")])
    assert trace.rank_N.tolist() == [0, 1, 2]
    assert trace.notes[-1].endswith("2 of 3")


@pytest.mark.parametrize(
    ("name", "more", "message"),
    [
        ("dump", {}, "dump: no rank at the end of the name\n  allowed: NAME_RANK"),
        ("dump_2", {}, "a collective of ranks .0, 1. in the dump of rank 2"),
        ("dump_0", {"input_dtypes": ["Quad"]}, "elements of type 'Quad'"),
        ("dump_0", {"input_sizes": [[-1]]}, "input_sizes"),
        ("dump_0", {"time_created_ns": "now"}, "time_created_ns"),
        ("dump_0", {"collective_seq_id": None}, "collective_seq_id"),
        ("dump_0", {"process_group": None}, "no profiling_name, or no process_group"),
    ],
)
def test_mistakes_are_named(name: str, more: dict[str, Any], message: str, tmp_path: Path) -> None:
    """With file and entry; the time is that of asking where no beginning was measured."""
    if "time_created_ns" in more:
        more = {**more, "time_discovered_started_ns": None}
    with pytest.raises(TraceError, match=message):
        read_flight_recorder([save(tmp_path / name, entry("all_reduce", 1, **more))])


def test_two_dumps_of_a_rank_are_refused(tmp_path: Path) -> None:
    """One may be older."""
    paths = [save(tmp_path / name, entry("all_reduce", 1)) for name in ("old_0", "new_0")]
    with pytest.raises(TraceError, match="new_0: a second dump of rank 0"):
        read_flight_recorder(paths)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), is_pickle=st.booleans())
def test_damage_is_a_trace_or_a_named_error(data: st.DataObject, is_pickle: bool, tmp_path: Path) -> None:
    """Bytes changed, cut away or put in."""
    dump = {"version": "2.10", "pg_config": {"0": {"ranks": "[0, 1]"}}, "entries": [entry("broadcast", 1)]}
    whole = bytearray(pickle.dumps(dump, 2) if is_pickle else json.dumps(dump).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, max(len(whole) - 1, 0)))
        whole[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    path = tmp_path / "dump_0"
    path.write_bytes(bytes(whole))
    with suppress(TraceError, InputError):
        read_flight_recorder([path])
