"""A scenario's faults: what is wrong with them is said with its line, before anything runs."""

from pathlib import Path

import pytest

from fabrictune.foundation.errors import FabrictuneError, FabrictuneWarning
from fabrictune.scenario.compilation import assemble
from fabrictune.scenario.composition import compose
from fabrictune.scenario.files import load_scenario
from fabrictune.topology.network import Network

HEAD = """\
name: broken
fabric: {builder: fat_tree, radix: 4}
traffic: {workload: permutation, message: 1 MB}
engine: {time_limit: 1 ms}
"""


def faulted_network(path: Path) -> Network:
    """Return a scenario's network with the epochs that its faults cause."""
    return assemble(compose(load_scenario(path)), law=None).network


def check(tmp_path: Path, text: str) -> str:
    """Return what is wrong with a scenario, without the name of its file."""
    path = tmp_path / "broken.yaml"
    path.write_text(HEAD + text)
    with pytest.raises(FabrictuneError) as refused:
        faulted_network(path)
    return str(refused.value).replace(f"{path}:", "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'faults:\n  - {fault: link_down, at: 5 us, link: "tor0:ip1"}\n',
            "6: faults[0].link: unknown port of tor0 'ip1'\n  did you mean 'up1'?",
        ),
        (
            "faults:\n  - {fault: switch_down, at: 5 us, switch: tor99}\n",
            "6: faults[0].switch: unknown node 'tor99'\n  did you mean 'tor",
        ),
        (
            'faults:\n  - {fault: link_down, at: 2 ms, link: "tor0:up1"}\n',
            "6: faults[0].at: 2 ms\n  allowed: before the run's time limit, 1 ms",
        ),
        (
            'faults:\n  - {fault: slow_port, at: 5 us, port: "tor0:up1", rate: 1 Gbps}\n'
            '  - {fault: slow_port, at: 9 us, port: "tor0:up1", rate: 2 Gbps}\n',
            "7: faults[1]: holds tor0:up1 -> agg0-1:down0 at 9 us, as faults[0] does\n"
            "  allowed: one fault of a kind on a port at a time",
        ),
        (
            "faults:\n  - {fault: link_dwn, at: 5 us}\n",
            "6: faults[0].fault: unknown fault 'link_dwn'\n"
            "  did you mean 'link_down'?\n  allowed: link_down, switch_down, flap, bit_errors, slow_port",
        ),
        (
            'faults:\n  - {fault: flap, at: 5 us, link: "tor0:up1", down: 5 us, count: 2, period: 4 us}\n',
            "6: faults[0].period: 4000 ns\n  allowed: above the time down, 5000 ns",
        ),
        ("convergence_delay: 0 ns\n", "5: convergence_delay: 0 ns\n  allowed: 1 to"),
    ],
    ids=["port", "switch", "time limit", "contradiction", "kind", "period", "delay"],
)
def test_a_flaw_is_told_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    """And with what is allowed, or the nearest name."""
    assert check(tmp_path, text).startswith(message)


def test_paths_follow_each_failure_and_repair(tmp_path: Path) -> None:
    """A flap is two epochs, each after the delay."""
    (tmp_path / "flap.yaml").write_text(
        HEAD + 'faults: [{fault: flap, at: 5 us, link: "tor0:up1", down: 4 us}]\nconvergence_delay: 100 us\n'
    )
    epochs = faulted_network(tmp_path / "flap.yaml").epochs
    assert [epoch.start_ps for epoch in epochs] == [0, 105_000_000, 109_000_000]


def test_a_delay_without_faults_is_warned_of(tmp_path: Path) -> None:
    """It would do nothing in silence."""
    (tmp_path / "idle.yaml").write_text(HEAD + "convergence_delay: 100 us\n")
    with pytest.warns(FabrictuneWarning, match="convergence_delay has no effect without `faults`"):
        assert len(faulted_network(tmp_path / "idle.yaml").epochs) == 1
