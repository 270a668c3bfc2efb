"""Measurements against an earlier validation's."""

from fabrictune.foundation.checks import Result
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS
from fabrictune.validate.cluster.baseline import check_baseline
from fabrictune.validate.cluster.results import Measurement, StageResult, StageState


def matrix(*rates_gbps: float) -> dict[str, StageResult]:
    """Return a matrix of flows alone."""
    rows = [
        Measurement(part="alone", subject=f"flow {number}", unit="bit/s", measured=rate * 1e9)
        for number, rate in enumerate(rates_gbps)
    ]
    return {"matrix": StageResult(name="matrix", state=StageState.DONE, measurements=rows)}


def test_one_flow_that_lost_a_third_has_drifted() -> None:
    """The others are 1 to 3 % slower: the median change is 1.02, flow 4's 1.5."""
    before, after = matrix(100, 100, 100, 100, 100, 100), matrix(99, 98, 97, 98, 66.7, 98)
    report = check_baseline(after, before, "runs/before", CATALOG_SETTINGS)
    (finding,) = report.findings
    assert (finding.entity, finding.actual) == ("flow 4 (alone)", "66.7 Gbps, 1.50 times worse")
    assert finding.expected == "100 Gbps, as before; the median change is 1.02 times"


def test_a_cluster_that_is_slower_as_a_whole_has_no_drifted_flow() -> None:
    """All at half: that is the limits' question, not this one's."""
    report = check_baseline(matrix(*[50.0] * 6), matrix(*[100.0] * 6), "runs/before", CATALOG_SETTINGS)
    assert [check.result for check in report.checks] == [Result.PASSED]


def test_a_few_measurements_are_not_compared() -> None:
    """Four have no median that says something: the check has not run."""
    report = check_baseline(matrix(*[50.0] * 4), matrix(*[100.0] * 4), "runs/before", CATALOG_SETTINGS)
    assert [check.result for check in report.checks] == [Result.NOT_RUN]


def test_times_are_worse_when_they_are_longer() -> None:
    """A collective that takes twice as long as before, where the others do not."""

    def collectives(*times_s: float) -> dict[str, StageResult]:
        rows = [
            Measurement(part="4 ranks", subject=f"all_reduce {number}", unit="s", measured=time_s)
            for number, time_s in enumerate(times_s)
        ]
        return {"collectives": StageResult(name="collectives", state=StageState.DONE, measurements=rows)}

    report = check_baseline(collectives(1, 1, 2, 1, 1), collectives(1, 1, 1, 1, 1), "b", CATALOG_SETTINGS)
    assert [finding.entity for finding in report.findings] == ["all_reduce 2 (4 ranks)"]
