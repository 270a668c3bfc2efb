"""A few damaged inputs for each command that reads; `make fuzz` has a hundred thousand."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fuzz import driver
from tests.fuzz.doors import FILE, Door, make_doors
from tests.fuzz.samples import make_samples


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> list[Door]:
    real_data = os.environ.get("FABRICTUNE_REAL_DATA")
    return make_doors(make_samples(tmp_path_factory.mktemp("samples")), Path(real_data) if real_data else None)


def test_damaged_inputs_end_in_results_or_errors(doors: list[Door], tmp_path: Path) -> None:
    """No traceback, no hang, no process that ends otherwise, through every door."""
    for number, door in enumerate(doors):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        tally = driver.try_door(door, folder, inputs=range(3), seed=1)
        assert tally.faults == [], door.name
        assert tally.endings.total() == 3


def test_every_door_reads_a_file_that_is_whole(
    doors: list[Door], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Damage behind a refusal would not be met."""
    monkeypatch.setattr(driver, "damaged", lambda content, _: b"" if content == driver.EMPTY else content)

    def reads(door: Door, folder: Path) -> bool:
        folder.mkdir(parents=True)
        tally = driver.try_door(door, folder, inputs=range(1), seed=0)
        return bool({"result", "findings"} & tally.endings.keys())

    for number, door in enumerate(doors):
        tried = (
            reads(replace(door, files=[file]), tmp_path / f"{number}" / f"{place}")
            for place, file in enumerate(door.files)
        )
        assert any(tried), door.name


def fail(_: object) -> int:
    raise ValueError("of ours")


def die(_: object) -> int:
    os._exit(9)


@pytest.mark.parametrize(("command", "fault"), [(fail, "ValueError: 'of ours'"), (die, "ended the process with 9")])
def test_what_must_not_happen_is_a_fault(
    command: Callable[[object], int], fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A traceback, and the end of a process; the inputs behind it are tried all the same."""
    monkeypatch.setattr(driver, "run", command)
    (tmp_path / "nic.txt").write_text("rpg_ai_rate:5\n")
    (tmp_path / "here").mkdir()
    door = Door(name="test", words=["law", "import", FILE], files=[tmp_path / "nic.txt"])
    tally = driver.try_door(door, tmp_path / "here", inputs=range(2), seed=0)
    assert len(tally.faults) == 2
    assert all(fault in one for one in tally.faults)
