"""Diagnoses of small jobs by hand, in the wordings that tools write."""

import json
from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.observability.hangs.analysis import diagnose
from fabrictune.observability.hangs.diagnosis import Cause, Certainty, Diagnosis
from fabrictune.observability.hangs.job import Job, join_evidence
from fabrictune.observability.hangs.reading import read_evidence
from fabrictune.observability.hangs.stacks import Place, place_of

TIMED_OUT = (
    "[rank{0}]:[E810 03:04:11.06 ProcessGroupNCCL.cpp:683] [Rank {0}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=78, OpType=BROADCAST, NumelIn=80, NumelOut=80, Timeout(ms)=600000) ran for 600096 milliseconds "
    "before timing out.\n"
    "[rank{0}]:[E810 03:04:11.07 ProcessGroupNCCL.cpp:2241] [PG ID 0 PG GUID 0(default_pg) Rank {0}]  failure detected "
    "by watchdog at work sequence id: 78 PG status: last enqueued work: 79, last completed work: 77\n"
)
OBSERVED = (
    "[rank{0}]:[E810 03:04:11.56 ProcessGroupNCCL.cpp:1858] [PG ID 0 PG GUID 0(default_pg) Rank {0}] Received a dump "
    "signal due to a collective timeout from  rank 1 and we will try our best to dump the debug info. Last enqueued "
    "NCCL work: 77, last completed NCCL work: 77.This is most likely caused by incorrect usages of collectives\n"
)
OLDER = (
    "[rank{0}]:[E321 02:07:08.40 ProcessGroupNCCL.cpp:607] [Rank {0}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, NumelIn=466119168, NumelOut=466119168, Timeout(ms)=600000) ran for 600060 "
    "milliseconds before timing out.\n"
    "[rank{0}]:[E321 02:07:08.46 ProcessGroupNCCL.cpp:1664] [PG 0 Rank {0}] Exception (either an error or timeout) "
    "detected by watchdog at work: 1580, last enqueued NCCL work: 1582, last completed NCCL work: 1579.\n"
)
ENDED = "  rank      : 2 (local_rank: 2)\n  exitcode  : -9 (pid: 4711)\n"


def diagnosed(folder: Path) -> tuple[Diagnosis, Job]:
    """Return the diagnosis of a folder's evidence, which has one."""
    job = join_evidence(read_evidence([folder]).evidence)
    found = diagnose(job)
    assert found is not None
    return found, job


def ranks(diagnosis: Diagnosis, job: Job) -> list[int]:
    """Return the ranks that are named."""
    return [job.processes[process].rank for process in diagnosis.processes]


def test_ranks_without_an_open_request_keep_those_that_timed_out_waiting(tmp_path: Path) -> None:
    """Six of eight ranks issued 78 and 79, two stand at 77 and say so: the two, as in a public report of such a job."""
    for rank in range(8):
        (tmp_path / f"{rank}.err").write_text((OBSERVED if rank in (0, 4) else TIMED_OUT).format(rank))
    found, job = diagnosed(tmp_path)
    assert (found.cause, sorted(ranks(found, job)), found.number) == (Cause.MISSING, [0, 4], 78)
    assert (found.certainty, found.num_waiting, found.request) == (Certainty.LIKELY, 6, "broadcast of 80")


PAIRS = {"1": [0, 1], "2": [2, 3]}  # process groups of four ranks
OPEN = (  # rank, group, place, last issued, last complete
    "[rank{0}]:[E810 03:04:11.07 ProcessGroupNCCL.cpp:2241] [PG ID {1} PG GUID {1}(mesh) Rank {2}]  failure detected "
    "by watchdog at work sequence id: {3} PG status: last enqueued work: {3}, last completed work: {4}\n"
)
NOTHING_OPEN = (
    "[rank{0}]:[E810 03:04:11.56 ProcessGroupNCCL.cpp:1858] [PG ID {1} PG GUID {1}(mesh) Rank {2}] Received a dump "
    "signal due to a collective timeout from  rank 1. Last enqueued NCCL work: {3}, last completed NCCL work: {3}.\n"
)


def dump_of(groups: dict[str, list[int]], *requests: tuple[str, int, str]) -> str:
    """Return a dump as JSON: group, number and state of each request."""
    listed = {name: {"name": name, "desc": "mesh", "ranks": str(ranks)} for name, ranks in groups.items()}
    entries = [
        {"process_group": [name, "mesh"], "collective_seq_id": number, "profiling_name": "nccl:all_reduce",
         "state": state}
        for name, number, state in requests
    ]  # fmt: skip
    return json.dumps({"version": "2.10", "pg_config": listed, "entries": entries})


def test_a_request_that_some_completed_outweighs_a_rank_whose_dump_is_missing(tmp_path: Path) -> None:
    """Rank 1 does not complete number 5, which it issued. Rank 3 has nothing open by the watchdog, which numbers no
    messages, and its dump was not collected: it is not taken for one that has not issued number 9."""
    for rank, line in enumerate((OPEN.format(0, 1, 0, 6, 5), OPEN.format(1, 1, 1, 5, 4), OPEN.format(2, 2, 0, 9, 8))):
        (tmp_path / f"{rank}.err").write_text(line)
    (tmp_path / "3.err").write_text(NOTHING_OPEN.format(3, 2, 1, 8))
    (tmp_path / "trace_rank_0").write_text(dump_of(PAIRS, ("1", 5, "completed"), ("1", 6, "scheduled")))
    (tmp_path / "trace_rank_1").write_text(dump_of(PAIRS, ("1", 4, "completed"), ("1", 5, "scheduled")))
    (tmp_path / "trace_rank_2").write_text(dump_of(PAIRS, ("2", 9, "scheduled")))
    found, job = diagnosed(tmp_path)
    assert (found.cause, ranks(found, job), found.number) == (Cause.TRANSPORT, [1], 5)
    assert found.certainty is Certainty.LIKELY
    assert "flight recorder has nothing of 1 of 4 processes, not collected: rank 3" in job.notes
    (tmp_path / "trace_rank_1").unlink()
    found, job = diagnosed(tmp_path)
    assert (found.cause, ranks(found, job), found.source) == (Cause.TRANSPORT, [1], "watchdog")
    assert "flight recorder has nothing of 2 of 4 processes, not collected: rank 1, rank 3" in job.notes


def test_what_others_wait_for_may_not_have_been_collected(tmp_path: Path) -> None:
    """Nobody waits but rank 2, for rank 3, of which there is a line and no dump."""
    (tmp_path / "2.err").write_text(OPEN.format(2, 2, 0, 9, 8))
    (tmp_path / "3.err").write_text(NOTHING_OPEN.format(3, 2, 1, 8))
    (tmp_path / "trace_rank_2").write_text(dump_of(PAIRS, ("2", 9, "scheduled")))
    found, job = diagnosed(tmp_path)
    assert (found.cause, ranks(found, job)) == (Cause.MISSING, [3])
    text = "flight recorder has nothing of rank 3: a request that it waits for may not have been collected"
    assert text in found.alternatives


def test_a_dump_that_begins_with_thousands_of_ranks_is_read(tmp_path: Path) -> None:
    """The list of 8,192 ranks is longer than what is read to recognise a file."""
    groups = {"0": list(range(8192)), **PAIRS}
    (tmp_path / "trace_rank_0").write_text(dump_of(groups, ("1", 5, "completed"), ("1", 6, "scheduled")))
    (tmp_path / "trace_rank_1").write_text(dump_of(groups, ("1", 5, "scheduled")))
    assert dict(diagnosed(tmp_path)[1].sources) == {"flight recorder": 2}


def test_a_rank_that_wrote_nothing_is_named_with_doubt(tmp_path: Path) -> None:
    """Ranks 0, 1 and 3 time out; of rank 2 there is no line, which may also be a log that was not given."""
    (tmp_path / "job.log").write_text("".join(OLDER.format(rank) for rank in (0, 1, 3)))
    found, job = diagnosed(tmp_path)
    assert (found.cause, ranks(found, job), found.certainty) == (Cause.MISSING, [2], Certainty.POSSIBLE)


def test_a_rank_that_its_launcher_saw_end_is_named_for_certain(tmp_path: Path) -> None:
    """The same log, and what torchrun says of rank 2 at the end."""
    (tmp_path / "job.log").write_text("".join(OLDER.format(rank) for rank in (0, 1, 3)) + ENDED)
    found, job = diagnosed(tmp_path)
    assert (found.cause, ranks(found, job), found.certainty) == (Cause.GONE, [2], Certainty.CERTAIN)
    assert str(job.processes[found.processes[0]]) == "rank 2 (process 4711)"


def test_all_ranks_in_one_request_leave_the_network_or_a_gpu(tmp_path: Path) -> None:
    """All four issued 1580 and none completed it: no rank can be told from the others, and the answer says so."""
    (tmp_path / "job.log").write_text("".join(OLDER.format(rank) for rank in range(4)))
    found, _ = diagnosed(tmp_path)
    assert (found.cause, len(found.processes), found.certainty) == (Cause.TRANSPORT, 4, Certainty.POSSIBLE)


def test_a_member_that_ended_in_the_request_of_all_is_named(tmp_path: Path) -> None:
    """The same, and rank 2 has ended: it keeps the request open, although it has issued it as the others have."""
    (tmp_path / "job.log").write_text("".join(OLDER.format(rank) for rank in range(4)) + ENDED)
    found, job = diagnosed(tmp_path)
    assert (found.cause, ranks(found, job), found.certainty) == (Cause.GONE, [2], Certainty.CERTAIN)
    assert any(line.startswith("rank 2") for line in found.evidence)


def communicator(counts: list[tuple[int, int]], missing: tuple[int, ...] = ()) -> dict[str, object]:
    """Return a communicator with counts of all-gathers and all-reduces by rank, as RAS writes it."""
    status = {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False, "abort_flag": False}
    rows = [
        {"rank": rank, "host": "10.0.0.1", "pid": 100 + rank, "nvml_dev": rank, "status": status,
         "collective_counts": {"AllGather": gathers, "AllReduce": sums}}
        for rank, (gathers, sums) in enumerate(counts) if rank not in missing
    ]  # fmt: skip
    gone = [
        {"rank": rank, "host": "10.0.0.1", "pid": 100 + rank, "nvml_dev": rank,
         "status": {"unresponsive": False, "considered_dead": True}} for rank in missing
    ]  # fmt: skip
    return {"hash": "0xae94", "size": len(counts), "ranks": rows, "missing_ranks": gone}


def write_ras(folder: Path, *communicators: dict[str, object]) -> None:
    (folder / "ras.json").write_text(json.dumps({"nccl_version": "2.29.7", "communicators": communicators}))


def test_counts_of_kinds_show_another_request(tmp_path: Path) -> None:
    """Ranks launched 8 requests each; rank 2 has an all-gather more and an all-reduce less."""
    write_ras(tmp_path, communicator([(4, 4), (4, 4), (5, 3), (4, 4)]))
    found, job = diagnosed(tmp_path)
    assert (found.cause, ranks(found, job)) == (Cause.MISMATCH, [2])
    assert found.evidence[0] == ("rank 2 (GPU 2 of host 10.0.0.1, process 102) asks for AllGather 5, AllReduce 3")


def test_a_dead_rank_is_named_before_those_behind(tmp_path: Path) -> None:
    """RAS considers rank 1 dead; rank 3 is one all-reduce behind the others."""
    write_ras(tmp_path, communicator([(4, 4), (4, 4), (4, 4), (4, 3)], missing=(1,)))
    found, job = diagnosed(tmp_path)
    assert (found.cause, ranks(found, job)) == (Cause.GONE, [1])


def test_equal_counts_are_no_hang(tmp_path: Path) -> None:
    """RAS does not say what is complete: a job whose ranks have launched as many requests may well run."""
    write_ras(tmp_path, communicator([(4, 4)] * 4))
    assert diagnose(join_evidence(read_evidence([tmp_path]).evidence)) is None


def test_sources_that_disagree_are_said(tmp_path: Path) -> None:
    """A stack of rank 1 in process 999, where RAS has rank 1 in process 101."""
    write_ras(tmp_path, communicator([(4, 4), (4, 3)]))
    (tmp_path / "rank_1.txt").write_text('Process 999: python\n\nThread 999 (idle): "MainThread"\n    f (a.py:1)\n')
    job = join_evidence(read_evidence([tmp_path]).evidence)
    assert job.disagreements == (
        "rank 1 (GPU 1 of host 10.0.0.1, process 101) is also said to be process 999 of host not named",
    )


@pytest.mark.parametrize(
    ("frames", "place"),
    [
        (("wait (threading.py:320)", "get (queue.py:171)", "_try_get_data (dataloader.py:1131)"), Place.LOADER),
        (("write (io.py:9)", "save (torch/serialization.py:850)", "train (train.py:2)"), Place.CHECKPOINT),
        (("collect (gc:1)", "step (train.py:2)"), Place.COLLECTION),
        (("all_reduce (torch/distributed/distributed_c10d.py:2)", "save_checkpoint (checkpoint.py:3)"), Place.WAITS),
        (("compile (torch/_inductor/compile_fx.py:2)",), Place.COMPILATION),
        (("forward (model.py:12)",), None),
    ],
)
def test_the_innermost_known_call_says_what_a_process_does(frames: tuple[str, ...], place: Place | None) -> None:
    assert place_of(frames) is place


def test_what_is_no_evidence_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing\n")
    with pytest.raises(InputError, match=r"no evidence of a job; files of no format that is known here: 1 \(.*notes"):
        read_evidence([tmp_path])
    with pytest.raises(InputError, match="no such file or folder"):
        read_evidence([tmp_path / "missing"])


def test_a_damaged_file_is_named_and_the_others_count(tmp_path: Path) -> None:
    write_ras(tmp_path, communicator([(4, 4), (4, 3)]))
    (tmp_path / "nccl_trace_rank_1").write_text('{"entries": [{"collective_seq_id": 1')
    found = read_evidence([tmp_path])
    assert len(found.evidence) == 1
    assert found.notes[0].startswith("files that cannot be read: 1 (")
