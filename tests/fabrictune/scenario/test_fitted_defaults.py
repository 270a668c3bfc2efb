"""Defaults of law and switches that a scenario leaves to the link."""

from pathlib import Path

import pytest

from fabrictune.cc.laws import LAWS
from fabrictune.foundation.errors import InputError, ScenarioError
from fabrictune.scenario.compilation import CompiledScenario, assemble, compile_scenario
from fabrictune.scenario.composition import compose
from fabrictune.scenario.files import load_scenario
from fabrictune.scenario.laws import describe_parameters

LAW_FILE = (
    "from fabrictune.cc.interface import Parameter, Status\n"
    "from fabrictune.cc.link_rules import of_rate\n"
    "STEP = of_rate(1e6, 10e9, source='a paper')\n"
    "PARAMETERS = (Parameter(name='step_bps', default=1e6, low=1.0, high=1e12, meaning='step', rule=STEP),)\n"
    "STATE = ()\n"
    "def on_start(params, flow, now_ps): return Status.OK\n"
)


def write(folder: Path, rest: str) -> Path:
    path = folder / "scenario.yaml"
    path.write_text(
        "name: test\nfabric: {builder: fat_tree, radix: 4, link_rate: 400 Gbps}\n"
        f"traffic: {{workload: permutation, message: 1 MB}}\n{rest}"
    )
    return path


def compiled(folder: Path, rest: str) -> CompiledScenario:
    return compile_scenario(load_scenario(write(folder, rest), trust_code=True))


def parameters(scenario: CompiledScenario) -> dict[str, float]:
    assert scenario.law
    return {name: scenario.law.params[name].item() for name in scenario.law.params.dtype.names or ()}


def test_what_is_not_set_follows_the_link_and_what_is_set_stays(tmp_path: Path) -> None:
    """At 400 Gbps 400 Mbps and 2 Gbps; `rate_timer` has no rule and keeps its default."""
    given = parameters(compiled(tmp_path, "law: {name: dcqcn, parameters: {additive_increase: 40 Mbps}}\n"))
    assert (given["additive_increase_bps"], given["hyper_increase_bps"]) == (40e6, 2e9)
    assert given["rate_timer_ps"] == 55e6


@pytest.mark.parametrize("name", LAWS)
def test_the_paper_s_own_numbers_stay_selectable(tmp_path: Path, name: str) -> None:
    """`defaults: paper` gives every parameter the default that its module has; a law without rules has no such key."""
    own = {one.name: one.default for one in LAWS[name].PARAMETERS}
    if any(one.rule for one in LAWS[name].PARAMETERS):
        assert parameters(compiled(tmp_path, f"law: {{name: {name}, defaults: paper}}\n")) == own
        return
    with pytest.raises(ScenarioError, match="unknown key 'defaults'"):
        load_scenario(write(tmp_path, f"law: {{name: {name}, defaults: paper}}\n"))


def test_hpcc_gets_the_fabric_s_round_trip(tmp_path: Path) -> None:
    """Six frames of 4,220 B and six of 128 B at 20 ps a byte, and twelve cables of 1 us: 12.52 us, as in the paper."""
    scenario = compiled(tmp_path, "law: hpcc\n")
    assert parameters(scenario)["network_rtt_ps"] == 13_000_000
    assert any("network_rtt 13 us: the next whole us above" in note for note in scenario.notes)


def test_a_law_s_own_marking_is_used(tmp_path: Path) -> None:
    """DCTCP's step; a law that reads no marks has the standard curve, and no note of it."""
    kmin_bytes, kmax_bytes, _ = compiled(tmp_path, "law: dctcp\n").config.ecn.curve
    assert kmax_bytes == kmin_bytes + 1
    swift = compiled(tmp_path, "law: swift\n")
    assert swift.config.ecn.kmax_bytes == 4 * swift.config.ecn.kmin_bytes
    assert not any("engine.ecn" in note for note in swift.notes)
    assert compiled(tmp_path, "law: none\n").derived == ()


def test_a_law_outside_the_project_may_have_rules(tmp_path: Path) -> None:
    """1 Mbps of 10 Gbps is 40 Mbps of 400."""
    file = tmp_path / "steady.py"
    file.write_text(LAW_FILE)
    assert parameters(compiled(tmp_path, f"law: {file}\n")) == {"step_bps": 40e6}
    assert parameters(compiled(tmp_path, f"law: {{file: {file}, defaults: paper}}\n")) == {"step_bps": 1e6}


def test_a_kmin_above_the_kmax_of_the_link_has_its_line(tmp_path: Path) -> None:
    """A check, which compiles no law, refuses it too."""
    path = write(tmp_path, "engine: {ecn: {kmin: 5 MB}}\n")
    with pytest.raises(InputError) as refused:
        assemble(compose(load_scenario(path)), law=None)
    assert str(refused.value).startswith(f"{path}:4: engine.ecn.kmax: ")
    assert "allowed: above 5000000, up to" in str(refused.value)


def test_law_show_has_the_rule_and_the_paper_s_number() -> None:
    """The default of such a parameter is no number."""
    (step,) = [one for one in describe_parameters(LAWS["timely"]) if one["key"] == "additive_increase"]
    assert step["default"] == "by the link"
    assert step["meaning"] == (
        "delta: step of a rise; by default in proportion to the NICs' rate from 10 Gbps; the paper's own: 10 Mbps"
    )
