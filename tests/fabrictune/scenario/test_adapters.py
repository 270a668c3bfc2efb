"""A scenario's adapter: whose timers the engine's queue pairs have."""

from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.retransmission import CONNECTX_6, STANDARD
from fabrictune.rdma_bench.timers.profile_files import write_profile
from fabrictune.rdma_bench.timers.profiles import KNOWN_PROFILES
from fabrictune.scenario.adapters import profile_of
from fabrictune.scenario.engines import engine_config
from fabrictune.scenario.files import load_scenario
from fabrictune.scenario.schema import Scenario

SCENARIO = """
name: flap
fabric: {builder: clos, num_hosts: 2, hosts_per_tor_set: 2, nics_per_host: 1, tiers: 2, uplinks_per_tor: 1}
traffic: {workload: incast, senders: 1, message: 4 KB}
engine: {transport: {retries: RETRIES}}
"""


def scenario(folder: Path, adapter: str = "", retries: int = 7) -> Scenario:
    """Return a scenario with this line about its adapter."""
    path = folder / "flap.yaml"
    path.write_text(SCENARIO.replace("RETRIES", str(retries)) + adapter)
    return load_scenario(path)


def test_the_standard_holds_unless_an_adapter_is_named(tmp_path: Path) -> None:
    """`adapter: connectx-6` is short for its name alone."""
    assert engine_config(scenario(tmp_path)).transport.timers == STANDARD
    assert engine_config(scenario(tmp_path, "adapter: connectx-6")).transport.timers == CONNECTX_6


@pytest.mark.parametrize("line", ["adapter: mine.json", "adapter: {file: mine.json}"])
def test_a_profile_of_ones_own_is_a_file_beside_the_scenario(line: str, tmp_path: Path) -> None:
    """The same file that predictions read."""
    write_profile(KNOWN_PROFILES["soft-roce"], tmp_path / "mine.json")
    assert profile_of(scenario(tmp_path, line).adapter) == KNOWN_PROFILES["soft-roce"]


def test_an_unknown_adapter_is_guessed_at(tmp_path: Path) -> None:
    """All known names stand in the message."""
    with pytest.raises(InputError, match=r"unknown name 'conectx-6'\n  did you mean 'connectx-6'"):
        scenario(tmp_path, "adapter: conectx-6")


@pytest.mark.parametrize("name", ["connectx-7", "bluefield-3"])
def test_an_adapter_without_published_timers_is_refused(name: str, tmp_path: Path) -> None:
    """It is no ConnectX-6, which is the nearest name; the message says what is known and what to do."""
    with pytest.raises(InputError, match=rf"flap.yaml:6: adapter: {name}: timers unknown \(NVIDIA") as raised:
        scenario(tmp_path, f"adapter: {name}")
    assert "next: measure yours with `fabrictune rdma timers measure`" in str(raised.value)


def test_a_retry_count_the_adapter_says_nothing_of_is_refused(tmp_path: Path) -> None:
    """A ConnectX-6 with R 0 was never seen to agree with itself."""
    with pytest.raises(InputError, match=r"flap.yaml:5: engine.transport.retries: 0\n  allowed: 1 to 7"):
        engine_config(scenario(tmp_path, "adapter: connectx-6", retries=0))
