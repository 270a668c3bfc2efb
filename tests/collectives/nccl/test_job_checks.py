"""What looks wrong in a log of NCCL, each with a log that has it and one that has not."""

from pathlib import Path

import pytest

from fabrictune.collectives.nccl.job_checks import check_job
from fabrictune.collectives.nccl.job_summary import JobSummary, summarize_job
from fabrictune.collectives.nccl.log import read_nccl_log
from fabrictune.foundation.checks import CheckReport, Result

GOLDEN = Path(__file__).parents[2] / "golden" / "nccl"
SIZE = "comm 0x61 rank 0 nRanks 4 nNodes 2 localRanks 2 localRank 0 MNNVL 0"


def report(tmp_path: Path, *messages: str) -> tuple[JobSummary, CheckReport]:
    """Return what is made of messages `host: text`, after those that four ranks on hosts a and b begin with."""
    starts = [
        f"{'ab'[rank // 2]}: ncclCommInitRank comm 0x6{rank} rank {rank} nranks 4 cudaDev {rank % 2} nvmlDev 0 "
        "busId 80 commId 0x1f - Init START"
        for rank in range(4)
    ]
    lines = [line.partition(": ") for line in (*starts, f"a: {SIZE}", *messages)]
    path = tmp_path / "nccl.log"
    path.write_text("".join(f"{host}:1:1 [0] NCCL {text}\n" for host, _, text in with_levels(lines)))
    log = read_nccl_log([path])
    summary = summarize_job(log)
    return summary, check_job(log, summary)


def with_levels(lines: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Return the lines with INFO before what names no level."""
    return [(host, colon, text if text.startswith("WARN ") else f"INFO {text}") for host, colon, text in lines]


def texts(judged: CheckReport, rule: str) -> list[str]:
    """Return `entity: actual` of a rule's findings."""
    return [f"{finding.entity}: {finding.actual}" for finding in judged.findings if finding.id == f"nccl.{rule}"]


def test_gpus_that_share_a_nic_are_found_by_the_devices(tmp_path: Path) -> None:
    """Two GPUs a host: one device on a, two on b. Connections are opened late, so that devices decide."""
    _, judged = report(
        tmp_path,
        "a: NET/IB : Using [0]mlx5_5:1/RoCE [RO]; OOB eth0:10.0.0.1<0>",
        "b: NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.2<0>",
        "a: NCCL_IB_HCA set to mlx5_5",
    )
    assert texts(judged, "shared-nic") == ["a: 2 GPUs on 1 NIC: mlx5_5 (NCCL_IB_HCA=mlx5_5)"]


def test_devices_that_were_merged_count_as_two(tmp_path: Path) -> None:
    """`mlx5_0+mlx5_1` is one device to NCCL and two NICs to its GPUs."""
    summary, judged = report(
        tmp_path,
        "a: NET/IB : Made virtual device [0] name=mlx5_0+mlx5_1 speed=800000 ndevs=2",
        "b: NET/IB : Made virtual device [0] name=mlx5_0+mlx5_1 speed=800000 ndevs=2",
    )
    assert summary.devices == {"a": ("mlx5_0", "mlx5_1"), "b": ("mlx5_0", "mlx5_1")}
    assert texts(judged, "shared-nic") == []


def test_a_list_of_adapters_is_compared_with_those_found(tmp_path: Path) -> None:
    """mlx5_9 is missing; mlx5_1 is a prefix of mlx5_10, and of nothing else behind `=`; an exclusion lists none."""
    _, judged = report(
        tmp_path,
        "a: NET/IB : Using [0]mlx5_1:1/IB [1]mlx5_10:1/IB ; OOB eth0:10.0.0.1<0>",
        "b: NET/IB : Using [0]mlx5_1:1/IB [1]mlx5_10:1/IB ; OOB eth0:10.0.0.1<0>",
        "a: NCCL_IB_HCA set to mlx5_1:1,mlx5_9",
        "b: NCCL_IB_HCA set to =mlx5_1,mlx5_10",
        "b: NCCL_IB_HCA set to ^mlx5_7",
    )
    assert texts(judged, "hca-list") == [
        "a: mlx5_1: a prefix that matches mlx5_1, mlx5_10",
        "a: mlx5_9: found mlx5_1, mlx5_10",
    ]


def test_connections_without_gpu_direct_come_with_their_reason(tmp_path: Path) -> None:
    """One of two, the sending one."""
    _, judged = report(
        tmp_path,
        "a: NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0' (no module)",
        "a: Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/0",
        "a: Channel 00/0 : 3[1] -> 0[0] [receive] via NET/IB/0/GDRDMA",
    )
    assert texts(judged, "no-gpu-direct") == [
        "GPUDirect RDMA: 1 of 2 connections without, all of them send; mlx5_0: no module"
    ]


def test_settings_that_differ_or_limit_are_found(tmp_path: Path) -> None:
    """A socket's interface may differ from host to host; an algorithm may not."""
    _, judged = report(
        tmp_path,
        "a: NCCL_ALGO set by environment to RING",
        "b: NCCL_ALGO set by environment to TREE",
        "a: NCCL_SOCKET_IFNAME set by environment to eth0",
        "b: NCCL_SOCKET_IFNAME set by environment to eth1",
        "a: NCCL_P2P_DISABLE set by environment to 0.",
        "b: NCCL_SHM_DISABLE set by environment to 1.",
        "a: NCCL version 2.20.5+cuda12",
        "b: NCCL version 2.21.5+cuda12",
    )
    assert texts(judged, "unequal-setting") == [
        "NCCL_ALGO: RING on a, TREE on b",
        "version: 2.20.5+cuda12, 2.21.5+cuda12",
    ]
    assert texts(judged, "limiting-setting") == [
        "NCCL_SHM_DISABLE=1: GPUs without peer access use the network within a host",
        "NCCL_ALGO=RING: NCCL does not choose the algorithm by size",
        "NCCL_ALGO=TREE: NCCL does not choose the algorithm by size",
    ]


def test_warnings_of_one_wording_are_one_finding(tmp_path: Path) -> None:
    """Whatever the numbers; completions with an error have a report of their own."""
    _, judged = report(
        tmp_path,
        "a: WARN Cuda failure 2 'out of memory'",
        "b: WARN Cuda failure 3 'out of memory'",
        "b: WARN NET/IB: Got completion from peer 10.0.0.2<40123> with status=12 opcode=0 len=0 vendor err 129 (Recv)",
    )
    assert texts(judged, "warning") == ["2 warnings: Cuda failure 2 'out of memory'"]


def test_a_silent_host_is_named(tmp_path: Path) -> None:
    """The list of nccl-tests has it, or NCCL's own count."""
    path = tmp_path / "nccl.log"
    path.write_text(f"a:1:1 [0] NCCL INFO {SIZE}\na:1:1 [0] NCCL INFO ncclCommInitRank comm 0x60 rank 0 nranks 4 "
                    "cudaDev 0 nvmlDev 0 busId 80 commId 0x1f - Init START\n")  # fmt: skip
    log = read_nccl_log([path])
    assert texts(check_job(log, summarize_job(log)), "partial-log") == ["1 more: messages of a alone"]


@pytest.mark.parametrize("name", ["roce-2.30", "efa-2.26", "slingshot-2.21"])
def test_a_sound_log_has_no_finding(name: str) -> None:
    """And what could not be looked at says why."""
    log = read_nccl_log([GOLDEN / f"{name}.log"])
    judged = check_job(log, summarize_job(log))
    assert judged.findings == ()
    assert all(check.reason for check in judged.checks if check.result == Result.NOT_RUN)
    assert any(check.result == Result.PASSED for check in judged.checks)
