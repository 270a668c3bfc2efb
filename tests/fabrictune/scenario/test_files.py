"""Scenario files with mistakes, and what is said of them."""

from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.errors import ScenarioError
from fabrictune.scenario.files import load_scenario

GOLDEN = Path(__file__).parents[2] / "golden" / "fabrictune" / "scenarios"


@pytest.mark.parametrize("name", sorted(path.stem for path in GOLDEN.glob("*.txt")))
def test_a_broken_scenario_is_reported_word_for_word(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every mistake of the file stands in the message with its line, and nothing is written."""
    monkeypatch.chdir(GOLDEN)
    code = run(["sim", "run", f"{name}.yaml"])
    printed = capsys.readouterr()
    assert (code, printed.out, printed.err) == (2, "", Path(f"{name}.txt").read_text())


def test_a_file_is_relative_to_the_scenario_that_names_it(tmp_path: Path) -> None:
    """A scenario in another folder finds its topology beside it, wherever it is run from."""
    (tmp_path / "lab").mkdir()
    path = tmp_path / "lab" / "scenario.yaml"
    path.write_text("name: lab\nfabric: {file: ./lab.clab.yml}\ntraffic: {workload: permutation, message: 1 MB}\n")
    assert load_scenario(path).fabric.spec.file == tmp_path / "lab" / "lab.clab.yml"


@pytest.mark.parametrize("text", ["- a list", "just text", "5"])
def test_a_file_without_keys_is_no_scenario(text: str, tmp_path: Path) -> None:
    """The top of a scenario is a mapping; anything else is one mistake."""
    path = tmp_path / "odd.yaml"
    path.write_text(text)
    with pytest.raises(ScenarioError) as raised:
        load_scenario(path)
    assert [
        mistake.found.endswith("where a mapping of keys to values is needed") for mistake in raised.value.mistakes
    ] == [True]


def test_many_mistakes_are_told_as_a_hundred_and_their_number(tmp_path: Path) -> None:
    """60,000 unknown keys took 14 s and as many lines; fabric and traffic are missing, too."""
    path = tmp_path / "odd.yaml"
    path.write_text("name: odd\n" + "".join(f"key{number}: 1\n" for number in range(5_000)))
    with pytest.raises(ScenarioError) as raised:
        load_scenario(path)
    assert len(raised.value.mistakes) == 5_002
    assert str(raised.value).count(": unknown key 'key") == 98
    assert str(raised.value).endswith("\nand 4,902 more mistakes, 5,002 in all")


@pytest.mark.parametrize(("seed", "is_right"), [(10**18, True), (2**63 - 1, True), (2**63, False)])
def test_a_seed_is_any_number_of_63_bits(seed: int, is_right: bool, tmp_path: Path) -> None:
    """Digits were counted, and 10**18 was text."""
    path = tmp_path / "seed.yaml"
    path.write_text(
        f"name: seed\nseed: {seed}\nfabric: {{builder: fat_tree}}\ntraffic: {{workload: permutation, message: 1 MB}}\n"
    )
    if is_right:
        assert load_scenario(path).seed == seed
    else:
        with pytest.raises(ScenarioError, match="seed: '9223372036854775808' where a whole number is needed"):
            load_scenario(path)


def test_defaults_are_those_of_the_rooms(tmp_path: Path) -> None:
    """What a file leaves out is what the spec's own room says: no law, MTU 4,096 B."""
    path = tmp_path / "short.yaml"
    path.write_text("name: short\nfabric: {builder: fat_tree}\ntraffic: {workload: permutation, message: 1 MB}\n")
    scenario = load_scenario(path)
    assert (scenario.law.name, scenario.packet_config().mtu_bytes, scenario.seed, scenario.probe) == (
        "none",
        4096,
        0,
        None,
    )
