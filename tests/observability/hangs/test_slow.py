"""Jobs that go on, slower: groups of two processes whose all-reduces NCCL Inspector has timed."""

import json
from collections.abc import Callable
from pathlib import Path

from fabrictune.foundation.traces import Operation
from fabrictune.observability.hangs.alike import usual_time
from fabrictune.observability.hangs.analysis import diagnose
from fabrictune.observability.hangs.diagnosis import Cause
from fabrictune.observability.hangs.evidence import Request
from fabrictune.observability.hangs.job import Job, join_evidence
from fabrictune.observability.hangs.operations import operation_of
from fabrictune.observability.hangs.reading import read_evidence

NUM_GROUPS, NUM_REQUESTS = 5, 6


def write_inspector(folder: Path, time_us: Callable[[int, int, int], int]) -> None:
    """Write what each process measured: the time of a group's place and number."""
    for group in range(NUM_GROUPS):
        for place in range(2):
            pid = 100 + 2 * group + place
            lines = [
                {
                    "header": {"id": f"0x{group:x}", "rank": place, "n_ranks": 2, "nnodes": 2},
                    "metadata": {"hostname": f"host{place}", "pid": pid, "dump_timestamp_us": number},
                    "coll_perf": {
                        "coll": "AllReduce",
                        "coll_sn": number,
                        "coll_exec_time_us": time_us(group, place, number),
                        "coll_msg_size_bytes": 2**20,
                    },
                }
                for number in range(NUM_REQUESTS)
            ]
            (folder / f"host{place}-{pid}.log").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def read(folder: Path) -> Job:
    return join_evidence(read_evidence([folder]).evidence)


def test_a_group_that_takes_longer_than_others_is_slow(tmp_path: Path) -> None:
    """All-reduces of group 4 take 300 us on both members, those of four other groups 100 to 108 us."""
    write_inspector(tmp_path, lambda group, place, number: 300 if group == 4 else 100 + group + number)
    job = read(tmp_path)
    found = diagnose(job)
    assert found is not None
    assert found.cause is Cause.SLOW
    assert not found.cause.stands_still
    assert sorted(job.processes[process].pid for process in found.processes) == [108, 109]


def test_the_member_that_waits_for_none_comes_last(tmp_path: Path) -> None:
    """In group 2 place 1 measures 100 us as elsewhere, and place 0 waits for it: 250 us."""
    write_inspector(tmp_path, lambda group, place, number: 250 if (group, place) == (2, 0) else 100 + number)
    job = read(tmp_path)
    found = diagnose(job)
    assert found is not None
    assert found.cause is Cause.LATE
    assert [job.processes[process].pid for process in found.processes] == [105]


def test_groups_that_differ_a_little_are_not_slow(tmp_path: Path) -> None:
    """Group 4 takes 1.4 times what others take, less than what counts; only that one process wrote last is said."""
    write_inspector(tmp_path, lambda group, place, number: 140 if group == 4 else 100 + group)
    found = diagnose(read(tmp_path))
    assert found is None or found.cause is Cause.EARLIEST


def test_the_usual_time_is_of_the_same_group_where_it_has_three_requests(tmp_path: Path) -> None:
    """Of each request the shorter of both members' times counts: 100 to 105 us of group 0."""
    write_inspector(tmp_path, lambda group, place, number: 100 + number + 50 * place + 1000 * group)
    job = read(tmp_path)
    usual = usual_time(Request(kind="AllReduce", num_bytes=2**20), job.tables[0].group, job)
    assert usual is not None
    assert (usual.low_us, usual.median_us, usual.high_us) == (100, 102.5, 105)
    assert usual.basis == "6 requests like it of its group (NCCL Inspector)"
    assert usual_time(Request(kind="AllReduce", num_bytes=2**10), 0, job) is None


def test_operations_by_the_names_that_sources_give_them() -> None:
    names = ("AllReduce", "all_reduce", "_reduce_scatter_base", "_all_gather_base", "BROADCAST", "recv", "barrier")
    found = [operation_of(name) for name in names]
    assert found[:3] == [Operation.ALL_REDUCE, Operation.ALL_REDUCE, Operation.REDUCE_SCATTER]
    assert found[3:] == [Operation.ALL_GATHER, Operation.BROADCAST, Operation.RECEIVE, None]
