"""Counters of all nodes: what rose, on which rail and link, per GB; around a command too."""

import json
import re
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.fleet.collect.collection import Collection, NodeState, write_collection
from fabrictune.fleet.collect.node_reading import NodeReading
from fabrictune.fleet.counters.open_metrics import open_metrics
from fabrictune.fleet.counters.snapshots import fleet_snapshot, places_of
from fabrictune.fleet.transport.answer import State
from tests.fleet.site import lldp, reading, switch_config

PFC = """\
  Port Rx    PFC0    PFC1    PFC2    PFC3    PFC4    PFC5    PFC6    PFC7
-----------  ------  ------  ------  ------  ------  ------  ------  ------
  Ethernet0       0       0       0   {rx}       0       0       0       0

  Port Tx    PFC0    PFC1    PFC2    PFC3    PFC4    PFC5    PFC6    PFC7
-----------  ------  ------  ------  ------  ------  ------  ------  ------
  Ethernet0       0       0       0       0       0       0       0       0
"""


def nodes(*, timeouts: int, sent: int, pauses: str):
    """Return a host and its leaf."""
    port = "/sys/class/infiniband/mlx5_0/ports/1"
    host = reading(
        "gpu1",
        {
            f"{port}/hw_counters/local_ack_timeout_err": f"{timeouts}\n",
            f"{port}/gid_attrs/ndevs/0": "eth0\n",
            "ethtool -S eth0": f"NIC statistics:\n     tx_bytes_phy: {sent}\n     rx_prio3_pause: 7\n",
            "lldpctl -f json0": lldp({"eth0": ("leaf1", "Ethernet0")}),
        },
    )
    config = json.dumps(switch_config("leaf1", "ToRRouter", {}))
    return host, reading("leaf1", {"/etc/sonic/config_db.json": config, "show pfc counters": PFC.format(rx=pauses)})


def write(folder: Path, readings: tuple[NodeReading, ...]) -> None:
    states = [NodeState(name=one.name, state=State.COLLECTED) for one in readings]
    write_collection(Collection(readings=readings, states=states), folder)


def test_a_difference_has_its_link_and_its_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A 32-bit counter that wrapped by 20 over 4 GB: 5 a GB, on rail 0, towards leaf1; the leaf's pauses beside."""
    monkeypatch.chdir(tmp_path)
    write(Path("before"), nodes(timeouts=2**32 - 10, sent=10**9, pauses="1,000"))
    write(Path("after"), nodes(timeouts=10, sent=5 * 10**9, pauses="1,500"))
    assert run(["fleet", "counters", "diff", "before", "after", "--fail-on", "never"]) == 0
    out = re.sub(" +", " ", capsys.readouterr().out)
    assert (
        "gpu1/mlx5_0/1 0 leaf1 Ethernet0 local_ack_timeout_err retransmissions after a timeout 20 (wrapped) 5\n" in out
    )
    assert "leaf1/Ethernet0 0 gpu1 eth0 rx_prio3_pause pauses received 500" in out
    assert "warning: gpu1/mlx5_0/1: retransmissions after a timeout: 20" in out


def test_open_metrics_has_a_family_a_class() -> None:
    """Labels for node, device, counter, other end and rail; the text ends in EOF."""
    readings = nodes(timeouts=3, sent=10, pauses="2")
    lines = list(open_metrics(fleet_snapshot(readings).counters.values(), places_of(readings)))
    assert lines[:3] == [
        "# TYPE fabrictune_nic_retransmissions_after_a_timeout counter",
        "# HELP fabrictune_nic_retransmissions_after_a_timeout retransmissions after a timeout",
        'fabrictune_nic_retransmissions_after_a_timeout_total{node="gpu1",device="mlx5_0/1",'
        'counter="local_ack_timeout_err",other_end="leaf1 Ethernet0",rail="0"} 3',
    ]
    assert lines[-1] == "# EOF"


@pytest.mark.real
def test_a_command_is_watched_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Snapshots before and after a command that runs between them; the loopback's counters are there."""
    monkeypatch.chdir(tmp_path)
    command = ["fleet", "counters", "watch", "--via", "local", "--fail-on", "never", "--", "echo", "it ran"]
    assert run(command) == 0
    out = capfd.readouterr().out
    assert "it ran\n" in out
    assert "1 of 1 nodes read" in out
    assert run(["fleet", "counters", "watch", "--via", "local"]) == 2
