"""A scenario changed by key paths is checked as a file is, and a mistake names the change or the line."""

from pathlib import Path
from typing import Any

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.scenario.composition import compose
from fabrictune.scenario.files import load_scenario
from fabrictune.scenario.overrides import override, override_texts
from fabrictune.scenario.schema import Scenario

TEXT = """name: ring
fabric: {builder: clos, num_hosts: 8, hosts_per_tor_set: 4, nics_per_host: 1, tiers: 2}
traffic:
  workload: neighbours
  layout: {dp: 8}
"""
MIXED = """name: mixed
fabric: {builder: clos, num_hosts: 8, hosts_per_tor_set: 4, nics_per_host: 1, tiers: 2}
traffic:
  workload: mix
  parts:
    - {name: burst, traffic: {workload: incast, senders: 4, message: 1 MB}}
    - {name: job, traffic: {workload: permutation, message: 8 MB}}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    """Return a ring of eight hosts."""
    path = tmp_path / "ring.yaml"
    path.write_text(TEXT)
    return load_scenario(path)


def test_changes_are_as_if_the_file_had_them(scenario: Scenario, tmp_path: Path) -> None:
    """Text with units, whole mappings, and mappings the file leaves out."""
    changes = {"fabric.nic_rate": "100 Gbps", "routing.seed": 3, "traffic.layout": {"dp": 4}, "seed": 9}
    changed = override(scenario, changes, origin="--set")
    path = tmp_path / "same.yaml"
    path.write_text(
        TEXT.replace("tiers: 2", "tiers: 2, nic_rate: 100 Gbps").replace("{dp: 8}", "{dp: 4}")
        + "seed: 9\nrouting: {seed: 3}\n"
    )
    assert changed == load_scenario(path)
    assert scenario == load_scenario(tmp_path / "ring.yaml"), "the scenario itself stays as it was"


def test_a_change_reaches_into_lists(tmp_path: Path) -> None:
    """One part of a mixture, and in it one key that the file does not have."""
    path = tmp_path / "mixed.yaml"
    path.write_text(MIXED)
    changed = override(load_scenario(path), {"traffic.parts[1].start": "5 us"}, origin="--set")
    path.write_text(MIXED.replace("{name: job,", "{name: job, start: 5 us,"))
    assert changed == load_scenario(path)


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("parts[2].start", "traffic.parts has no entry 2\n  allowed: 0 to 1"),
        ("workload[0]", "traffic.workload has no entry 0"),
    ],
)
def test_an_entry_that_is_not_there_is_named(tmp_path: Path, key: str, found: str) -> None:
    """Entries are not added: what would stand between them?"""
    path = tmp_path / "mixed.yaml"
    path.write_text(MIXED)
    with pytest.raises(InputError) as raised:
        override(load_scenario(path), {f"traffic.{key}": "5 us"}, origin="--set")
    assert str(raised.value).startswith(f"--set: traffic.{key}: {found}\n")


def test_no_changes_change_nothing(scenario: Scenario) -> None:
    """The same scenario, bound again."""
    assert override(scenario, {}, origin="--set") == scenario


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (
            "fabric.nic_rte",
            "100 Gbps",
            "--set: fabric.nic_rte: unknown key 'nic_rte'\n  did you mean 'nic_rate'?\n",
        ),
        ("fabric.nic_rate", 100, "--set: fabric.nic_rate: '100': a rate needs its unit\n"),
        ("traffic.axes", ["dp", "qp"], "--set: traffic.axes[1]: 'qp'\n  allowed: tp, cp, dp, pp, ep, edp, dp_cp"),
        ("name.first", "x", "--set: name.first: name is 'ring', which has no keys\n  next: set it as a whole mapping"),
    ],
)
def test_a_mistaken_change_is_named(scenario: Scenario, path: str, value: Any, message: str) -> None:
    """The place is the option, the words are those of a file's mistake."""
    with pytest.raises(InputError) as raised:
        override(scenario, {path: value}, origin="--set")
    assert str(raised.value).startswith(message)


def test_texts_of_settings_are_changes(scenario: Scenario) -> None:
    """Several in a text, several texts, the last of a key; none leaves the scenario as it is."""
    changed = override_texts(scenario, ["seed=3; fabric.nic_rate=200 Gbps", "seed=4"], origin="--set")
    assert (changed.seed, changed.fabric.spec.nic_rate_bps) == (4, 200_000_000_000)
    assert override_texts(scenario, [], origin="--set") is scenario
    with pytest.raises(InputError, match="seed: no setting\n  allowed: KEY=VALUE"):
        override_texts(scenario, ["seed"], origin="--set")


def test_a_mistake_found_later_names_the_change(scenario: Scenario) -> None:
    """Nine ranks do not fit on eight GPUs: that shows when the job is placed, and the change is what to mend."""
    changed = override(scenario, {"fabric.num_hosts": 4}, origin="what if 'small'")
    with pytest.raises(InputError) as raised:
        compose(changed)
    assert "ring.yaml:3: traffic.placement: 8 ranks for 4 GPUs" in str(raised.value)
    changed = override(scenario, {"traffic.placement": "interleaved", "traffic.layout.dp": 9}, origin="what if 'big'")
    with pytest.raises(InputError) as raised:
        compose(changed)
    assert str(raised.value).startswith("what if 'big': traffic.placement: 9 ranks for 8 GPUs")
