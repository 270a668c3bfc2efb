"""A real collective job between two network namespaces whose link goes down and comes back."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.errors import UnavailableError
from fabrictune.rdma_bench.flaps.network import FlappingNetwork, flapping_network
from fabrictune.rdma_bench.flaps.tcp import tcp_retransmissions_ns
from fabrictune.validate.flap_ranks import lasting_job
from tests.real.namespaces import require_namespaces

pytestmark = pytest.mark.real
pytest.importorskip("torch")

Capture = pytest.CaptureFixture[str]


def namespaces() -> str:
    """Return the namespaces there are of this process's networks."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return "".join(line for line in listed.splitlines() if line.startswith(f"flap{os.getpid()}-"))


def test_a_job_goes_on_with_tcps_next_retransmission(tmp_path: Path, capsys: Capture) -> None:
    """Down for 0.3 and 0.9 s: up again at 0.6 and 1.4 s and not before, nor as late as the retransmission after that.

    Every element of every all-reduce is right, and nothing is left behind.
    """
    require_namespaces()
    arguments = ["rdma", "flap-job", "--flap", "300 ms", "--flap", "900 ms", "--out", str(tmp_path / "record")]
    assert run([*arguments, "--json", "--fail-on", "error"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [flap["flap_ns"] for flap in told["flaps"]] == [300_000_000, 900_000_000]
    for flap in told["flaps"]:
        times_ns = list(tcp_retransmissions_ns(flap["tcp_timeout_ns"]))
        after_that_ns = times_ns[times_ns.index(flap["tcp_resumes_ns"]) + 1]
        assert flap["down_ns"] <= flap["stall_ns"] < after_that_ns
    assert {row["profile"] for row in told["rdma"]} == {"ibta", "connectx-6"}
    assert not namespaces()


def test_a_network_of_a_killed_process_is_removed() -> None:
    """No process has number 4,194,305, one more than Linux gives; one that lives keeps its network."""
    require_namespaces()
    killed, living = "flap4194305-host0", f"flap{os.getppid()}-host0"
    for name in (killed, living):
        subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        with flapping_network():
            listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
        assert killed not in listed
        assert living in listed
    finally:
        subprocess.run(["ip", "netns", "del", living], check=True)


def test_a_signal_while_a_network_is_removed_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes effect when all is gone."""
    require_namespaces()
    remove = FlappingNetwork.remove

    def remove_at_ctrl_c(self: FlappingNetwork) -> None:
        signal.raise_signal(signal.SIGINT)
        remove(self)

    monkeypatch.setattr(FlappingNetwork, "remove", remove_at_ctrl_c)
    with pytest.raises(KeyboardInterrupt), flapping_network():
        pass
    assert not namespaces()


def test_a_rank_that_fails_is_told_with_its_last_words() -> None:
    """A port beyond 65,535, which torch refuses."""
    require_namespaces()
    with (
        pytest.raises(UnavailableError, match=r"flap job: rank 0 has ended\n(.*\n)*.*[Pp]ort"),
        flapping_network() as network,
        lasting_job(network, 1024, port=70_000) as job,
    ):
        job.await_event("ready", 60.0)
    assert not namespaces()


def test_without_root_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    """Exit code 3: it could not be collected here."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert run(["rdma", "flap-job"]) == 3
    assert capsys.readouterr().err.startswith(
        ("network namespaces: network namespaces need root\n", "network namespaces: iproute2 is not installed\n")
    )


def test_a_flap_too_short_or_too_long_is_refused(capsys: Capture) -> None:
    """Below TCP's shortest timeout nothing could be told apart."""
    assert run(["rdma", "flap-job", "--flap", "50 ms", "--flap", "2 min"]) == 2
    assert capsys.readouterr().err == "flap: 50 ms, 120 s\n  allowed: 100 ms to 60 s\n"
