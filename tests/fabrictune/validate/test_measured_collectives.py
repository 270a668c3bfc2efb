"""Measurements beside a scenario, from synthetic ones whose every part is known."""

from pathlib import Path

import pytest

from fabrictune.collectives.measurement.files import MeasurementFiles
from fabrictune.collectives.measurement.measurements import Measurement
from fabrictune.foundation.errors import InputError
from fabrictune.foundation.records import Severity
from fabrictune.foundation.traces import Operation
from fabrictune.scenario.files import load_scenario
from fabrictune.scenario.schema import Scenario
from fabrictune.validate.collective_model import CollectiveModel
from fabrictune.validate.measured_collectives import compare_measured

SIZES = (1024, 2**20, 2**24, 2**26)
SCENARIO = """
name: clean
fabric: {builder: clos, num_hosts: 4, hosts_per_tor_set: 4, nics_per_host: 1, tiers: 2, downlink_split: 1,
         uplinks_per_tor: 1, nic_rate: 400 Gbps}
traffic: {workload: all_reduce, layout: {dp: 4}, message: 1 MB}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO)
    return load_scenario(path)


def measured(scenario: Scenario, *, times: float = 1.0, plus_ns: float = 0.0, num_wrong: int = 0) -> MeasurementFiles:
    """Return what would be measured if every collective took so many times the model's time, and so much more."""
    model = CollectiveModel(scenario, Operation.ALL_REDUCE)
    rows = tuple(
        Measurement(
            name="all_reduce",
            is_in_place=True,
            size_bytes=size,
            num_ranks=4,
            mean_ns=model.at(size).fair_ps / 1000 * times + plus_ns,
            num_wrong=num_wrong,
        )
        for size in SIZES
    )
    return MeasurementFiles(rows=rows, source="made up", num_hosts=4)


def test_what_was_measured_as_modelled_has_a_ratio_of_one(scenario: Scenario) -> None:
    """And nothing is left over; the fit finds the rate of the NIC without its headers, 49.02 GB/s."""
    record = compare_measured(measured(scenario), scenario)
    table = record.tables["attribution"]
    assert table["ratio"] == pytest.approx(1)
    assert table["not_the_network_ps"] == pytest.approx(0)
    assert record.tables["fits"]["busbw_bps"] == pytest.approx(400e9 * 4096 / 4178, rel=0.01)


def test_a_constant_is_found_as_the_cost_of_a_call(scenario: Scenario) -> None:
    """50 us more at every size: of the smallest nearly all, and nobody blames the fabric."""
    record = compare_measured(measured(scenario, plus_ns=50_000), scenario)
    table = record.tables["attribution"]
    assert table["call_ps"] == pytest.approx(50e6, rel=0.05)
    assert table["call_ps"][0] / table["measured_ps"][0] > 0.9
    assert not record.findings  # of the largest size, which findings speak of, it is a hundredth


def test_half_the_rate_is_not_the_network(scenario: Scenario) -> None:
    """Twice the time at every size, on a fabric on which nothing collides."""
    record = compare_measured(measured(scenario, times=2), scenario)
    table = record.tables["attribution"]
    assert table["ratio"] == pytest.approx(2)
    assert table["not_the_network_ps"][-1] / table["measured_ps"][-1] == pytest.approx(0.5, abs=0.01)
    assert (table["queue_pairs_ps"] == 0).all()
    (gap,) = [finding for finding in record.findings if finding.id == "coll.gap"]
    assert gap.severity == Severity.INFO
    assert gap.actual.endswith(", of which not the network 50%")
    assert gap.next_step.startswith("not the network: ib_write_bw")
    assert "assumes NICs of 400 Gbps; " in gap.next_step
    verdicts = record.tables["verdicts"]
    assert verdicts["size_bytes"].tolist() == [2**26]
    assert verdicts["rate_bps"].tolist() == [400e9]


def test_what_beats_the_bound_is_another_network(scenario: Scenario) -> None:
    """Half of the model's time: NVLink, or more NICs than the scenario has."""
    record = compare_measured(measured(scenario, times=0.5), scenario)
    (finding,) = [finding for finding in record.findings if finding.id == "coll.faster-than-bound"]
    assert finding.actual.endswith(", 0.50 of the bound")


def test_wrong_results_are_told_before_times(scenario: Scenario) -> None:
    """A finding a row, graver than any about time."""
    record = compare_measured(measured(scenario, num_wrong=3), scenario)
    wrong = [finding for finding in record.findings if finding.id == "coll.wrong-result"]
    assert {finding.severity for finding in wrong} == {Severity.CRITICAL}
    assert len(wrong) == len(SIZES)


def test_a_line_with_a_negative_cost_is_said_to_be_none(scenario: Scenario) -> None:
    """A millisecond a megabyte less 300 us: no call costs that, and the errors of 0.2 % do not allow 0."""
    rows = tuple(
        Measurement(name="all_reduce", is_in_place=True, size_bytes=size, num_ranks=4, mean_ns=time_ns)
        for size, time_ns in ((10**6, 701e3), (2 * 10**6, 1697e3), (4 * 10**6, 3707e3), (8 * 10**6, 7685e3))
    )
    record = compare_measured(MeasurementFiles(rows=rows, source="made up", num_hosts=4), None)
    (finding,) = record.findings
    assert (finding.id, finding.entity) == ("coll.no-line", "all_reduce of 4 ranks in place")
    assert finding.actual == "alpha -298.2 us, 95 % interval -309.7 us to -286.7 us"
    assert record.tables["fits"]["alpha_high_ns"][0] < 0


def test_checks_that_lack_a_scenario_did_not_run(scenario: Scenario) -> None:
    """Nothing about gaps is no statement that there is none."""
    results = {check.rule: check.result.value for check in compare_measured(measured(scenario), None).checks or ()}
    assert results == {
        "coll.wrong-result": "passed",
        "coll.no-line": "passed",
        "coll.faster-than-bound": "not run",
        "coll.gap": "not run",
    }


def test_without_a_scenario_a_line_is_all_there_is(scenario: Scenario) -> None:
    """And of one size not even that."""
    imported = measured(scenario)
    assert set(compare_measured(imported, None).tables) == {"fits"}
    alone = MeasurementFiles(rows=imported.rows[:1], source="made up", num_hosts=4)
    assert not compare_measured(alone, None).tables
    assert compare_measured(alone, scenario).tables["attribution"]["call_ps"].tolist() == [0]


def test_another_number_of_ranks_is_refused(scenario: Scenario) -> None:
    """At the line of the layout."""
    row = Measurement(name="all_reduce", is_in_place=True, size_bytes=8, num_ranks=8, mean_ns=1.0)
    with pytest.raises(InputError, match=r"traffic\.layout: groups of 4 ranks, where 8 ranks were measured"):
        compare_measured(MeasurementFiles(rows=(row,), source="made up", num_hosts=0), scenario)


COLLIDING = """
name: colliding
fabric: {builder: clos, num_hosts: 16, hosts_per_tor_set: 8, nics_per_host: 1, tiers: 2, downlink_split: 1,
         uplinks_per_tor: 8, nic_rate: 400 Gbps, uplink_rate: 400 Gbps}
traffic: {workload: all_reduce, layout: {dp: 16}, placement: interleaved, message: 1 MB}
"""


def test_what_the_engine_loses_to_collisions_is_given_to_them(tmp_path: Path) -> None:
    """The packet engine's time as the measurement: a ring that climbs on every edge, two of whose flows share a link.

    Nearly half of the time is the flows' loss to one another, and at most 3 % cannot be explained.
    """
    path = tmp_path / "colliding.yaml"
    path.write_text(COLLIDING)
    scenario = load_scenario(path)
    engine_ps = CollectiveModel(scenario, Operation.ALL_REDUCE).at(16_000_000, with_engine=True).engine_ps
    assert engine_ps is not None
    row = Measurement(
        name="all_reduce", is_in_place=True, size_bytes=16_000_000, num_ranks=16, mean_ns=engine_ps / 1000
    )
    record = compare_measured(MeasurementFiles(rows=(row,), source="engine", num_hosts=16), scenario)
    share = {
        name: float(column[0]) / engine_ps for name, column in record.tables["attribution"].items() if "_ps" in name
    }
    assert share["queue_pairs_ps"] + share["collisions_ps"] > 0.4
    assert share["not_the_network_ps"] < 0.03
    (gap,) = record.findings
    assert "queue pairs" in gap.actual or "collisions" in gap.actual
