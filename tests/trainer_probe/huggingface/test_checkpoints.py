"""Hugging Face checkpoints: written from any layout, read into any, computed by a second implementation."""

import importlib.util
import json
import math
import random
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fabrictune.foundation.errors import InputError, RecordError
from fabrictune.trainer_probe.launcher.processes import launch
from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe
from fabrictune.trainer_probe.recipes.schema import Recipe

pytest.importorskip("torch")
pytest.importorskip("safetensors")

import torch
from safetensors.torch import load_file, save_file

from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.huggingface import writer
from fabrictune.trainer_probe.huggingface.blocks import blocks_of
from fabrictune.trainer_probe.huggingface.reader import Checkpoint
from fabrictune.trainer_probe.huggingface.writer import checkpoint_place, write_checkpoint
from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.spec import ModelSpec
from fabrictune.trainer_probe.state.pieces import VALUE, Piece
from fabrictune.trainer_probe.training.training import Training
from tests.patience import patience
from tests.trainer_probe.huggingface.plain_hf import logits_of
from tests.trainer_probe.model.plain_models import plain_loss
from tests.trainer_probe.optimizers.flat_models import comm_of_one

if TYPE_CHECKING:
    from fabrictune.collectives.startup.process_groups import Member

SHAPE: Mapping[str, Any] = {"width": 16, "depth": 4, "num_heads": 4, "vocabulary": 12, "sequence": 8}
GROUPED: Mapping[str, Any] = {**SHAPE, "num_key_value_heads": 2, "feed_forward_width": 12, "rotary_base": 500.0}
MODELS: Mapping[str, Mapping[str, Any]] = {
    "llama": {"family": "llama", **GROUPED},
    "mistral": {"family": "llama", **GROUPED, "window": 3},
    "mixtral": {"family": "moe", **GROUPED, "num_experts": 4, "capacity_factor": None, "balance_coefficient": 0.0},
    "gpt2": {"family": "gpt", **SHAPE, "block": "serial", "positions": "learned"},
}
ARCHITECTURES = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "mixtral": "MixtralForCausalLM",
    "gpt2": "GPT2LMHeadModel",
}
DEGREES: Mapping[str, Any] = {"layout": {"tp": 2, "pp": 2, "dp": 2}, "virtual": 2, "num_batches": 2}
EXPERT_DEGREES: Mapping[str, Any] = {**DEGREES, "layout": {"tp": 2, "pp": 2, "dp": 2, "ep": 2}}


def recipe_of(name: str, degrees: Mapping[str, Any], precision: str = "float64") -> Recipe:
    changes = {"model": dict(MODELS[name]), "degrees": dict(degrees), "precision": precision}
    return load_recipe(find_recipe("tiny"), changes)


def many_ranks(name: str) -> Recipe:
    return recipe_of(name, EXPERT_DEGREES if name == "mixtral" else DEGREES)


def make_training(recipe: Recipe, comm: Comm) -> Training:
    def no_batches() -> Any:
        raise AssertionError("no data here")

    return Training(recipe, comm, torch.device("cpu"), batches=no_batches)


def fill_with_random(training: Training, seed: int) -> None:
    """Overwrite all weights by normal numbers that depend on their place alone, gains and biases too."""

    class Random:
        def missing(self, *_: object) -> tuple[str, ...]:
            return ()

        def fill(self, piece: Piece, weight: Any, tp: int) -> None:
            generator = torch.Generator().manual_seed(seed + sum(map(ord, weight.name)))
            whole = torch.randn(weight.shape, generator=generator, dtype=torch.float64) * 0.3
            own = weight.local_part(whole, tp, piece.part).flatten()
            piece.tensors[VALUE].copy_(own[piece.begin : piece.end])

    training.load_values(Random())


def write_and_read(name: str, folder: Path, member: "Member") -> dict[str, NDArray[Any]]:
    """Write a checkpoint of this layout, and read it into another; returns what went in and what came out."""
    recipe = many_ranks(name)
    comm = Comm(recipe.degrees.layout, member)
    training = make_training(recipe, comm)
    fill_with_random(training, 1)
    pieces = training.pieces()
    write_checkpoint(recipe.model, pieces, comm, folder)
    again = make_training(recipe, Comm(recipe.degrees.layout, member))
    with Checkpoint(recipe.model, folder) as checkpoint:
        again.load_values(checkpoint)
    same = [
        torch.equal(piece.tensors[VALUE], other.tensors[VALUE])
        for piece, other in zip(pieces, again.pieces(), strict=True)
    ]
    return {"same": np.array(same)}


def write_alone(recipe: Recipe, folder: Path, seed: int = 1) -> Training:
    training = make_training(recipe, comm_of_one())
    fill_with_random(training, seed)
    write_checkpoint(recipe.model, training.pieces(), comm_of_one(), folder)
    return training


def whole_weights(recipe: Recipe, folder: Path) -> dict[str, torch.Tensor]:
    """Our weights, whole, read from a checkpoint."""
    found = {}
    with Checkpoint(recipe.model, folder) as checkpoint:
        for weight in ChunkSpec(model=recipe.model).weights():
            values = torch.full((math.prod(weight.shape),), math.nan, dtype=torch.float64)
            checkpoint.fill(Piece(weight=weight.name, part=0, begin=0, tensors={VALUE: values}), weight, 1)
            found[weight.name] = values.view(weight.shape)
    return found


def loss_of_theirs(folder: Path, tokens_BS: torch.Tensor, targets_BS: torch.Tensor) -> float:
    logits = logits_of(folder, tokens_BS)
    return float(torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets_BS.flatten(), reduction="sum"))


@pytest.fixture
def ids_BS() -> torch.Tensor:
    """Three samples and an id more."""
    return torch.randint(12, (3, 9), generator=torch.Generator().manual_seed(5))


@pytest.mark.parametrize("name", MODELS)
def test_their_forward_pass_has_our_loss(name: str, tmp_path: Path, ids_BS: torch.Tensor) -> None:
    """Our second implementation over our weights, and one of theirs over their tensors: rotation, groups, order."""
    recipe = recipe_of(name, {})
    write_alone(recipe, tmp_path / "weights")
    config = json.loads((tmp_path / "weights" / "config.json").read_text())
    assert config["architectures"] == [ARCHITECTURES[name]]
    ours = plain_loss(recipe.model, whole_weights(recipe, tmp_path / "weights"), ids_BS[:, :-1], ids_BS[:, 1:])[0]
    theirs = loss_of_theirs(tmp_path / "weights", ids_BS[:, :-1], ids_BS[:, 1:])
    assert float(ours) == pytest.approx(theirs, rel=1e-12)


@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="transformers is not installed")
@pytest.mark.parametrize("name", MODELS)
def test_transformers_has_our_loss(name: str, tmp_path: Path, ids_BS: torch.Tensor) -> None:
    """Their own classes, made from the folder by its architecture; what they save is read back the same."""
    transformers: Any = importlib.import_module("transformers")
    recipe = recipe_of(name, {})
    write_alone(recipe, tmp_path / "weights")
    model: Any = getattr(transformers, ARCHITECTURES[name]).from_pretrained(
        tmp_path / "weights",
        dtype=torch.float64,
        attn_implementation="eager",
        **({"experts_implementation": "eager"} if name == "mixtral" else {}),  # another has no double precision
    )
    logits = model(ids_BS[:, :-1]).logits
    theirs = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids_BS[:, 1:].flatten(), reduction="sum")
    weights = whole_weights(recipe, tmp_path / "weights")
    ours = plain_loss(recipe.model, weights, ids_BS[:, :-1], ids_BS[:, 1:])[0]
    assert float(ours) == pytest.approx(float(theirs), rel=1e-6)  # their rotation has angles in single precision
    model.save_pretrained(tmp_path / "theirs")
    for weight, values in whole_weights(recipe, tmp_path / "theirs").items():
        assert torch.equal(values, weights[weight])


@pytest.mark.parametrize("name", MODELS)
def test_eight_ranks_write_what_one_writes_and_read_it_back(name: str, tmp_path: Path) -> None:
    """tp 2, pp 2 in 2 chunks, dp 2, experts over dp: byte for byte one process' files, 0 ulp back on all ranks."""
    layout = many_ranks(name).degrees.layout
    found = launch(layout, partial(write_and_read, name, tmp_path / "many"), timeout_s=patience(120))
    assert all(rank["same"].all() and len(rank["same"]) > 2 for rank in found)
    write_alone(recipe_of(name, {}), tmp_path / "one")
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "many").iterdir())
    for file in names:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "many" / file).read_bytes()


@pytest.mark.parametrize("name", MODELS)
def test_large_models_are_files_of_a_size(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most 4,000 bytes each, or one tensor; the index names the file of each tensor, and the sum of bytes."""
    monkeypatch.setattr(writer, "MAX_FILE_BYTES", 4000)
    monkeypatch.setattr("fabrictune.trainer_probe.huggingface.reader.MAX_BYTES", 200)  # a few rows at a time
    recipe = recipe_of(name, {})
    training = write_alone(recipe, tmp_path / "weights")
    index = json.loads((tmp_path / "weights" / "model.safetensors.index.json").read_text())
    paths = sorted((tmp_path / "weights").glob("*.safetensors"))
    assert len(paths) > 3
    assert [path.name for path in paths] == [
        f"model-{n + 1:05}-of-{len(paths):05}.safetensors" for n in range(len(paths))
    ]
    sizes = []
    for path in paths:
        tensors = load_file(path)
        sizes.append(sum(tensor.numel() * 8 for tensor in tensors.values()))
        assert all(index["weight_map"][tensor] == path.name for tensor in tensors)
        assert sizes[-1] <= 4000 or len(tensors) == 1
    assert index["metadata"]["total_size"] == sum(sizes) == sum(8 * len(p.tensors[VALUE]) for p in training.pieces())
    again = make_training(recipe, comm_of_one())
    with Checkpoint(recipe.model, tmp_path / "weights") as checkpoint:
        again.load_values(checkpoint)
    for piece, other in zip(training.pieces(), again.pieces(), strict=True):
        assert torch.equal(piece.tensors[VALUE], other.tensors[VALUE])


@pytest.mark.parametrize("name", MODELS)
def test_blocks_cover_every_element_of_both_sides_once(name: str) -> None:
    """Each number of ours has one place in theirs, and the other way round."""
    model: ModelSpec = recipe_of(name, {}).model
    ours = {weight.name: np.zeros(weight.shape, int) for weight in ChunkSpec(model=model).weights()}
    theirs: dict[str, NDArray[Any]] = {}
    for block in blocks_of(model):
        ours[block.weight][tuple(slice(begin, end) for begin, end in block.box)] += 1
        box = tuple(slice(begin, end) for begin, end in block.their_box(block.box))
        theirs.setdefault(block.name, np.zeros(block.shape, int))[box] += 1
    assert all((count == 1).all() for count in (*ours.values(), *theirs.values()))


def edit(folder: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    (path,) = folder.glob("*.safetensors")
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)


def test_all_that_does_not_fit_is_refused_at_once(tmp_path: Path) -> None:
    """A configuration with another base, tied embeddings, a missing, an unknown, a cut and a quantized tensor."""
    recipe = recipe_of("llama", {})
    folder = tmp_path / "weights"
    write_alone(recipe, folder)

    def damage(tensors: dict[str, torch.Tensor]) -> None:
        del tensors["model.norm.weight"]
        tensors["model.layers.0.self_attn.q_proj.bias"] = torch.zeros(16)
        tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.zeros(2)
        tensors["lm_head.weight"] = tensors["lm_head.weight"][:11].contiguous()
        tensors["model.layers.1.mlp.up_proj.weight"] = torch.zeros(12, 16, dtype=torch.int8)

    edit(folder, damage)
    config = json.loads((folder / "config.json").read_text())
    del config["rope_theta"], config["rope_scaling"]
    scaled = {"rope_type": "llama3", "rope_theta": 500000.0}
    (folder / "config.json").write_text(
        json.dumps({**config, "tie_word_embeddings": True, "rope_parameters": scaled, "n": 1})
    )
    with pytest.raises(InputError) as raised:
        Checkpoint(recipe.model, folder)
    path = folder / "model-00001-of-00001.safetensors"
    next_step = "  next: change the recipe's model, or take another checkpoint"
    assert str(raised.value).splitlines() == [
        f"{folder / 'config.json'}: rope_theta: 500000.0",
        "  allowed: 500.0, as the recipe's model has it",
        next_step,
        f"{folder / 'config.json'}: rope_scaling: {scaled}",
        "  allowed: None, as the recipe's model has it",
        next_step,
        f"{folder / 'config.json'}: tie_word_embeddings: True",
        "  allowed: False, as the recipe's model has it",
        next_step,
        f"{folder}: lacks model.norm.weight",
        f"{folder}: model.layers.0.self_attn.q_proj.bias, which the recipe's model does not have",
        f"{path}: lm_head.weight: shape [11, 16]",
        "  allowed: [12, 16]",
        f"{path}: model.layers.1.mlp.up_proj.weight: precision I8",
        "  allowed: F64, F32, F16, BF16",
    ]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "config.json").unlink(), "config.json: no such file"),
        (lambda folder: (folder / "config.json").write_text("[1]"), r"config.json: \[1\]"),
        (lambda folder: (folder / "config.json").write_text("{"), "config.json: not readable"),
        (
            lambda folder: (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../b"}}'),
            r"index.json: '../b'\n  allowed: names of files beside it",
        ),
        (
            lambda folder: (folder / "model.safetensors.index.json").write_text('{"weight_map": [1]}'),
            "no weight_map of tensors and files",
        ),
        (
            lambda folder: (folder / "model-00001-of-00001.safetensors").write_bytes(b"\xff" * 64),
            "not readable as safetensors",
        ),
        (lambda folder: next(folder.glob("*.safetensors")).unlink(), "not readable as safetensors"),
        (lambda folder: shutil.rmtree(folder), "config.json: no such file"),
    ],
)
def test_a_damaged_checkpoint_is_an_error(tmp_path: Path, spoil: Callable[[Path], object], message: str) -> None:
    """No traceback, whatever is in the folder."""
    recipe = recipe_of("llama", {})
    write_alone(recipe, tmp_path / "weights")
    spoil(tmp_path / "weights")
    with pytest.raises(InputError, match=message):
        Checkpoint(recipe.model, tmp_path / "weights")


@pytest.mark.parametrize("seed", range(3))
def test_random_damage_is_an_error_or_is_read(tmp_path: Path, seed: int) -> None:
    """A hundred copies with bytes of one file overwritten, cut off or repeated: an InputError, or values."""
    recipe, chance = recipe_of("llama", {}), random.Random(seed)
    folder = tmp_path / "weights"
    write_alone(recipe, folder)
    contents = {path: path.read_bytes() for path in sorted(folder.iterdir())}
    num_refused = 0
    for _ in range(100):
        path = chance.choice(list(contents))
        content = bytearray(contents[path])
        place = chance.randrange(chance.choice([len(content), min(len(content), 3000)]))
        match chance.randrange(3):
            case 0:
                content[place : place + 4] = chance.randbytes(4)
            case 1:
                del content[place:]
            case 2:
                content[place:place] = content[: chance.randrange(2000)]
        path.write_bytes(content)
        try:
            assert whole_weights(recipe, folder).keys() == {
                weight.name for weight in ChunkSpec(model=recipe.model).weights()
            }
        except InputError:
            num_refused += 1
        path.write_bytes(contents[path])
    assert 20 < num_refused < 100  # bytes of values are values


def test_older_forms_are_read(tmp_path: Path) -> None:
    """One file without an index; bfloat16 widened; GPT-2's names without their beginning, and its masks."""
    recipe = recipe_of("gpt2", {})
    folder = tmp_path / "weights"
    write_alone(recipe, folder)
    expected = {name: values.bfloat16().double() for name, values in whole_weights(recipe, folder).items()}

    def older(tensors: dict[str, torch.Tensor]) -> None:
        for name in list(tensors):
            tensors[name.removeprefix("transformer.")] = tensors.pop(name).bfloat16()
        tensors["h.0.attn.bias"] = torch.ones(1, 1, 8, 8)

    edit(folder, older)
    (folder / "model.safetensors.index.json").unlink()
    next(folder.glob("*.safetensors")).rename(folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "n_inner": 64}))
    found = whole_weights(recipe, folder)
    assert all(torch.equal(found[name], values) for name, values in expected.items())


def test_a_model_without_a_counterpart_is_refused(tmp_path: Path) -> None:
    """The parallel block, rotary positions and a window of a GPT, all at once, before anything is trained."""
    model = {**MODELS["gpt2"], "block": "parallel", "positions": "rotary", "window": 3}
    recipe = load_recipe(find_recipe("tiny"), {"model": model, "degrees": {}})
    with pytest.raises(InputError) as raised:
        checkpoint_place(recipe.model, tmp_path / "weights")
    assert [line for line in str(raised.value).splitlines() if not line.startswith("  next")] == [
        "model.block: parallel",
        "  allowed: serial, as in GPT-2",
        "model.positions: rotary",
        "  allowed: learned, as in GPT-2",
        "model.window: 3",
        "  allowed: none, as in GPT-2",
    ]


def test_a_folder_of_somebody_s_stays(tmp_path: Path) -> None:
    """An export takes the place of an export, and of nothing else."""
    model = recipe_of("llama", {}).model
    ours, theirs, empty = tmp_path / "ours", tmp_path / "theirs", tmp_path / "empty"
    write_alone(recipe_of("llama", {}), ours)
    write_alone(recipe_of("llama", {}), ours, seed=2)
    empty.mkdir()
    assert checkpoint_place(model, empty) == empty
    shutil.copytree(ours, theirs)
    (theirs / "model.safetensors.index.json").write_text("{}")
    (ours / "tokenizer.json").write_text("{}")
    (tmp_path / "link").symlink_to(empty)
    for folder in (ours, theirs, tmp_path / "link"):
        with pytest.raises(RecordError, match="not an empty folder, and no weights written here"):
            checkpoint_place(model, folder)


def test_a_checkpoint_has_values_only(tmp_path: Path) -> None:
    """A whole state cannot be loaded from it: moments are missing."""
    recipe = recipe_of("llama", {})
    write_alone(recipe, tmp_path / "weights")
    training = make_training(recipe, comm_of_one())
    with Checkpoint(recipe.model, tmp_path / "weights") as checkpoint:
        piece = training.pieces()[0]
        weight = ChunkSpec(model=recipe.model).weights()[0]
        assert checkpoint.missing(piece, weight, 1) == (
            "embedding.weight: first_moment",
            "embedding.weight: second_moment",
        )
