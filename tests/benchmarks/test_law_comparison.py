"""The comparison of laws: its scenarios are valid, its pairs are pairs, and what is kept is not run again."""

import json

import pytest

from benchmarks.law_comparison.contenders import BASELINE, CONTENDERS
from benchmarks.law_comparison.points import FIGURES, QUESTIONS, Point, all_points, question_names, run_missing
from benchmarks.law_comparison.table import more_than, tables
from fabrictune.scenario.files import load_scenario
from fabrictune.scenario.overrides import override


def point(contender: str, seed: int) -> Point:
    return Point(question="incast-256", contender=contender, seed=seed)


@pytest.mark.parametrize("question", question_names())
def test_every_law_can_be_asked_every_question(question: str) -> None:
    """A law's parameters and the engine's settings that go with it are those of the schema."""
    scenario = load_scenario(QUESTIONS / f"{question}.yaml")
    assert scenario.name == question
    for contender, changes in CONTENDERS.items():
        override(scenario, {**changes, "seed": 1, "routing.seed": 1}, origin=contender)


def test_a_point_that_is_kept_is_not_run_again(tmp_path) -> None:
    """What it holds could come from no run."""
    points = [point(BASELINE, 0)]
    points[0].path(tmp_path).write_text(json.dumps({"makespan": -1}))
    told: list[str] = []
    run_missing(points, tmp_path, told.append)
    assert told == ["1 of 1 points are kept"]


def test_laws_are_compared_seed_by_seed() -> None:
    """90 against 100 and 150 against 300; seed 2 has no baseline yet, and counts for nothing."""
    figures = {
        point(BASELINE, 0): {"makespan": 100.0},
        point(BASELINE, 1): {"makespan": 300.0},
        point("hybrid", 0): {"makespan": 90.0},
        point("hybrid", 1): {"makespan": 150.0},
        point("hybrid", 2): {"makespan": 1.0},
    }
    assert more_than(figures, "hybrid", BASELINE) == [pytest.approx(-0.1), pytest.approx(-0.5)]


def test_a_law_that_never_ended_shows_nothing() -> None:
    """A pair with infinity in it has no mean."""
    names = ("makespan", "slowdown.p50", "slowdown.p99", "pauses", "paused_time", "queue.max", "ecn_marks", "drops")
    ended, stuck = dict.fromkeys(names, 1e9), dict.fromkeys(names, float("inf"))
    table = next(tables({point(BASELINE, 0): ended, point("hybrid", 0): stuck}))
    assert "| hybrid | 1 | unknown | never |" in table


def test_hybrid_is_held_against_each_other_law() -> None:
    """90 against 100 and against 45; a question without bystanders has no row of theirs."""
    time_ps = {BASELINE: 100.0, "swift": 45.0, "hybrid": 90.0}
    figures = {
        point(law, 0): {**dict.fromkeys((figure.name for figure in FIGURES), 1.0), "makespan": time}
        for law, time in time_ps.items()
    }
    of_makespan = next(table for table in tables(figures) if table.startswith("### hybrid: makespan"))
    assert of_makespan.splitlines()[2] == f"| question | {BASELINE} | swift |"
    assert of_makespan.splitlines()[-1] == "| incast-256 | -10.0% | +100.0% |"
    of_victims = next(table for table in tables(figures) if table.startswith("### hybrid: slowdown.p99 of bystanders"))
    assert of_victims.endswith("|---|---|---|")


def test_points_come_seed_by_seed() -> None:
    """A run that is stopped leaves whole pairs."""
    points = all_points(["incast-256"], [BASELINE, "hybrid"], 2)
    assert [(one.seed, one.contender) for one in points] == [(0, BASELINE), (0, "hybrid"), (1, BASELINE), (1, "hybrid")]
