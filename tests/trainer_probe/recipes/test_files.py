"""Recipes from files: presets, changes, and every mistake at once."""

import json
from pathlib import Path
from typing import get_args

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.trainer_probe.data.batches import BatchSpec
from fabrictune.trainer_probe.model.llama import LlamaSpec
from fabrictune.trainer_probe.model.table import PRESETS
from fabrictune.trainer_probe.policies import POLICIES
from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe, recipe_names
from fabrictune.trainer_probe.recipes.schema import Overlap, TextSource

TINY = find_recipe("tiny")


@pytest.mark.parametrize("name", recipe_names())
def test_the_library_reads_by_name(name: str) -> None:
    """Each file is a recipe of its own name."""
    assert load_recipe(find_recipe(name)).name == name


def test_published_layouts_have_the_published_ranks() -> None:
    """175B: 8 * 8 * 192 = 12,288 ranks and 192 * 32 = 6,144 samples a step; 530B: 8 * 35 * 40 = 11,200 ranks."""
    large, larger = load_recipe(find_recipe("175b")), load_recipe(find_recipe("530b"))
    assert large.degrees.layout.world_size == 12_288
    assert large.degrees.samples_per_step == 6_144
    assert larger.degrees.layout.world_size == 11_200


def test_keys_beside_a_preset_count_before_it(tmp_path: Path) -> None:
    """Width and depth are the preset's, the window is not."""
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\nmodel: {window: 8, preset: tiny}\n")
    model = load_recipe(path).model
    assert (model.width, model.depth, model.window) == (PRESETS["tiny"].width, PRESETS["tiny"].depth, 8)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_chooses_its_family(name: str, tmp_path: Path) -> None:
    """Without the key `family`, and the record names both the family and its keys."""
    path = tmp_path / "mine.yaml"
    path.write_text(f"name: mine\nmodel: {{preset: {name}}}\n")
    recipe = load_recipe(path)
    assert recipe.model == PRESETS[name]
    assert recipe.settings()["model.family"] == PRESETS[name].family


def test_a_family_has_its_own_keys(tmp_path: Path) -> None:
    """`block` is a GPT's: refused for another family with that one's keys, not ignored."""
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\nmodel:\n  family: llama\n  rotary_base: 5.0e+5\n")
    assert load_recipe(path).model == LlamaSpec(rotary_base=500_000.0)
    with pytest.raises(InputError) as raised:
        load_recipe(path, {"model.block": "serial"})
    assert str(raised.value).startswith("--set: model.block: unknown key 'block'")
    assert "allowed: family, preset, width," in str(raised.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"model.family": "lama"},
            "--set: model.family: unknown family 'lama'\n  did you mean 'llama'?\n  allowed: gpt, llama, moe",
        ),
        (
            {"model.family": "llama"},
            "--set: model.family: 'llama'\n  allowed: gpt, which the preset 'tiny' is of\n"
            "  next: leave out 'family', or 'preset'",
        ),
    ],
)
def test_a_wrong_family_is_refused(changes: dict[str, object], message: str, tmp_path: Path) -> None:
    """An unknown one, and one that a preset is not of."""
    path = tmp_path / "mine.yaml"
    path.write_text(f"name: mine\nmodel: {{{'preset: tiny' if changes['model.family'] == 'llama' else ''}}}\n")
    with pytest.raises(InputError) as raised:
        load_recipe(path, changes)
    assert str(raised.value) == message


def test_files_are_named_from_the_recipes_folder(tmp_path: Path) -> None:
    """Wherever the command runs."""
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\ndata: {source: text, paths: [a.txt, b.txt]}\n")
    assert load_recipe(path).data.spec == TextSource(paths=(tmp_path / "a.txt", tmp_path / "b.txt"))


def test_settings_name_no_folders(tmp_path: Path) -> None:
    """Machines keep their files in different places, and still run the same recipe."""
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.yaml").write_text("name: mine\ndata: {source: tokens, path: some.tokens}\n")
    here, there = (load_recipe(tmp_path / folder / "mine.yaml") for folder in ("here", "there"))
    assert here != there
    assert here.settings() == there.settings()
    assert here.settings()["data.spec.path"] == "some.tokens"
    assert load_recipe(TINY, {"degrees.batch_size": 1}).settings() != load_recipe(TINY).settings()


def test_settings_are_json_values() -> None:
    """Also where gradients are not clipped, which no number of JSON's says."""
    recipe = load_recipe(TINY, {"optimizer.max_gradient_norm": float("inf")})
    assert json.loads(json.dumps(recipe.settings(), allow_nan=False))["optimizer.max_gradient_norm"] == "inf"


def test_batches_are_those_of_the_step() -> None:
    """dp 2 times 4 micro-batches of 2 samples."""
    expected = BatchSpec(path="some", sequence_length=64, batch_size=16, vocabulary_size=258, num_replicas=2)
    assert load_recipe(TINY).batches(Path("some")) == expected


def test_names_are_those_of_the_tables() -> None:
    """Of overlap policies."""
    assert get_args(Overlap) == tuple(POLICIES)


def test_precision_follows_the_device() -> None:
    """bfloat16 where there are products for it, unless the recipe says otherwise."""
    assert load_recipe(TINY).precision_name == "float32"
    assert load_recipe(TINY, {"device": "cuda"}).precision_name == "bfloat16"
    assert load_recipe(TINY, {"device": "cuda", "precision": "float16"}).precision_name == "float16"


@pytest.mark.parametrize(
    ("changes", "messages"),
    [
        (
            {"model.preset": "tin", "optimzer": {}, "model.block": "serail"},
            [
                f"--set: model.preset: unknown preset 'tin'\n  did you mean 'tiny'?\n  allowed: {', '.join(PRESETS)}",
                "--set: optimzer: unknown key 'optimzer'\n  did you mean 'optimizer'?\n",
                "--set: model.block: 'serail'\n  did you mean 'serial'?\n  allowed: serial, parallel",
            ],
        ),
        (
            {"degrees.layout.tp": 3, "degrees.virtual": 3, "degrees.batch_size": 0},
            [
                f"{TINY}:3: model.num_heads: 4\n  allowed: a multiple of 3, tp 3",
                f"{TINY}:3: model.depth: 4\n  allowed: a multiple of 6, pp 2 times virtual 3",
                "--set: degrees.batch_size: 0\n  allowed: 1 or more",
            ],
        ),
        (
            {"model.window": 65},
            [
                "--set: model.window: 65\n  allowed: at most the sequence, 64\n  next: leave it out for full attention",
            ],
        ),
        ({"model.prest": "tiny"}, ["--set: model.prest: unknown key 'prest'\n  did you mean 'preset'?\n"]),
        ({"num_steps": 0}, ["--set: num_steps: 0\n  allowed: 1 or more"]),
        (
            {"data": {"source": "txt"}},
            ["--set: data.source: unknown source 'txt'\n  did you mean 'text'?\n  allowed: tokens, text, synthetic"],
        ),
    ],
)
def test_every_mistake_is_told_at_its_place(changes: dict[str, object], messages: list[str]) -> None:
    """Of the file by its line, of a change by where that stands."""
    with pytest.raises(InputError) as raised:
        load_recipe(TINY, changes)
    assert all(message in str(raised.value) for message in messages), str(raised.value)


def test_an_unknown_name_is_guessed() -> None:
    """A text without a suffix that is no file is meant as a name."""
    with pytest.raises(InputError) as raised:
        find_recipe("tini")
    assert str(raised.value) == (
        "tini: no recipe of this name, and no file\n  did you mean 'tiny'?\n"
        "  allowed: 175b, 405b, 530b, 671b, single-gpu, tiny, or a file"
    )
