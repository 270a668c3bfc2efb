"""From a recipe file, or the name of one that comes with the library, to a checked Recipe.

The model's key `preset` stands for the keys of a preset; those beside it count before them. Files in a recipe are named
from the recipe's own folder.
"""

from dataclasses import asdict
from pathlib import Path

from pydantic import ValidationError

from foundation.documents import Document, load_yaml
from foundation.errors import InputError, Mistake, nearest_name, quote
from foundation.settings.binding import bind
from foundation.settings.changing import Changes, change
from foundation.settings.mistakes import explain
from trainer_probe.model.presets import MODELS
from trainer_probe.recipes.schema import Recipe

MAX_RECIPE_BYTES = 2**20
SUFFIX = ".yaml"
FOLDER = Path(__file__).parent


def recipe_names() -> list[str]:
    """Return the names of the recipes that come with the library."""
    return sorted(path.stem for path in FOLDER.glob(f"*{SUFFIX}"))


def find_recipe(text: str) -> Path:
    """Return the file that a name or a path means; raises InputError for what is neither."""
    names = recipe_names()
    if text in names:
        return FOLDER / f"{text}{SUFFIX}"
    path = Path(text)
    if path.suffix or path.exists():
        return path
    raise InputError(
        Mistake(
            where=text,
            found="no recipe of this name, and no file",
            allowed=f"{', '.join(names)}, or a file",
            nearest=nearest_name(text, names),
        )
    )


def load_recipe(path: Path, changes: Changes | None = None, *, origin: str = "--set") -> Recipe:
    """Return the recipe in a YAML file, with changes made; raises InputError with every mistake found.

    `origin` says where the changes stand. No file that the recipe names is opened.
    """
    document = change(load_yaml(path, max_bytes=MAX_RECIPE_BYTES), changes or {}, origin=origin)
    mistakes = _expand_preset(document)
    try:
        recipe = bind(Recipe, document.tree, folder=path.parent)
    except ValidationError as error:
        raise InputError(*mistakes, *explain(error, document)) from None
    if mistakes:
        raise InputError(*mistakes)
    return recipe


def _expand_preset(document: Document) -> list[Mistake]:
    """Put a preset's keys where `model` leaves them out; returns what is wrong with the preset's name."""
    model = document.tree.get("model") if isinstance(document.tree, dict) else None
    if not isinstance(model, dict) or "preset" not in model:
        return []
    name = model.pop("preset")
    if name not in MODELS:
        return [
            Mistake(
                where=document.where("model", "preset"),
                found=f"unknown preset {quote(str(name))}",
                allowed=", ".join(MODELS),
                nearest=nearest_name(str(name), MODELS),
            )
        ]
    document.tree["model"] = {**asdict(MODELS[name]), **model}
    return []
