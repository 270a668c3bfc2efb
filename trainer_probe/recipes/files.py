"""Recipe files, and bundled recipes by name, read and checked.

Paths in a recipe are relative to its folder.
"""

from pathlib import Path

from pydantic import ValidationError

from fabrictune.foundation.documents import load_yaml
from fabrictune.foundation.errors import InputError, Mistake, nearest_name
from fabrictune.foundation.settings.binding import bind
from fabrictune.foundation.settings.changes import Changes, change
from fabrictune.foundation.settings.mistakes import to_mistakes
from fabrictune.trainer_probe.recipes.schema import Recipe

MAX_RECIPE_BYTES = 2**20
SUFFIX = ".yaml"
FOLDER = Path(__file__).parent


def recipe_names() -> list[str]:
    """Return the names of the bundled recipes."""
    return sorted(path.stem for path in FOLDER.glob(f"*{SUFFIX}"))


def find_recipe(text: str) -> Path:
    """Return the file of a recipe's name or path; raises InputError for what is neither."""
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

    `origin` is the source of the changes in error messages. No file that the recipe names is opened.
    """
    document = change(load_yaml(path, max_bytes=MAX_RECIPE_BYTES), changes or {}, origin=origin)
    try:
        return bind(Recipe, document.tree, folder=path.parent)
    except ValidationError as error:
        raise InputError(*to_mistakes(error, document)) from None
