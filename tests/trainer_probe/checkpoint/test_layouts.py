"""A checkpoint of any layout and strategy holds each element once, and any other layout takes it up as it was."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
from safetensors import safe_open

from fabrictune.foundation.errors import CheckpointError
from fabrictune.trainer_probe.checkpoint.listing import find, newest
from fabrictune.trainer_probe.checkpoint.names import CheckpointId
from fabrictune.trainer_probe.checkpoint.reader import open_state
from fabrictune.trainer_probe.checkpoint.storages import open_storage
from fabrictune.trainer_probe.checkpoint.tier import Tier
from fabrictune.trainer_probe.state.train_state import join
from fabrictune.trainer_probe.training.input_pipeline import make_batches
from tests.trainer_probe.checkpoint.written import MIXTURE, MODEL, Numbered, recipe_of, states_of, whole, write

LAYOUTS: Mapping[str, tuple[Mapping[str, object], str]] = {
    "one process": ({"layout": {}}, "ddp"),
    "tp2 pp2 dp2 zero1": ({"layout": {"tp": 2, "pp": 2, "dp": 2}, "virtual": 2, "num_batches": 2}, "zero1"),
    "tp2 dp3 zero3": ({"layout": {"tp": 2, "dp": 3}}, "zero3"),
    "cp2 dp2 ddp": ({"layout": {"cp": 2, "dp": 2}}, "ddp"),
}
EXPERTS: Mapping[str, tuple[Mapping[str, object], str]] = {
    "tp2 dp4 ep2 ddp": ({"layout": {"tp": 2, "dp": 4, "ep": 2}}, "ddp"),
    "pp2 dp4 ep4 zero2": ({"layout": {"pp": 2, "dp": 4, "ep": 4}, "num_batches": 2}, "zero2"),
}
CASES = [
    *((first, second, "gpt") for first in LAYOUTS for second in LAYOUTS if first != second),
    *((first, second, "experts") for first in EXPERTS for second in EXPERTS if first != second),
]
ID = CheckpointId(step=3, generation=1)


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(make_batches(recipe_of({"layout": {}}, "ddp"), tmp_path_factory.mktemp("tokens")).spec.path)


@pytest.fixture(scope="module")
def written(tokens: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint of each layout, in a folder of its name."""
    place = tmp_path_factory.mktemp("written")
    for layouts, model in ((LAYOUTS, MODEL), (EXPERTS, MIXTURE)):
        for name, (degrees, strategy) in layouts.items():
            states = states_of(recipe_of(degrees, strategy, model), tokens, Numbered())
            reports = write(states, [Tier(storage=open_storage(str(place / name)))], ID)
            assert [report.cause for report in reports] == [""] * len(states)
    return place


@pytest.mark.parametrize(("first", "second", "kind"), CASES)
def test_another_layout_has_the_same_state_to_the_bit(
    tokens: Path, written: Path, first: str, second: str, kind: str
) -> None:
    """Every rank of the second reads the checkpoint of the first; all together are as numbered: 0 ulp."""
    layouts, model = (LAYOUTS, MODEL) if kind == "gpt" else (EXPERTS, MIXTURE)
    recipe = recipe_of(*layouts[second], model)
    _, source = open_state([open_storage(str(written / first))], ID)
    table = join(states_of(recipe, tokens, source))[1]
    expected = whole(recipe, Numbered())
    found = whole(recipe, table)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())


@pytest.mark.parametrize("name", [*LAYOUTS, *EXPERTS])
def test_each_element_is_written_once(written: Path, name: str) -> None:
    """By one of the ranks that hold it: as many elements as the model has, in each of three tensors, and no more."""
    manifest = find([open_storage(str(written / name))], ID).manifest
    num_elements = dict.fromkeys(("value", "first_moment", "second_moment"), 0)
    for file in manifest.files:
        with safe_open(written / name / str(ID) / file.name, framework="pt") as opened:
            assert sorted(opened.keys()) == sorted(entry.name for entry in file.entries)
        for entry in file.entries:
            num_elements[entry.tensor] += entry.num_elements
    assert set(num_elements.values()) == {sum(manifest.part_sizes.values())}


def test_nodes_memories_are_whole_without_one_node_of_two_replicas(tokens: Path, tmp_path: Path) -> None:
    """In ddp each node of a replica holds all; with the optimizer divided, a node less is a checkpoint less."""
    folders = [tmp_path / "a", tmp_path / "b"]
    storages = [open_storage(str(folder)) for folder in folders]
    tiers = [Tier(storage=storage, is_per_node=True) for storage in storages]
    for number, (strategy, is_whole) in enumerate((("ddp", True), ("zero1", False))):
        own = replace(ID, step=3 + number)
        states = states_of(recipe_of({"layout": {"dp": 2}}, strategy), tokens, Numbered())
        assert [report.outcome for report in write(states, tiers, own)] == ["saved", "saved"]
        assert newest(storages) == own
        assert (newest(storages[:1]) == own) == is_whole
        if not is_whole:
            with pytest.raises(CheckpointError, match=r"incomplete: \d+ parts of weights lack elements"):
                find(storages[:1], own)
