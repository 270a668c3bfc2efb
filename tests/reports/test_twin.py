"""The page's section on a training beside its twin."""

from fabrictune.foundation.records import RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.reports.page import build_page

STEP = {"waited_ns": 0, "sent_bytes": 100, "planned_bytes": 100, "is_alarm": 0}
UNKNOWN = {"predicted_ns": -1, "half_width_ns": -1}
LINK = {"sent_bytes": 100, "planned_bytes": 100, "planned_ns": 10**8}


def page(*steps: dict[str, object], links: list[dict[str, object]]) -> str:
    """Return the page of a training of these steps."""
    tables = {"twin_steps": to_columns("twin_steps", steps), "twin_links": to_columns("twin_links", links)}
    record = RunRecord(kind="validate testbed train", run=describe_run(seed=0, started=0.0), tables=tables, checks=())
    return build_page([record], title="twin", labels=["lab"])


def test_measured_stands_beside_predicted_and_the_busiest_link_first() -> None:
    """The first step has no prediction; the caption says when the alarm was raised."""
    text = page(
        {**STEP, **UNKNOWN, "step": 7, "state": "calibration", "measured_ns": 5 * 10**8},
        {
            **STEP,
            "step": 8,
            "state": "within",
            "measured_ns": 5 * 10**8,
            "predicted_ns": 5 * 10**8,
            "half_width_ns": 10,
        },
        {
            **STEP,
            "step": 9,
            "state": "longer",
            "measured_ns": 9 * 10**8,
            "predicted_ns": 5 * 10**8,
            "half_width_ns": 10,
            "is_alarm": 1,
        },
        links=[{**LINK, "link": "a -> b", "busy_ns": 10**8}, {**LINK, "link": "c -> d", "busy_ns": 2 * 10**8}],
    )
    section = text[text.index("Steps beside their prediction") :]
    assert "each step measured and predicted; alarm from step 9 on." in section
    assert section.index("c -&gt; d") < section.index("a -&gt; b")
    assert "upper end" in section


def test_a_run_of_one_step_has_no_curve() -> None:
    """Nor does a run that never came so far as to know its links have rows of them."""
    text = page({**STEP, **UNKNOWN, "step": 0, "state": "warm-up", "measured_ns": 5 * 10**8}, links=[])
    assert "each step measured and predicted" not in text
