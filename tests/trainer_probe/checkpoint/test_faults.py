"""What goes wrong with a save or a checkpoint: nothing half looks whole, the training goes on, the damage is named."""

import json
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from fabrictune.foundation.errors import CheckpointError, UnavailableError
from fabrictune.trainer_probe.checkpoint import host_memory
from fabrictune.trainer_probe.checkpoint.checkpointer import Checkpointer
from fabrictune.trainer_probe.checkpoint.listing import candidates, newest
from fabrictune.trainer_probe.checkpoint.local_storage import LocalStorage
from fabrictune.trainer_probe.checkpoint.names import MANIFEST, CheckpointId
from fabrictune.trainer_probe.checkpoint.restoring import restore
from fabrictune.trainer_probe.checkpoint.retention import Retention
from fabrictune.trainer_probe.checkpoint.saves import SaveReport
from fabrictune.trainer_probe.checkpoint.storage import Content
from fabrictune.trainer_probe.checkpoint.storages import open_storage
from fabrictune.trainer_probe.checkpoint.tier import Tier
from fabrictune.trainer_probe.checkpoint.verification import verify
from fabrictune.trainer_probe.data.batches import Batches
from fabrictune.trainer_probe.training.hardware import device_of
from fabrictune.trainer_probe.training.input_pipeline import make_batches
from fabrictune.trainer_probe.training.loop import train
from fabrictune.trainer_probe.training.progress import Monitor, StepReport
from fabrictune.trainer_probe.training.section_timeouts import SectionTimeouts
from fabrictune.trainer_probe.training.training import Training
from tests.patience import patience
from tests.trainer_probe.checkpoint.written import Numbered, recipe_of, states_of, write
from tests.trainer_probe.optimizers.flat_models import comm_of_one
from tests.trainer_probe.training.alone import machine_of_one, small

CHANGES: dict[str, object] = {"schedule": {"peak": 0.02, "num_steps": 4}, "num_traced_steps": 1}
IMPATIENT = SectionTimeouts(first_save_s=0.3, min_save_s=0.3)


def run(
    folder: Path, tiers: list[Tier], *, num_steps: int = 4, **settings: Any
) -> tuple[list[SaveReport], list[float]]:
    """Train alone with a save after every step; returns what became of the saves, and the losses."""
    recipe = small({**CHANGES, "num_steps": num_steps})
    comm, saves, reports = comm_of_one(), list[SaveReport](), list[StepReport]()
    checkpointer = Checkpointer(comm, tiers, save_every=1, generation=1, on_report=saves.append, **settings)
    watch = Monitor(on_step=reports.append, is_stopped=lambda: False)
    train(recipe, comm, machine_of_one(recipe, folder), watch, device_of(recipe), hooks=[checkpointer.hook])
    assert checkpointer.close(patience(30))
    return saves, [report.loss for report in reports]


def outcomes(saves: list[SaveReport]) -> list[tuple[int, str]]:
    return sorted((save.step, save.outcome) for save in saves)


def flip(path: Path, place: int) -> None:
    """Change one bit of a file."""
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 512 KiB."""
    if os.geteuid() != 0:
        pytest.skip("a small file system needs root")
    place = tmp_path / "small"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "none", place], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("a small file system needs the right to mount")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def test_a_full_disk_fails_saves_and_not_the_training(tmp_path: Path, small_disk: Path) -> None:
    """ENOSPC with a file half written, which is removed; once there is room the next save is good."""
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(400 * 2**10))
    storage = open_storage(str(small_disk / "kept"))

    saves, losses = run(tmp_path, [Tier(storage=storage)], when_busy="wait")
    assert outcomes(saves) == [(step, "failed") for step in (1, 2, 3, 4)]
    assert {save.cause for save in saves} == {"OSError: [Errno 28] No space left on device"}
    assert candidates([storage]) == []
    assert losses == run(tmp_path, [])[1]
    ballast.unlink()
    saves, _ = run(tmp_path, [Tier(storage=storage, retention=Retention(num_last=1))], num_steps=1)
    assert outcomes(saves) == [(1, "saved")]


class Held(LocalStorage):
    """A folder whose writes wait for an event."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.go_on = threading.Event()

    def write(self, name: str, content: Content) -> int:
        self.go_on.wait()
        return super().write(name, content)


def test_saves_are_skipped_and_counted_while_earlier_ones_are_under_way(tmp_path: Path) -> None:
    """A storage that does not answer for four steps: one save is being written and one staged, two are skipped."""
    storage = Held(tmp_path / "kept")
    recipe = small(CHANGES)
    comm, saves = comm_of_one(), list[SaveReport]()
    checkpointer = Checkpointer(comm, [Tier(storage=storage)], save_every=1, generation=1, on_report=saves.append)
    watch = Monitor(on_step=lambda report: None, is_stopped=lambda: False)
    train(recipe, comm, machine_of_one(recipe, tmp_path), watch, device_of(recipe), hooks=[checkpointer.hook])
    assert outcomes(saves) == [(3, "skipped"), (4, "skipped")]
    assert saves[0].cause == "earlier saves are still under way on 1 ranks"
    storage.go_on.set()
    assert checkpointer.close(patience(30))
    assert outcomes(saves) == [(1, "saved"), (2, "saved"), (3, "skipped"), (4, "skipped")]


def test_memory_that_lacks_is_refused_with_what_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first step, and with the numbers."""
    monkeypatch.setattr(host_memory, "available_bytes", lambda: 2**20)
    with pytest.raises(UnavailableError, match=r"checkpoints: host memory: 1 MiB free\n  allowed: \d+ MiB: 2 copies"):
        run(tmp_path, [Tier(storage=open_storage(str(tmp_path / "kept")))], num_local_ranks=100)


def test_a_rank_that_dies_leaves_no_checkpoint(tmp_path: Path) -> None:
    """Rank 1 of two never writes: rank 0 gives up, names it, and removes its own half; the one before stays."""
    recipe = recipe_of({"layout": {"dp": 2}}, "zero1")
    states = states_of(recipe, Path(make_batches(recipe, tmp_path).spec.path), Numbered())
    storage = open_storage(str(tmp_path / "kept"))
    first, second = CheckpointId(step=3, generation=1), CheckpointId(step=4, generation=1)
    write(states, [Tier(storage=storage)], first)
    (report,) = write(states, [Tier(storage=storage)], second, ranks=[0], timeouts=IMPATIENT)
    assert report.cause == "TimeoutError: ranks that have not written their files: 1"
    assert storage.files(str(second)) == {}
    write(states, [Tier(storage=storage)], second, ranks=[1])  # late: its rank 0 has given up
    assert newest([storage]) == first
    assert len(storage.files(str(second))) == 2
    write(states, [Tier(storage=storage)], replace(second, step=5))
    assert storage.files(str(second)) == {}, "removed with the next good one"


def test_an_older_generation_is_fenced_out(tmp_path: Path) -> None:
    """Generation 2 went on from step 3; what generation 1 writes afterwards is refused, or does not count."""
    recipe = recipe_of({"layout": {}}, "ddp")
    states = states_of(recipe, Path(make_batches(recipe, tmp_path).spec.path), Numbered())
    storage = open_storage(str(tmp_path / "kept"))
    tier = [Tier(storage=storage)]
    write(states, tier, CheckpointId(step=3, generation=1))
    write(states, tier, CheckpointId(step=9, generation=1))  # of the moment before generation 2 is recorded
    write(states, tier, CheckpointId(step=6, generation=2), first_step=3)
    assert newest([storage]) == CheckpointId(step=6, generation=2)
    assert newest([storage], before_step=6) == CheckpointId(step=3, generation=1)
    (report,) = write(states, tier, CheckpointId(step=12, generation=1))
    assert report.cause == "FencedError: generation 2 has taken over from 1"
    assert "step-00000012.g1" not in storage.names()


@pytest.mark.parametrize("damage", ["data", "manifest", "cut short", "missing"])
def test_a_damaged_checkpoint_is_named_and_the_one_before_is_taken(tmp_path: Path, damage: str) -> None:
    """A bit of a piece or of the manifest, a file cut short or gone: step 3's is loaded instead."""
    place = tmp_path / "kept"
    storage = open_storage(str(place))
    run(tmp_path, [Tier(storage=storage)], when_busy="wait")
    data, manifest = (place / "step-00000004.g1" / name for name in ("rank-00000.safetensors", MANIFEST))
    if damage == "data":
        flip(data, -5)
    elif damage == "manifest":
        flip(manifest, 100)
    elif damage == "cut short":
        os.truncate(data, data.stat().st_size - 1)
    else:
        data.unlink()
    bad = CheckpointId(step=4, generation=1)
    found = verify([storage], bad)
    assert len(found.mistakes) == 1
    assert "step-00000004.g1/" in found.mistakes[0]
    assert verify([storage], replace(bad, step=3)).mistakes == ()
    recipe, said = small(CHANGES), list[str]()
    tokens = machine_of_one(recipe, tmp_path).tokens
    training = Training(recipe, comm_of_one(), device_of(recipe), batches=lambda: Batches(recipe.batches(tokens)))
    restored = restore(training, [storage], say=said.append)
    assert restored is not None
    assert (restored.id.step, training.step) == (3, 3)
    assert len(said) == 1
    assert said[0].startswith("step-00000004.g1 is passed over: ")
    if damage == "data":
        assert "rank-00000.safetensors: " in said[0]
        assert "damaged: its CRC32C is another" in said[0]
    for step in (1, 2, 3):
        (place / f"step-{step:08}.g1" / MANIFEST).unlink()
    with pytest.raises(CheckpointError, match=r"checkpoints: step-00000004\.g1 is passed over"):
        restore(training, [storage])


@pytest.mark.parametrize("lost", ["both", "one"])
def test_only_parts_in_memory_are_no_checkpoint(tmp_path: Path, lost: str) -> None:
    """Of two ranks one was killed before it had written, or its node went: the training begins anew, and says so."""
    recipe = recipe_of({"layout": {"tp": 2}}, "ddp")
    states = states_of(recipe, Path(make_batches(recipe, tmp_path).spec.path), Numbered())
    storage = open_storage(str(tmp_path / "kept"))
    write(states, [Tier(storage=storage, is_per_node=True)], CheckpointId(step=3, generation=1))
    for rank in (0, 1) if lost == "both" else (1,):
        (tmp_path / "kept" / "step-00000003.g1" / f"rank-{rank:05}.json").unlink()
    alone, said = recipe_of({"layout": {}}, "ddp"), list[str]()
    tokens = machine_of_one(alone, tmp_path).tokens
    training = Training(alone, comm_of_one(), device_of(alone), batches=lambda: Batches(alone.batches(tokens)))
    before = [piece.tensors["value"].clone() for piece in training.pieces()]
    assert restore(training, [storage], say=said.append) is None
    assert len(said) == 1
    after = [piece.tensors["value"] for piece in training.pieces()]
    assert all(map(torch.equal, before, after))


@pytest.mark.parametrize("damaged", ["memory", "storage"])
def test_memory_is_read_before_the_storage_and_each_makes_up_for_the_other(tmp_path: Path, damaged: str) -> None:
    """A flipped bit in one of two places costs no step, and is not even read in the storage."""
    recipe = recipe_of({"layout": {}}, "ddp")
    tokens = machine_of_one(recipe, tmp_path).tokens
    memory, storage = (open_storage(str(tmp_path / name)) for name in ("memory", "storage"))
    for tier in (Tier(storage=memory, is_per_node=True), Tier(storage=storage)):
        write(states_of(recipe, tokens, Numbered()), [tier], CheckpointId(step=3, generation=1))
    flip(tmp_path / damaged / "step-00000003.g1" / "rank-00000.safetensors", -5)
    training = Training(recipe, comm_of_one(), device_of(recipe), batches=lambda: Batches(recipe.batches(tokens)))
    said: list[str] = []
    restored = restore(training, [memory, storage], say=said.append)
    assert restored is not None
    assert (restored.id.step, restored.is_from_memory) == (3, damaged == "storage")
    assert ["CRC32C" in text for text in said] == [True] * (damaged == "memory")


def test_retention_keeps_the_last_and_every_mth(tmp_path: Path) -> None:
    """Of steps 1 to 6, the last two and those of every third step; a stranger's file stays with its folder."""
    storage = open_storage(str(tmp_path / "kept"))
    stranger = tmp_path / "kept" / "step-00000001.g1" / "notes.txt"
    stranger.parent.mkdir(parents=True)
    stranger.write_text("mine")
    run(
        tmp_path, [Tier(storage=storage, retention=Retention(num_last=2, every_steps=3))], num_steps=6, when_busy="wait"
    )
    assert [found.step for found in candidates([storage])] == [6, 5, 3, 1]
    assert storage.files("step-00000001.g1") == {"notes.txt": 4}
    assert newest([storage], before_step=3) is None


def test_a_manifest_says_what_the_checkpoint_holds(tmp_path: Path) -> None:
    """Step, head, layout, settings, generation, versions, files with sizes and checksums."""
    run(tmp_path, [Tier(storage=open_storage(str(tmp_path / "kept")))], num_steps=1)
    folder = tmp_path / "kept" / "step-00000001.g1"
    values: Mapping[str, Any] = json.loads((folder / MANIFEST).read_bytes())
    assert (values["step"], values["generation"], values["num_ranks"]) == (1, 1, 1)
    assert values["head"]["num_updates"] == 1
    assert values["head"]["settings"]["degrees.layout.tp"] == 1
    assert values["versions"].keys() == {"fabrictune", "torch"}
    (file,) = values["files"]
    assert file["num_bytes"] == (folder / file["name"]).stat().st_size
    assert all(len(entry) == 8 for entry in file["entries"])
