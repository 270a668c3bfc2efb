"""A scenario's flap under other timers: model, simulation and measurement in one table."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.errors import InputError
from fabrictune.foundation.records import RunRecord
from fabrictune.rdma_bench.timers.prediction import RetransmissionSpec
from fabrictune.rdma_bench.timers.profile_files import write_profile
from fabrictune.rdma_bench.timers.profiles import KNOWN_PROFILES
from fabrictune.rdma_bench.timers.trials import TimerTrial
from fabrictune.scenario.files import load_scenario
from fabrictune.scenario.schema import Scenario
from fabrictune.validate.timers import simulate_timers, timer_record

FLAP = """
name: flap
fabric: {builder: clos, num_hosts: 2, hosts_per_tor_set: 2, nics_per_host: 1, tiers: 2, uplinks_per_tor: 1}
traffic: {workload: incast, senders: 1, message: 1 MB}
law: none
faults: [{fault: flap, link: "host0:nic0", at: 2 us, down: 100 ms}]
"""
MS = 10**6
WAIT_14_NS = 67_108_864


@pytest.fixture
def flap(tmp_path: Path) -> Path:
    """One message of 1 MB, 20 us long, whose receiver's link is down for 100 ms."""
    path = tmp_path / "flap.yaml"
    path.write_text(FLAP)
    return path


def spec(timeout: int, retries: int) -> RetransmissionSpec:
    """Return a pair of settings."""
    return RetransmissionSpec(timeout_exponent=timeout, retries=retries)


def test_the_engine_gives_up_and_resumes_when_the_model_says(flap: Path) -> None:
    """T 14, R 3: four waits of 67.1 ms, and the second of them is the first that ends after 100 ms."""
    (row,) = simulate_timers(load_scenario(flap), [], [spec(14, 3)])
    assert (row.prediction.gives_up_ns, row.model_stall_ns) == (4 * WAIT_14_NS, 2 * WAIT_14_NS)
    assert row.simulated_gives_up_ns == pytest.approx(4 * WAIT_14_NS, rel=1e-3)
    assert row.simulated_stall_ns == pytest.approx(2 * WAIT_14_NS, rel=1e-3)
    assert row.agrees()


def test_a_flap_too_long_for_the_retries_ends_the_queue_pair_in_both(flap: Path) -> None:
    """T 14, R 1 sends again after 67.1 ms only, while the link is down for 100 ms."""
    (row,) = simulate_timers(load_scenario(flap), [], [spec(14, 1)])
    assert row.model_stall_ns == row.simulated_stall_ns == math.inf
    assert row.agrees()


def test_a_stream_resumes_sooner_than_its_timer(flap: Path) -> None:
    """Down for 5 us of 20: the packets that follow show the receiver what is missing, within a round trip."""
    (row,) = simulate_timers(load_scenario(flap), [], [spec(14, 7)], flap_ns=5000)
    assert row.model_stall_ns == WAIT_14_NS
    assert row.simulated_stall_ns < 10_000
    assert row.agrees()


def test_adapters_are_names_or_files(flap: Path, tmp_path: Path) -> None:
    """Each with each pair of settings, in the order given."""
    path = write_profile(KNOWN_PROFILES["connectx-6"], tmp_path / "nic.json")
    rows = simulate_timers(load_scenario(flap), ["ibta", str(path)], [spec(14, 3), spec(18, 3)])
    assert [(row.prediction.profile.name, row.prediction.spec.timeout_exponent) for row in rows] == [
        *(("ibta", 14), ("ibta", 18), ("connectx-6", 14), ("connectx-6", 18))
    ]


def test_measured_trials_stand_beside_by_their_median(flap: Path) -> None:
    """Cut for good and for 102 ms, which is 100 ms but for 2 %; trials of other settings are left out."""
    trials = [
        *(TimerTrial(spec=spec(14, 3), cut_ns=-1, status=12, after_ns=after_ns * MS) for after_ns in (270, 280, 300)),
        TimerTrial(spec=spec(14, 3), cut_ns=102 * MS, status=0, after_ns=140 * MS),
        TimerTrial(spec=spec(14, 6), cut_ns=-1, status=12, after_ns=500 * MS),
    ]
    scenario = load_scenario(flap)
    (row,) = rows = simulate_timers(scenario, [], [spec(14, 3)], trials=trials)
    assert (row.measured_gives_up_ns, row.measured_stall_ns) == (280 * MS, 140 * MS)
    assert timer_record(scenario, rows, started=0.0).tables["timers"]["measured_stall_ns"].tolist() == [140 * MS]


def test_a_path_around_the_link_is_a_finding(tmp_path: Path) -> None:
    """Routing converges after 1 ms on the other uplink, so that nobody gives up although the model says so."""
    path = tmp_path / "around.yaml"
    path.write_text(
        FLAP.replace("hosts_per_tor_set: 2", "hosts_per_tor_set: 1")
        .replace("uplinks_per_tor: 1", "uplinks_per_tor: 2")
        .replace("host0:nic0", "tor0:up0")
        + "convergence_delay: 1 ms\n"
    )
    scenario = load_scenario(path)
    rows = simulate_timers(scenario, [], [spec(14, 3)])
    (finding,) = timer_record(scenario, rows, started=0.0).findings
    assert finding.id == "timers.simulation-differs"


def test_a_scenario_without_a_flap_is_refused(flap: Path) -> None:
    """With the line of its faults."""
    flap.write_text(FLAP.replace("flap, link", "link_down, link").replace(", down: 100 ms", ""))
    scenario: Scenario = load_scenario(flap)
    with pytest.raises(InputError, match=r"flap.yaml:6: faults: no link that goes down and comes back\n  allowed: "):
        simulate_timers(scenario, [], [spec(14, 3)])


def test_the_command_prints_and_records_them(flap: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With trials from a record, and as JSON; the settings are the scenario's unless given."""
    columns = {"timeout": [14], "retries": [3], "cut_ns": [-1], "status": [12], "after_ns": [277 * MS]}
    columns |= {"model_ns": [-1], "retransmissions": [-1]}
    trials = {name: np.array(values) for name, values in columns.items()}
    measured = RunRecord(kind="rdma timers measure", run={}, tables={"trials": trials}).write(tmp_path / "measured")
    arguments = ["rdma", "timers", "simulate", str(flap), "--retries", "3", "--out", str(tmp_path / "record")]
    assert run([*arguments, "--measured", str(measured), "--quiet"]) == 0
    assert run([*arguments, "--measured", str(measured)]) == 0
    shown = capsys.readouterr().out
    assert (
        "ibta          14        3               268.4 ms   268.4 ms    277 ms      134.2 ms   134.2 ms  not tried"
        in shown
    )
    assert run([*arguments, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["timers"]
    assert row["measured_gives_up_ns"] == -1
    assert RunRecord.read(tmp_path / "record").kind == "rdma timers simulate"
    assert run([*arguments, "--measured", str(tmp_path / "record")]) == 2
    assert "no trials\n  next: give the folder that `fabrictune rdma timers measure` wrote" in capsys.readouterr().err
