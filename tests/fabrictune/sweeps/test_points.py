"""A run's identity: what it runs, and nothing else."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fabrictune.netsim import _engine
from fabrictune.scenario.files import load_scenario
from fabrictune.sweeps import points
from fabrictune.sweeps.points import PointMaker
from fabrictune.sweeps.schema import load_sweep

Write = Callable[..., Path]

SCENARIO = """
name: {name}
fabric: {{builder: fat_tree, radix: 4}}
traffic: {{workload: permutation, message: {message}}}
{more}
"""
SWEEP = """
name: s
scenario: small.yaml
vary: [{key: engine.ecn.kmin, values: [1 KB, 2 KB]}]
objectives: [{metric: makespan}]
"""


@pytest.fixture
def identities(write: Write) -> Callable[..., list[str]]:
    """Return a function that gives the identities of a point's runs."""

    def identify(*, name: str = "n", message: str = "1 MB", more: str = "", kmin: str = "1 KB") -> list[str]:
        sweep = load_sweep(write(SWEEP, SCENARIO.format(name=name, message=message, more=more)))
        maker = PointMaker(sweep, load_scenario(sweep.scenario), trust_code=False)
        return [task.id for task in maker.check((kmin,)).tasks]

    return identify


def test_it_is_what_runs(identities: Callable[..., list[str]]) -> None:
    """The same in other words, with another name, question or default spelled out; another for each seed."""
    known = identities()
    assert len(set(known)) == 3
    assert identities(message="1000 KB", kmin="1000 B") == known
    assert identities(name="m", more="question: other?\nrouting: {}\nlaw: none") == known


def test_whatever_changes_the_run_changes_it(identities: Callable[..., list[str]]) -> None:
    """A setting, the law, a seed: the scenario's next seed shares two of three runs."""
    known = identities()
    assert not set(known) & set(identities(kmin="2 KB"))
    assert not set(known) & set(identities(more="law: dcqcn"))
    assert identities(more="seed: 1")[:2] == known[1:]


def test_another_engine_is_another_run(
    identities: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Built anew from other sources under the same version, it does not go on with the results of the one before."""
    known = identities()
    changed = tmp_path / "engine.so"
    changed.write_bytes(Path(_engine.__file__).read_bytes() + b"\0")
    monkeypatch.setattr(_engine, "__file__", str(changed))
    points._engine_digests.cache_clear()
    assert not set(known) & set(identities())
    points._engine_digests.cache_clear()


def test_a_file_counts_by_its_content(identities: Callable[..., list[str]], tmp_path: Path) -> None:
    """A law's text that is edited is another law, whatever its file is called."""
    law = tmp_path / "law.py"
    law.write_text("# one")
    known = identities(more="law: ./law.py")
    law.write_text("# two")
    edited = identities(more="law: ./law.py")
    law.rename(tmp_path / "other.py")
    assert not set(known) & set(edited)
    assert identities(more="law: ./other.py") == edited
