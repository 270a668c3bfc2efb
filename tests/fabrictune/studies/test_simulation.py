"""A simulated run says what was checked, collisions of the hash included, and nothing that was not."""

from pathlib import Path
from typing import Any

import pytest

from fabrictune.foundation.checks import Check, Result
from fabrictune.foundation.records import RunRecord, Severity
from fabrictune.scenario.files import load_scenario
from fabrictune.scenario.overrides import override
from fabrictune.studies.collisions import analyze_scenario
from fabrictune.studies.simulation import simulate

SCENARIOS = Path(__file__).parents[3] / "scenarios"


def run(name: str, **changes: Any) -> RunRecord:
    """Return the record of a bundled scenario with other settings."""
    return simulate(override(load_scenario(SCENARIOS / f"{name}.yaml"), changes, origin="test"))


def checks_of(record: RunRecord) -> dict[str, Check]:
    """Return the checks by rule."""
    return {check.rule: check for check in record.checks or ()}


def test_a_run_over_colliding_paths_is_not_without_findings() -> None:
    """The permutation offers links 200 %: `ecmp analyze` has twelve findings, and so has the run."""
    record, scenario = run("permutation"), load_scenario(SCENARIOS / "permutation.yaml")
    predicted = analyze_scenario(scenario).findings
    assert len(predicted) == 12
    assert [finding for finding in record.findings if finding.id.startswith("ecmp.")] == list(predicted)
    assert checks_of(record)["ecmp.link-overloaded"].num_found == 12


def test_an_incast_is_called_an_overloaded_receiver() -> None:
    """Eight senders into one NIC share no link but its own: no choice of path helps."""
    checks = checks_of(record := run("incast"))
    assert [finding.id for finding in record.findings] == ["ecmp.receiver-overloaded"]
    assert checks["ecmp.link-overloaded"].result == Result.PASSED


def test_an_incast_that_the_scenario_asks_for_is_a_warning() -> None:
    """As a workload, and as a part of a mixture, where senders have flows of the job too."""
    (finding,) = run("incast").findings
    assert finding.severity == Severity.WARNING
    assert finding.actual == "8 flows offer 3.2 Tbps, 8 of them of a declared incast"
    (receiver,) = [each for each in run("job-beside-burst").findings if each.id == "ecmp.receiver-overloaded"]
    assert receiver.severity == Severity.WARNING
    assert receiver.actual == "13 flows (burst: 12, job: 1) offer 1.8 Tbps, 12 of them of a declared incast"


def test_flows_that_arrive_over_time_are_not_taken_to_send_at_once() -> None:
    """At 50 % load 107 flows share links in turn; the check does not apply, so it has not passed."""
    checks = checks_of(run("web-search"))
    for rule in ("ecmp.link-overloaded", "ecmp.receiver-overloaded"):
        assert checks[rule].result == Result.NOT_RUN
        assert checks[rule].reason == "flows begin at times of their own; ecmp analyze takes all to send at once"
    assert checks["ecmp.polarized-tiers"].result == Result.PASSED


def test_sprayed_packets_do_not_follow_the_hash() -> None:
    """The links of hash paths say nothing of sprayed flows; a receiver is as overloaded as ever."""
    checks = checks_of(run("spraying"))
    assert checks["ecmp.link-overloaded"].reason == "path choice is spray, and the check follows the paths of the hash"
    assert checks["ecmp.receiver-overloaded"].result == Result.PASSED


def test_packets_lost_to_faults_are_a_finding_with_their_share() -> None:
    """A fifth of all packets is lost while the link is down; the run meets its bounds, and is not green."""
    (finding,) = run("link-flap").findings
    assert (finding.id, finding.severity) == ("netsim.fault-drops", Severity.WARNING)
    assert finding.actual == "1,349 packets lost to faults (1,349 link down), 22 % of 6,241 data packets"


def test_a_run_without_bounds_says_that_nothing_bounds_it() -> None:
    """All other checks of the all-reduce pass."""
    results = {check.rule: check.result for check in run("allreduce", expect=[]).checks or ()}
    assert results.pop("expect.*") == Result.NOT_RUN
    assert set(results.values()) == {Result.PASSED}


def test_values_that_follow_the_link_are_notes_with_their_rule() -> None:
    """DCQCN's steps and the switches' marking at 100 Gbps; what is set has none, nor the paper's own numbers."""
    record = run("permutation", law="dcqcn").run
    form, steps, marking, of_queues = record["notes"]
    assert form == "law dcqcn: the paper's of 2015; NICs run another form, dcqcn_firmware"
    assert steps.startswith("law dcqcn: byte_counter 25 MB, additive_increase 100 Mbps, hyper_increase 500 Mbps: in ")
    assert marking.startswith("law dcqcn: engine.ecn kmin 400 KB, kmax 1.6 MB, pmax 0.2: 100 KB and 400 KB for each 25")
    assert record["law"]["parameters"]["hyper_increase_bps"] == 500e6
    assert list(record["law"]["derived"]) == ["byte_counter_bytes", "additive_increase_bps", "hyper_increase_bps"]
    assert record["configuration"]["ecn"]["kmin_bytes"] == 400_000
    curve = {"kmin": "400 KB", "kmax": "1.6 MB", "pmax": 0.2}
    fixed = run("permutation", law={"name": "dcqcn", "defaults": "paper"}, engine={"ecn": curve}).run
    again, far, *others = fixed["notes"]
    assert again == form
    assert far.startswith("law dcqcn: byte_counter 10 MB is set, 25 MB fits the link (")
    assert others == [of_queues]
    assert fixed["law"]["parameters"]["hyper_increase_bps"] == 200e6


@pytest.mark.parametrize(
    ("queues", "note"),
    [
        ({"acknowledgement_class": "control"}, "acknowledgements have a class of their own, sent before data and never "
         "paused: times until they arrive are at their shortest (engine.queues.acknowledgement_class: data has them "
         "wait with data); ports that carry both: 69"),
        ({"acknowledgement_class": "data"}, "acknowledgements have the class of data: they wait in its queues, and "
         "pauses stop them; ports that carry both: 69"),
        ({"priorities": [{"priority": 3}]}, ""),
    ],
)  # fmt: skip
def test_a_run_names_the_class_of_acknowledgements(queues: dict[str, Any], note: str) -> None:
    """A list of priorities says it itself."""
    notes = run("permutation", engine={"queues": queues, "time_limit": "1 us"}).run["notes"]
    assert notes[0] == "law dcqcn_firmware: that of ConnectX firmware; the paper's of 2015 is dcqcn"
    assert notes[2:] == ([note] if note else [])


def test_a_run_whose_pcie_is_slower_than_its_nics_says_so() -> None:
    """NICs of 400 Gb/s: eight lanes of PCIe 3 carry a seventh of that into memory, PCIe 5 more than all of it."""
    hosts = {3: {"pcie_generation": 3, "pcie_lanes": 8}, 5: {"pcie_generation": 5}}
    notes = {
        generation: run("incast", engine={"host": host, "time_limit": "1 us"}).run.get("notes", [])
        for generation, host in hosts.items()
    }
    assert notes[3][-1] == (
        "PCIe carries 57.61 Gbps of payload a link into memory, and NICs with 400 Gbps share one: hosts are slower "
        "than their links (engine.host)"
    )
    assert not [note for note in notes[5] if note.startswith("PCIe")]


def test_a_run_whose_acknowledgements_meet_no_data_names_no_class() -> None:
    """In an incast each direction of a link has data or acknowledgements."""
    notes = run("incast", engine={"time_limit": "1 us"}).run.get("notes", [])
    assert not [text for text in notes if text.startswith("acknowledgements have")]
