"""Checks of all ranks' reports on rank 0."""

from dataclasses import replace
from pathlib import Path

import pytest

from fabrictune.foundation.errors import Mistake, RefusedError
from fabrictune.trainer_probe.training.preflight import RankReport, check_ranks, machine_of

GOOD = RankReport(
    host="a", is_first_there=False, versions={"fabrictune": "1.0", "torch": "2"}, settings={"name": "x", "seed": 1}
)
FIRST = replace(GOOD, is_first_there=True, tokens="/tmp/a.tokens", checksum=7)  # a name, never opened
BROKEN = Mistake(where="some.tokens", found="cut short")


def refusal(*reports: RankReport) -> str:
    result = check_ranks([report.to_json() for report in reports])
    with pytest.raises(RefusedError) as raised:
        machine_of(0, result)
    return str(raised.value)


def test_ranks_that_agree_learn_their_machine() -> None:
    """Two hosts: each rank's loader is that of its host, and both serve one job."""
    second = replace(FIRST, host="b", tokens="/tmp/b.tokens")
    result = check_ranks([report.to_json() for report in (FIRST, second, GOOD, replace(GOOD, host="b"))])
    here, there = machine_of(2, result), machine_of(3, result)
    assert (here.ranks, here.tokens) == ((0, 2), Path("/tmp/a.tokens"))
    assert (there.ranks, there.tokens) == ((1, 3), Path("/tmp/b.tokens"))
    assert here.job == there.job


def test_another_version_or_recipe_names_its_ranks() -> None:
    """Both at once, and what is the same on two ranks is told once."""
    other = replace(GOOD, versions={"fabrictune": "0.9", "torch": "2"})
    recipe = replace(GOOD, settings={"name": "x", "seed": 2})
    assert refusal(FIRST, other, recipe, other) == (
        'ranks 1, 3: fabrictune: "0.9"\n  allowed: "1.0", as on rank 0\n'
        "  next: install the same version on every machine\n"
        "rank 2: seed: 2\n  allowed: 1, as on rank 0\n"
        "  next: start every rank with the same recipe and the same --set"
    )


def test_what_all_find_is_told_without_names() -> None:
    """The same recipe is wrong for everybody; a token file is looked at by the first rank of each machine."""
    everybody = [replace(one, settings=None, mistakes=(BROKEN,)) for one in (FIRST, GOOD)]
    assert refusal(*everybody) == "some.tokens: cut short"
    assert refusal(replace(FIRST, mistakes=(BROKEN,)), GOOD) == "some.tokens: cut short"


def test_what_one_machine_finds_names_it() -> None:
    """The file is whole on the other."""
    second = replace(FIRST, host="b", mistakes=(BROKEN,))
    assert refusal(FIRST, GOOD, second) == "rank 2: some.tokens: cut short"


def test_machines_with_other_tokens_are_refused() -> None:
    """Same name, same length, other content."""
    second = replace(FIRST, host="b", checksum=8)
    assert refusal(FIRST, second).startswith("rank 1: checksum of the token file: 8\n  allowed: 7, as on rank 0")


def test_many_ranks_are_counted() -> None:
    """Sixteen by name, the rest by number."""
    others = [replace(GOOD, settings={"name": "y", "seed": 1})] * 20
    named = ", ".join(map(str, range(1, 17)))
    assert refusal(FIRST, *others).startswith(f'ranks {named} and 4 more: name: "y"')
