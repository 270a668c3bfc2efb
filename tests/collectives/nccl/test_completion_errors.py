"""Completion errors in every wording that NCCL has had."""

from pathlib import Path

import pytest

from fabrictune.collectives.nccl.completion_errors import CompletionError, completion_errors
from fabrictune.collectives.nccl.log import read_nccl_log
from fabrictune.foundation.flows import UNKNOWN

WORDINGS = {
    "with error 12, opcode 0, len 0, vendor err 129": ("", "", "", ""),
    "from peer 10.2.0.5<33092> with error 12, opcode 0, len 0, vendor err 129 (Recv)": ("10.2.0.5", "Recv", "", ""),
    "from peer 10.2.0.5<44206> with status=12 opcode=129 len=65536 vendor err 129 (Send) localGid ::ffff:10.0.0.1 "
    "remoteGids::ffff:10.0.0.2": ("10.2.0.5", "Send", "::ffff:10.0.0.1", "::ffff:10.0.0.2"),
    "from peer b<54862> with status=12 opcode=0 len=0 vendor err 129 (Recv) localGid fd00::22 remoteGidsfd00::1f": (
        *("b", "Recv", "fd00::22", "fd00::1f"),
    ),
    "from peer 10.2.0.5<1> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_RDMA_WRITE(1) vendor_err=129 localGid "
    "::ffff:10.0.0.1 remoteGids ::ffff:10.0.0.2 hca mlx5_1": ("10.2.0.5", "", "::ffff:10.0.0.1", "::ffff:10.0.0.2"),
    "from peer fe80::1%eth0<9> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_RECV(128) reqSize=8 vendor_err=129 "
    "req_type=Recv hca mlx5_1": ("fe80::1%eth0", "Recv", "", ""),
}
DEVICES = "a:1:2 [4] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:2/RoCE [RO]; OOB eth0:10.2.0.4<0>"
# GIDs as NCCL prints them: ::ffff:10.0.0.1 and ::ffff:10.0.0.2.
NEAR = "a:1:3 [4] NCCL INFO NET/IB: NCCL Dev 1 IbDev 1 Port 2 qpn 100 mtu 5 GID 3 (0/100000AFFFF0000)"
FAR = "b:7:8 [0] NCCL INFO NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 200 mtu 5 GID 3 (0/200000AFFFF0000)"


def errors(tmp_path: Path, *lines: str) -> tuple[CompletionError, ...]:
    """Return the errors in a log of these lines."""
    path = tmp_path / "nccl.log"
    path.write_text("\n".join(lines) + "\n")
    return completion_errors(read_nccl_log([path]))


@pytest.mark.parametrize("place", ["NET/IB :", "NET/IB:", "NET/IBP:", "NET/IB/GIN:"])
@pytest.mark.parametrize("wording", list(WORDINGS))
def test_every_wording_is_read(wording: str, place: str, tmp_path: Path) -> None:
    """As seen in public issues from NCCL 2.4 to 2.30, and of plug-ins that took the words over."""
    line = f"[2026-01-31 10:46:33] a:1:2 [4] transport/net_ib.cc:1296 NCCL WARN {place} Got completion {wording}"
    (error,) = errors(tmp_path, line)
    peer, direction, gid, peer_gid = WORDINGS[wording]
    assert (error.status, error.vendor_error, error.host, error.gpu) == (12, 129, "a", 4)
    assert (error.peer_address, error.direction, error.gid, error.peer_gid) == (peer, direction, gid, peer_gid)
    assert error.where == f"{tmp_path}/nccl.log:1"


def test_what_the_warning_leaves_out_comes_from_the_rest_of_the_log(tmp_path: Path) -> None:
    """The device and its port by the address, and the peer's host by the address that it logged."""
    (wording,) = [text for text in WORDINGS if "opcode=129" in text]
    (error,) = errors(tmp_path, DEVICES, NEAR, FAR, f"a:1:2 [4] NCCL WARN NET/IB : Got completion {wording}")
    assert error.local == "a: mlx5_1 port 2, GID ::ffff:10.0.0.1 (index 3)"
    assert error.peer == "b, GID ::ffff:10.0.0.2"


def test_a_device_that_is_named_needs_no_address(tmp_path: Path) -> None:
    """InfiniBand's GIDs are not logged."""
    (wording,) = [text for text in WORDINGS if "reqSize" in text]
    (error,) = errors(tmp_path, DEVICES, f"a:1:2 [4] NCCL WARN NET/IB: Got completion {wording}")
    assert error.local == "a: mlx5_1 port 2"
    assert error.peer == "the host at fe80::1%eth0"


def test_what_is_not_told_is_said_to_be_unknown(tmp_path: Path) -> None:
    """The oldest wording in a log without anything else: two devices, neither named."""
    (error,) = errors(tmp_path, DEVICES, f"a:1:2 [4] NCCL WARN NET/IB : Got completion {next(iter(WORDINGS))}")
    assert (error.local, error.peer) == ("a: device not named", "a peer not named")
    assert (error.device_port, error.gid_index) == (UNKNOWN, UNKNOWN)


def test_other_warnings_are_no_completion_errors(tmp_path: Path) -> None:
    """A warning about anything else, and the same words without a prefix."""
    assert not errors(tmp_path, "a:1:2 [4] NCCL WARN Call to connect failed", "Got completion with error 12")
