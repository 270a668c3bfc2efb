"""Manifests that are damaged, or made to mislead, are refused by name; nothing else is raised."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from fabrictune.foundation.errors import CheckpointError
from fabrictune.trainer_probe.checkpoint.manifest import Manifest, checksum, uncovered
from fabrictune.trainer_probe.checkpoint.names import MANIFEST, CheckpointId
from fabrictune.trainer_probe.checkpoint.storages import open_storage
from fabrictune.trainer_probe.checkpoint.tier import Tier
from fabrictune.trainer_probe.training.input_pipeline import make_batches
from tests.trainer_probe.checkpoint.written import Numbered, recipe_of, states_of, write

LIES: tuple[object, ...] = (None, -1, True, "../../secret", 1.5, [], {})


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("kept")
    recipe = recipe_of({"layout": {}}, "ddp")
    states = states_of(recipe, Path(make_batches(recipe, folder).spec.path), Numbered())
    write(states, [Tier(storage=open_storage(str(folder)))], CheckpointId(step=3, generation=1))
    return (folder / "step-00000003.g1" / MANIFEST).read_bytes()


def test_a_manifest_comes_back_as_it_was(content: bytes) -> None:
    """And covers all elements, which it no longer does without one of its entries."""
    manifest = Manifest.from_bytes(content, "here")
    assert manifest.to_bytes() == content
    assert uncovered(manifest) == []


def test_any_damage_is_a_checkpoint_error(content: bytes) -> None:
    """Three hundred of flipped bits, cuts and repeated parts."""
    stream = random.Random(1)
    for _ in range(300):
        damaged = bytearray(content)
        place = stream.randrange(len(damaged))
        match stream.randrange(3):
            case 0:
                damaged[place] ^= 1 << stream.randrange(8)
            case 1:
                del damaged[place:]
            case 2:
                damaged[place:place] = damaged[place : place + 100]
        with pytest.raises(CheckpointError, match=r"^here: "):
            Manifest.from_bytes(bytes(damaged), "here")


def sealed(values: dict[str, Any]) -> bytes:
    """The content with a checksum that fits."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":")).encode()
    return json.dumps({**values, "crc32c": checksum(text)}, sort_keys=True, separators=(",", ":")).encode()


@pytest.mark.parametrize("lie", LIES, ids=str)
def test_values_of_another_kind_are_refused_behind_a_good_checksum(content: bytes, lie: object) -> None:
    """Among them a file's name that leads out of the folder."""
    values = {key: value for key, value in json.loads(content).items() if key != "crc32c"}
    assert Manifest.from_bytes(sealed(values), "here").step == 3
    (file,) = values["files"]
    lying = [{**values, key: lie} for key in ("step", "generation", "num_ranks", "part_sizes", "head", "files")]
    lying += [{**values, "files": [{**file, key: lie}]} for key in ("name", "num_bytes", "data_begin", "entries")]
    first = file["entries"][0]
    for place in (1, 2, 3, 5, 6, 7):
        entries = [[*first[:place], lie, *first[place + 1 :]], *file["entries"][1:]]
        lying.append({**values, "files": [{**file, "entries": entries}]})
    for number, other in enumerate(lying):
        if lie in ([], {}) and number in (3, 5, 9):
            continue  # no parts, no files, no entries: of the right kind
        with pytest.raises(CheckpointError, match=r"^here: not a manifest"):
            Manifest.from_bytes(sealed(other), "here")
