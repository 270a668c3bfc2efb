"""A sweep file's mistakes, all at once, each with its place."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError, ScenarioError
from fabrictune.sweeps.schema import Objective, load_sweep

Write = Callable[..., Path]

WRONG = """
name: s
scenario: small.yaml
vary:
  - {key: a, values: [1, 1]}
  - {key: b, low: 1 KB, high: 2 us}
serach: grid
search: {method: tpr, points: 5}
seeds: 0
objectives: [{metric: completion_time.p98}]
"""


def test_all_mistakes_are_reported_with_line_and_guess(write: Write) -> None:
    """Six of them, in the file's order."""
    with pytest.raises(ScenarioError) as raised:
        load_sweep(write(WRONG))
    shown = [
        (mistake.where.removeprefix(str(write(WRONG))), mistake.found, mistake.nearest)
        for mistake in raised.value.mistakes
    ]
    assert shown == [
        (":5: vary[0].values", "1, 1", ""),
        (":6: vary[1].low", "'1 KB' to '2 us'", ""),
        (":7: serach", "unknown key 'serach'", "search"),
        (":8: search.method", "unknown method 'tpr'", "tpe"),
        (":9: seeds", "0", ""),
        (":10: objectives[0].metric", "unknown metric 'completion_time.p98'", "completion_time.p99"),
    ]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("vary: []\nobjectives: [{metric: drops}]", "vary: none"),
        ("vary: [{key: a, values: [1, 2]}, {key: a, values: [3, 4]}]\nobjectives: [{metric: drops}]", "'a' twice"),
        ("vary: [{key: a, values: [1, 2]}]\nobjectives: [{metric: drops}, {metric: drops}]", "'drops' twice"),
        ("vary: [{key: a, values: [1, 2]}]\nchange: {a: 1}\nobjectives: [{metric: drops}]", "'a', which is varied"),
        (
            "vary: [{key: a, values: [1, 2]}]\nobjectives: [{metric: pauses, part: job}]",
            "it is known of the whole run alone",
        ),
        ("vary: [{key: seed, values: [1, 2]}]\nobjectives: [{metric: drops}]", "say how many with the key 'seeds'"),
    ],
)
def test_keys_that_contradict_one_another_are_refused(write: Write, more: str, words: str) -> None:
    """Each names what stands twice, or what to write instead."""
    with pytest.raises(InputError, match=words):
        load_sweep(write(f"name: s\nscenario: small.yaml\n{more}\n"))


def test_the_usual_way_is_better_unless_another_is_asked_for() -> None:
    """More throughput and fairness, less of all else."""
    assert Objective(metric="fairness").is_maximised
    assert not Objective(metric="queue.max").is_maximised
    assert Objective(metric="queue.max", goal="maximise").cost(3) == -3


def test_an_objective_may_be_its_name(write: Write) -> None:
    """As `--objective` takes it, with the part of a mixture."""
    text = (
        "{name: s, scenario: small.yaml, vary: [{key: seed2, values: [1, 2]}],"
        " objectives: [makespan, slowdown.p99 of job, {metric: drops}]}"
    )
    assert load_sweep(write(text)).objectives == (
        Objective(metric="makespan"),
        Objective(metric="slowdown.p99", part="job"),
        Objective(metric="drops"),
    )
