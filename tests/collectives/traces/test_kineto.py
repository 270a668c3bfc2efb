"""Profiler traces: kernels become requests with their times, missing ranks follow, and damage is named."""

import gzip
import json
import os
import re
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fabrictune.collectives.request_matching import match_requests
from fabrictune.collectives.traces import kineto, torch_groups
from fabrictune.collectives.traces.formats import read_trace
from fabrictune.collectives.traces.kineto import is_kineto, read_kineto
from fabrictune.foundation.errors import TraceError
from fabrictune.foundation.json_streams import CHUNK_BYTES
from fabrictune.foundation.traces import UNKNOWN, Operation
from tests.profile_events import ALL_REDUCE_OF_TWO


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


def test_a_list_without_a_stride_is_completed_from_the_head(tmp_path: Path) -> None:
    """A group of unequal distances is named in distributedInfo, which lists it in full."""
    more = {"Process Group Ranks": "[0, 1, ..., 9]", "Process Group Name": "7", "Global rank stride": -1}
    path = save(tmp_path / "trace.json", event("allreduce", 1, 1, **more))
    with pytest.raises(TraceError, match=r"ranks '\[0, 1, ..., 9\]'"):
        read_kineto([path])
    groups = [{"pg_name": "7", "ranks": [0, 1, 4, 9]}, {"pg_name": "8", "ranks": []}, {"ranks": "all"}, 3]
    text = path.read_text().replace('{"rank": 0}', json.dumps({"rank": 0, "pg_config": groups}))
    assert read_kineto([write_text(path, text)]).groups == ((0, 1, 4, 9),)


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


def write_text(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("start", range(CHUNK_BYTES - 5020, CHUNK_BYTES + 20, 630))
def test_an_integer_of_5000_digits_is_refused_before_the_parser_sees_it(start: int, tmp_path: Path) -> None:
    """yajl2_c of ijson 3.6 ends the process with a segmentation fault beyond the 4,300 digits that Python converts."""
    text = " " * start + '{"traceEvents":[{"ts":' + "9" * 5000 + "}]}"
    with pytest.raises(TraceError, match=r"a number of more than 256 digits\n  allowed: 256 digits$"):
        read_kineto([write_text(tmp_path / "digits.json", text)])


@pytest.mark.parametrize("name", ["nest.json", "nest.json.gz"])
@pytest.mark.parametrize("beginning", ['{"a":', '{"traceEvents":[', '{"traceEvents":[{"args":'])
def test_nesting_is_bounded_while_it_is_read(beginning: str, name: str, tmp_path: Path) -> None:
    """300 kB of `{"a":` took 2.7 GiB: a path's text for each level. Fewer than two chunks are read to refuse it."""
    path = write_text(tmp_path / name, beginning + '{"a":' * 300_000)
    tracemalloc.start()
    try:
        with pytest.raises(TraceError, match=r"values nested too deeply\n  allowed: 64 levels$"):
            read_kineto([path])
        assert tracemalloc.get_traced_memory()[1] < 20 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("beginning", ['{"traceEvents":["', '{"traceEvents":[{"args":{"x":"', '{"traceEvents":['])
def test_a_value_is_refused_before_it_fills_the_memory(beginning: str, tmp_path: Path) -> None:
    """2 MB of gzip hold 2 GB of one text, or of the space before a value; 16 MiB of it are read."""
    path = write_text(tmp_path / "string.json.gz", beginning + " " * (40 * 2**20))
    with pytest.raises(TraceError, match=r"one value of more than 16777216 B of text|more than \d+ B of text"):
        read_kineto([path])


def test_a_value_of_too_many_parts_is_refused(tmp_path: Path) -> None:
    """1.8 MB of empty objects in one event are 64 B each in memory, more than 20 times the file."""
    path = write_text(tmp_path / "args.json", '{"traceEvents":[{"args":[' + ",".join(["{}"] * 600_000) + "]}]}")
    with pytest.raises(
        TraceError,
        match=r"one value of more parts than can be used\n  allowed: 500,000 parts\n  next: leave out",
    ):
        read_kineto([path])


def test_a_packed_file_is_refused_when_it_outgrows_200_times_its_size(tmp_path: Path) -> None:
    """Deflate packs 1,032 : 1 at most, profilers' traces 30 : 1; many small events pass every other bound."""
    text = '{"traceEvents":[' + ",".join(["{}"] * 3_000_000) + "]}"
    path = write_text(tmp_path / "many.json.gz", text)
    assert len(text) > 200 * path.stat().st_size
    with pytest.raises(TraceError, match=r"more than \d+ B of text"):
        read_kineto([path])


class Counted(int):
    """A rank that counts how often it is compared."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return int(self) == other

    __hash__ = int.__hash__


def test_the_requests_of_4000_ranks_are_derived_in_linear_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One event of 4,000 ranks took 192 s: each rank searched the group for each rank. Now 20 comparisons a rank."""
    monkeypatch.setattr(torch_groups, "listed", lambda written: tuple(map(Counted, json.loads(written))))
    Counted.comparisons = 0
    ranks = json.dumps(list(range(4000)))
    trace = read_kineto([save(tmp_path / "trace.json", event("allreduce", 1, 1, **{"Process Group Ranks": ranks}))])
    assert trace.rank_N.tolist() == list(range(4000))
    assert Counted.comparisons < 20 * 4000


def test_more_requests_than_can_be_derived_are_refused(tmp_path: Path) -> None:
    """200 B of text name a group of a million ranks: 3 events would be 3 million requests."""
    more = {"Process Group Ranks": "", "Global rank start": 0, "Global rank stride": 1, "Group size": 2**20}
    path = save(tmp_path / "trace.json", *(event("allreduce", start, 1, **more) for start in range(3)))
    with pytest.raises(TraceError, match=r"^traces: 3,145,728 requests of ranks of which most have no trace\n"):
        read_kineto([path])


def test_groups_of_too_many_ranks_are_refused(tmp_path: Path) -> None:
    """Each of five events names another group of a million ranks."""
    more = {"Process Group Ranks": "", "Global rank start": 0, "Group size": 2**20}
    events = (event("allreduce", 1, 1, **more, **{"Global rank stride": stride}) for stride in range(1, 6))
    with pytest.raises(TraceError, match="groups of more than 4,194,304 ranks in all"):
        read_kineto([save(tmp_path / "trace.json", *events)])


@pytest.mark.parametrize("rank", [7, -(10**30)])
def test_a_rank_outside_its_group_is_named(rank: int, tmp_path: Path) -> None:
    """It was a RuntimeError: a generator that raised StopIteration."""
    path = save(tmp_path / "trace.json", event("allreduce", 1, 1), rank=rank)
    found = re.escape(f"a collective of ranks [0, 1] in the trace of rank {rank}")
    with pytest.raises(TraceError, match=rf"trace.json: {found}\n  allowed: groups with the trace's own rank$"):
        read_kineto([path])


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"Process Group Ranks": f"[0, {2**63}]"}, "ranks '[0, 9223372036854775808]'"),
        ({"Process Group Ranks": f"[0, {2**31}]"}, "ranks '[0, 2147483648]'"),
        ({"Process Group Ranks": "[0, " + "9" * 5000 + "]"}, "a number of more than 256 digits"),
        ({"Process Group Ranks": "[0, " + "9" * 200 + "]"}, "ranks '[0, 999"),
        ({"Collective name": "send", "Dst Rank": 2**63}, "Dst Rank 9223372036854775808"),
        ({"Collective name": "recv", "Src Rank": -5}, "Src Rank -5"),
        (
            {"Process Group Ranks": "", "Global rank start": 2**63, "Global rank stride": 1, "Group size": 2},
            "ranks ''",
        ),
        (
            {"Process Group Ranks": "", "Global rank start": 0, "Global rank stride": 2**62, "Group size": 9},
            "ranks ''",
        ),
    ],
)
def test_ranks_beyond_31_bits_are_named(change: dict[str, Any], found: str, tmp_path: Path) -> None:
    """They were an OverflowError, a ValueError at 4,300 digits."""
    with pytest.raises(TraceError) as caught:
        read_kineto([save(tmp_path / "trace.json", event("allreduce", 1, 1, **change))])
    assert found in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("name", ["pid", "tid"])
def test_a_process_that_is_no_number_or_text_is_named(name: str, tmp_path: Path) -> None:
    """It was a TypeError: unhashable type."""
    with pytest.raises(TraceError, match=rf"allreduce at 1 us: {name} {{}}\n  allowed: a number or a text$"):
        read_kineto([save(tmp_path / "trace.json", {**event("allreduce", 1, 1), name: {}})])


@pytest.mark.parametrize(
    ("number", "found"),
    [
        ("1e999999999999999999999", "a number whose exponent is too large"),
        ("-1e-999999999999999999999", "a number whose exponent is too large"),
        ("1e400", "time Decimal('1E+400')"),
        ("1" * 250, "time 111"),
    ],
)
def test_a_time_beyond_all_numbers_is_named(number: str, found: str, tmp_path: Path) -> None:
    """An exponent of 21 digits was a decimal.InvalidOperation."""
    text = json.dumps({"traceEvents": [event("allreduce", 1, 1)]}).replace('"ts": 1', f'"ts": {number}')
    with pytest.raises(TraceError, match=re.escape(found)):
        read_kineto([write_text(tmp_path / "trace.json", text)])


@pytest.mark.parametrize("link_to", ["/dev/zero", None])
def test_a_device_or_a_pipe_is_no_trace(link_to: str | None, tmp_path: Path) -> None:
    """Neither ends."""
    path = tmp_path / "trace.json"
    path.symlink_to(link_to) if link_to else os.mkfifo(path)
    assert not is_kineto(path)
    with pytest.raises(TraceError, match=r"trace.json: not a file$"):
        read_kineto([path])


def test_times_since_1970_count_from_the_first_request(tmp_path: Path) -> None:
    """1.7e15 us are more picoseconds than 64 bits hold; what counts is what lies between."""
    events = [event("allreduce", 0.25, 2, **{"Process Group Ranks": "[0]"}), event("allreduce", 1, 1)]
    text = json.dumps({"traceEvents": events}).replace('"ts": 0.25', '"ts": 1712195495520870.926')
    text = text.replace('"ts": 1,', '"ts": 1712195495520874.001,').replace("[0, 1]", "[0]")
    trace = read_kineto([write_text(tmp_path / "trace.json", text)])
    assert trace.issue_ps_N.tolist() == [0, 3_075_000]
    assert trace.complete_ps_N.tolist() == [2_000_000, 4_075_000]
    assert trace.compute_before_ps_N.tolist() == [0, 1_075_000]


def test_files_of_one_run_have_one_beginning(tmp_path: Path) -> None:
    """Rank 1 is 5 us later; both ranks' times count from the first request of either."""
    paths = []
    for rank, us in ((0, 10**15), (1, 10**15 + 5)):
        paths.append(save(tmp_path / f"{rank}.json", event("allreduce", us, 1), rank=rank))
    assert read_kineto(paths).issue_ps_N.tolist() == [0, 5_000_000]


def test_profiles_of_different_runs_are_not_put_together(tmp_path: Path) -> None:
    """Picoseconds in 64 bits reach over 106 days."""
    paths = [
        save(tmp_path / f"{rank}.json", event("allreduce", 10**15 + rank * 86_400 * 10**6 * 200, 1), rank=rank)
        for rank in (0, 1)
    ]
    with pytest.raises(TraceError, match=r"^traces: requests that are 200 days apart\n  allowed: profiles of one run"):
        read_kineto(paths)


def test_the_uptime_of_a_machine_may_be_200_days(tmp_path: Path) -> None:
    """1.7e13 us are more picoseconds than a column holds, though less than the limit was."""
    path = save(tmp_path / "trace.json", event("allreduce", 200 * 86_400 * 10**6, 1))
    assert read_kineto([path]).issue_ps_N.tolist() == [0, UNKNOWN]
    path = save(tmp_path / "trace.json", event("allreduce", 9_500_000_000_000, 1))
    assert read_kineto([path]).issue_ps_N.tolist() == [0, UNKNOWN], "this was an OverflowError"


def test_kernels_that_do_not_say_what_they_do_are_counted(tmp_path: Path) -> None:
    """Profiles of PyTorch before 2.2 name the kernel alone; the message said that there was no collective."""
    kernel = {"ph": "X", "cat": "kernel", "name": "ncclKernel_AllReduce_RING_LL_Sum_float", "ts": 1, "dur": 1}
    call = {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "ts": 1, "dur": 1, "args": {"External id": 120}}
    other = {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 1, "dur": 1, "args": {}}
    with pytest.raises(TraceError) as caught:
        read_kineto([save(tmp_path / "trace.json", *[kernel] * 8, *[call] * 3, other)])
    assert str(caught.value) == (
        f"{tmp_path / 'trace.json'}: 8 NCCL kernels and 3 calls record_param_comms "
        "without the collective's name, size and ranks\n"
        "  allowed: kernels or calls with the arguments 'Collective name', 'In msg nelems', 'Process Group Ranks'\n"
        "  next: profile with PyTorch 2.2 or newer, which records them"
    )


@pytest.mark.parametrize("part", [0.05, 0.2, 0.99])
def test_a_packed_trace_that_is_cut_off_is_one_that_is_cut_off(part: float, tmp_path: Path) -> None:
    """It was a format that is not known."""
    path = save(tmp_path / "trace.json.gz", *(event("allreduce", start, 1) for start in range(2000)))
    path.write_bytes(path.read_bytes()[: int(part * path.stat().st_size)])
    with pytest.raises(TraceError, match=r"not a trace that can be read to its end[^\n]*\n  next: check that it was"):
        read_trace([path])


def test_ranks_of_overlapping_groups_follow_each(tmp_path: Path) -> None:
    """Rank 0 is in two groups of two and one of four: 1, 2 and 3 make what theirs made, by its time."""
    events = [
        event("allreduce", 1, 1, **{"Process Group Ranks": "[0, 1]"}),
        event("broadcast", 2, 1, **{"Process Group Ranks": "[0, 2]"}),
        event("_allgather_base", 4, 1, **{"Process Group Ranks": "[0, 1, 2, 3]"}),
        event("allreduce", 6, 1, **{"Process Group Ranks": "[0, 1]"}),
    ]
    trace = read_kineto([save(tmp_path / "trace.json", *events)])
    names = {rank: [Operation(one).name for one in trace.operation_N[trace.rank_N == rank]] for rank in (0, 1, 2, 3)}
    assert names == {
        0: ["ALL_REDUCE", "BROADCAST", "ALL_GATHER", "ALL_REDUCE"],
        1: ["ALL_REDUCE", "ALL_GATHER", "ALL_REDUCE"],
        2: ["BROADCAST", "ALL_GATHER"],
        3: ["ALL_GATHER"],
    }
    assert trace.rank_N.tolist() == sorted(trace.rank_N.tolist())
    rows = (trace.rank_N == 1).nonzero()[0].tolist()
    assert [trace.dependencies.of(row).tolist() for row in rows] == [[], [rows[0]], [rows[1]]]
    assert trace.compute_before_ps_N[rows].tolist() == [0, 2_000_000, 1_000_000]


def test_a_group_of_a_million_ranks_is_hashed_once(tmp_path: Path) -> None:
    """Each of its requests hashed its group anew: 2**40 steps for 200 B of text."""
    more = {"Process Group Ranks": "", "Global rank start": 0, "Global rank stride": 1, "Group size": 2**20}
    trace = read_kineto([save(tmp_path / "trace.json", event("allreduce", 1, 1, **more))])
    assert len(trace) == 2**20
    assert np.array_equal(trace.rank_N, np.arange(2**20))


def test_collectives_of_kinds_that_are_not_read_are_counted(tmp_path: Path) -> None:
    """A reduce is as a broadcast; a gather of which a rank has no file is left out, as is what is unknown."""
    names = ("reduce", "allreduce_sparse", "reduce", "_broadcast_oop", "gather")
    events = [event(name, start, 1) for start, name in enumerate(names)]
    on_host = {**event("reduce_sparse", 9, 1), "cat": "cpu_op", "name": "record_param_comms"}  # of which a kernel tells
    path = save(tmp_path / "trace.json", *events, on_host)
    trace = read_kineto([path])
    assert trace.operation_N.tolist() == [Operation.BROADCAST] * 6
    assert trace.peer_N.tolist() == [1, 1, 0] * 2
    assert trace.notes == (
        f"{path}: collectives of kinds that are not read, left out (allreduce_sparse 1): 1",
        "gathers and scatters of groups of which a rank has no file, left out: 1",
        "broadcasts whose root the trace does not name, taken as their group's first rank: 1",
        "reduces whose root the trace does not name, taken as their group's first rank, and as broadcasts, which move "
        "the same: 2",
        "ranks without a profile, taken to ask what the lowest profiled rank of their group does: 1 of 2",
    )


def test_gathers_and_scatters_are_messages_of_the_first_rank(tmp_path: Path) -> None:
    """200 B from each of two ranks to the first at once, and 200 B back after 4 us; the next waits for all of them."""
    paths = []
    for rank in range(3):
        group = {"Process Group Ranks": "[0, 1, 2]"}
        whole = {"In msg nelems": 100, "Out msg nelems": 0 if rank else 300}
        back = {"In msg nelems": 0 if rank else 300, "Out msg nelems": 100}
        events = event("gather", 1, 1, **group, **whole), event("scatter", 6, 1, **group, **back)
        paths.append(save(tmp_path / f"{rank}.json", *events, event("allreduce", 9, 1, **group), rank=rank))
    trace = read_kineto(paths)
    send, receive = Operation.SEND, Operation.RECEIVE
    assert trace.operation_N.tolist() == [receive, receive, send, send, 0, *([send, receive, 0] * 2)]
    assert trace.peer_N.tolist() == [1, 2, 1, 2, UNKNOWN, *([0, 0, UNKNOWN] * 2)]
    assert trace.bytes_N.tolist() == [200] * 11
    assert [trace.dependencies.of(row).tolist() for row in range(5)] == [[], [], [0, 1], [0, 1], [2, 3]]
    assert trace.compute_before_ps_N[:5].tolist() == [0, 0, 4_000_000, 4_000_000, 2_000_000]
    assert len(match_requests(trace)) == 2
    assert trace.notes == (
        "gathers and scatters whose root the trace does not name, taken as their group's first rank: 6",
    )
    alone = read_kineto([save(tmp_path / "alone.json", event("allreduce", 1, 1), event("gather", 2, 1))])
    assert alone.operation_N.tolist() == [Operation.ALL_REDUCE] * 2
    with pytest.raises(TraceError, match="no collective whose ranks all have a file"):
        read_kineto([save(tmp_path / "alone.json", event("gather", 2, 1))])


def test_a_trace_of_other_kinds_alone_says_which(tmp_path: Path) -> None:
    """Not that it holds no collective."""
    with pytest.raises(
        TraceError, match="no collective of a kind that is read: allreduce_sparse\n  allowed: _all_gather_base"
    ):
        read_kineto([save(tmp_path / "trace.json", event("allreduce_sparse", 1, 1))])


def test_profiles_of_all_ranks_have_no_notes(tmp_path: Path) -> None:
    """Nothing was left out or taken for granted."""
    paths = [save(tmp_path / f"{rank}.json", event("allreduce", 1, 1), rank=rank) for rank in (0, 1)]
    assert read_kineto(paths).notes == ()


def test_a_file_without_its_rank_says_which_was_taken(tmp_path: Path) -> None:
    """And kernels that name no collective are counted beside those that do."""
    kernel = {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_Generic", "ts": 3, "dur": 1, "args": {}}
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [event("allreduce", 1, 1), kernel]}))
    assert read_kineto([path]).notes[:2] == (
        f"{path}: no rank in the file, taken as its first group's first: 0",
        f"{path}: NCCL kernels that do not name their collective, left out: 1",
    )


def test_a_packed_profile_has_a_bound_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """50 MB can unpack to ten GB; a plain file of as much text is read."""
    event = {
        "ph": "X",
        "cat": "kernel",
        "name": "ncclDevKernel",
        "pid": 0,
        "tid": 7,
        "ts": 1,
        "args": ALL_REDUCE_OF_TWO,
    }
    text = json.dumps({"traceEvents": [event, *({"ph": "X", "name": f"other {n}"} for n in range(90_000))]}, indent=0)
    monkeypatch.setattr(kineto, "MAX_UNPACKED_BYTES", 2**20)
    packed, plain = tmp_path / "x.json.gz", tmp_path / "x.json"
    packed.write_bytes(gzip.compress(text.encode()))
    plain.write_text(text)
    assert len(read_kineto([plain])) == 2
    with pytest.raises(TraceError, match="more than 1048576 B of text"):
        read_kineto([packed])
