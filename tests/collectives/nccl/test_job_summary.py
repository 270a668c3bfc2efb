"""Summaries of jobs from logs that leave much open."""

from pathlib import Path

from fabrictune.collectives.nccl.job_summary import JobSummary, is_libfabric, summarize_job
from fabrictune.collectives.nccl.log import read_nccl_log
from fabrictune.foundation.flows import UNKNOWN


def summary(tmp_path: Path, *lines: str) -> JobSummary:
    """Return the summary of lines `host message`."""
    path = tmp_path / "nccl.log"
    path.write_text("".join("{}:1:1 [0] NCCL INFO {}\n".format(*line.split(" ", 1)) for line in lines))
    return summarize_job(read_nccl_log([path]))


def test_ranks_without_messages_of_their_own_are_found_by_their_channels(tmp_path: Path) -> None:
    """The sender logs a send, the receiver a receive, and a channel within a host is its source's."""
    job = summary(
        tmp_path,
        "a Channel 00 :    0   1   2   3",
        "a Ring 00 : 0[0] -> 1[1] via P2P/IPC",
        "a Ring 00 : 1 -> 2 [send] via NET/Socket/0",
        "b Ring 00 : 1 -> 2 [receive] via NET/Socket/0",
        "b Ring 00 : 3 -> 0 [send] via NET/Socket/0",
    )
    assert (job.num_ranks, job.num_hosts) == (4, 2)
    assert job.gpus_of_host == {"a": 2, "b": 2}
    assert job.has_all_ranks
    assert [(one.host, one.gpu_index) for one in job.gpu_devices] == [("a", 1), ("b", 0), ("b", 1)]


def test_a_count_of_ranks_that_lacks_some_is_the_least(tmp_path: Path) -> None:
    """One of 24 ranks logged; with NCCL's own word for it, 8 a host on 3 hosts."""
    start = "a ncclCommInitRank comm 0x1 rank 0 nranks 24 cudaDev 0 nvmlDev 0 busId 80 commId 0x1 - Init START"
    job = summary(tmp_path, start)
    assert (job.num_ranks, job.num_hosts, job.gpus_per_host, job.has_all_ranks) == (24, UNKNOWN, 1, False)
    job = summary(tmp_path, start, "a comm 0x1 rank 0 nRanks 24 nNodes 3 localRanks 8 localRank 0 MNNVL 0")
    assert (job.num_hosts, job.gpus_per_host, job.has_all_ranks) == (3, 8, True)


def test_the_largest_communicator_is_the_job(tmp_path: Path) -> None:
    """Two ranks of tensor parallelism beside four of the world."""
    job = summary(
        tmp_path,
        *(
            f"{host} ncclCommInitRank comm 0x{name}{rank} rank {rank} nranks {size} cudaDev {rank % 2} nvmlDev 0 "
            f"busId 80 commId 0x{name} - Init START"
            for name, size in (("1", 4), ("2", 2))
            for rank in range(size)
            for host in ("ab"[rank // 2],)
        ),
    )
    assert (job.num_ranks, job.num_hosts, job.num_communicators) == (4, 2, 2)


def test_libfabric_is_known_by_all_of_its_names() -> None:
    """aws-ofi-nccl has had three."""
    assert all(map(is_libfabric, ("AWS Libfabric", "Libfabric", "OFI")))
    assert not is_libfabric("IB")
