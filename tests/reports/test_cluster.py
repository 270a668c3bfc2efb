"""The page's section on a cluster's validation."""

from fabrictune.foundation.records import RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.reports.page import build_page

STAGES = [
    {"stage": "doctor", "state": "done", "reason": "", "wall_s": 1.5},
    {"stage": "cabling", "state": "skipped", "reason": "no node hears a neighbour", "wall_s": 0.0},
]
UNKNOWN = {"predicted": -1.0, "predicted_low": -1.0, "predicted_high": -1.0, "limit": -1.0, "detail": ""}
FLOW = {"stage": "matrix", "part": "alone", "unit": "bit/s"}


def page(*measurements: dict[str, object]) -> str:
    """Return the page of a validation with these measurements."""
    tables = {
        "cluster_stages": to_columns("cluster_stages", STAGES),
        "cluster_measurements": to_columns("cluster_measurements", measurements),
    }
    record = RunRecord(kind="validate cluster", run=describe_run(seed=0, started=0.0), tables=tables, checks=())
    return build_page([record], title="cluster", labels=["lab"])


def test_the_nearest_to_its_limit_comes_first_and_what_has_none_last() -> None:
    """A flow at 90 % of its limit, one at twice its limit, and a host's own rate."""
    good = {**UNKNOWN, "predicted": 95e9, "predicted_low": 95e9, "predicted_high": 95e9, "limit": 40e9}
    text = page(
        {**FLOW, "subject": "host limit of a", "measured": 20e9, "verdict": "no limit", **UNKNOWN},
        {**FLOW, "subject": "a to b", "measured": 80e9, "verdict": "good", **good},
        {**FLOW, "subject": "b to a", "measured": 36e9, "verdict": "bad", **good},
    )
    section = text[text.index("Validation of the cluster") :]
    places = [section.index(subject) for subject in ("b to a", "a to b", "host limit of a")]
    assert places == sorted(places)
    assert "36 Gbps" in section
    assert "no node hears a neighbour" in section


def test_a_validation_that_was_stopped_early_has_its_stages_alone() -> None:
    """No measurement yet: no empty table."""
    assert "measured beside predicted" not in page()
