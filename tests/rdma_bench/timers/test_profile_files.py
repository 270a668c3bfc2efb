"""Timer profiles as files: what is written is read again, and what is wrong is said at once."""

from dataclasses import replace
from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.rdma_bench.timers.profile_files import find_profile, read_profile, write_profile
from fabrictune.rdma_bench.timers.profiles import KNOWN_PROFILES, FittedInterval

PUBLISHED = Path(__file__).parent / "published"


@pytest.mark.parametrize("name", list(KNOWN_PROFILES))
def test_what_is_written_is_read_again(name: str, tmp_path: Path) -> None:
    """With the intervals of a fit, which no published profile has."""
    interval = FittedInterval(parameter="interval_multiplier", low=0.995, high=1.012)
    profile = replace(KNOWN_PROFILES[name], intervals=(interval,))
    assert read_profile(write_profile(profile, tmp_path / "nic.json")) == profile


@pytest.mark.parametrize("name", list(KNOWN_PROFILES))
def test_a_profile_is_written_as_the_file_in_published(name: str, tmp_path: Path) -> None:
    """No number of a source changes unnoticed, and neither does the form of a file."""
    written = write_profile(KNOWN_PROFILES[name], tmp_path / "nic.json")
    assert written.read_text() == (PUBLISHED / f"{name}.json").read_text()


def test_a_profile_may_be_written_by_hand(tmp_path: Path) -> None:
    """In YAML, with units."""
    path = tmp_path / "nic.yaml"
    path.write_text(
        "name: my-nic\nsource: our trials\nconfidence: measured\n"
        "timers: {floor_exponent: 12, interval_multiplier: 1.5, early: [4 ms, 20 ms]}\n"
    )
    profile = read_profile(path)
    assert (profile.timers.floor_exponent, profile.timers.early_ns) == (12, (4_000_000, 20_000_000))
    assert find_profile(str(path), where="--profile") == profile


def test_every_mistake_of_a_file_is_named_at_once(tmp_path: Path) -> None:
    """A missing key, a word that is none of two, a time without its unit, a floor beyond the field."""
    path = tmp_path / "nic.yaml"
    path.write_text("name: my-nic\nconfidence: guessed\ntimers:\n  early: [4]\n")
    with pytest.raises(InputError) as raised:
        read_profile(path)
    assert [(one.where, one.found) for one in raised.value.mistakes] == [
        (f"{path}:1: source", "missing"),
        (f"{path}:2: confidence", "'guessed'"),
        (f"{path}:4: timers.early[0]", "'4': a duration needs its unit"),
    ]
    path.write_text("name: a\nsource: b\nconfidence: measured\ntimers: {floor_exponent: 40}\n")
    with pytest.raises(InputError, match=r"nic.yaml:4: timers.floor_exponent: 40\n  allowed: 0 to 31"):
        read_profile(path)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A folder that is not there."""
    with pytest.raises(InputError, match=r"missing/nic.json: cannot be written \(No such file or directory\)"):
        write_profile(KNOWN_PROFILES["ibta"], tmp_path / "missing" / "nic.json")


def test_an_unknown_name_is_guessed_at() -> None:
    """A name without dot or slash is one of the known."""
    with pytest.raises(InputError, match=r"--profile: unknown profile 'conectx-6'\n  did you mean 'connectx-6'"):
        find_profile("conectx-6", where="--profile")


def test_a_name_with_a_dot_or_a_slash_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Either is enough."""
    profile = KNOWN_PROFILES["ibta"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nics").mkdir()
    for path in (Path("nic.json"), Path("nics/mine")):
        write_profile(profile, path)
        assert find_profile(str(path), where="--profile") == profile
    assert find_profile("ibta", where="--profile") is profile


def test_a_profile_has_up_to_64_kibibytes(tmp_path: Path) -> None:
    """It is a page of numbers."""
    path = write_profile(KNOWN_PROFILES["ibta"], tmp_path / "nic.json")
    text = path.read_text()
    path.write_text(text + " " * (2**16 - len(text)))
    assert read_profile(path) == KNOWN_PROFILES["ibta"]
    path.write_text(text + " " * (2**16 + 1 - len(text)))
    with pytest.raises(InputError, match=str(path)):
        read_profile(path)
