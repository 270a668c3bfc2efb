"""Token data of a node, prepared once and shared by its ranks and by all generations."""

import hashlib
import json
from pathlib import Path

from fabrictune.foundation.output_files import locked
from fabrictune.trainer_probe.recipes.schema import Recipe, TokenSource
from fabrictune.trainer_probe.training.input_pipeline import make_batches

_DONE = "complete"


def prepare_tokens(recipe: Recipe, folder: Path) -> Path:
    """Return the token file of a recipe's data; the first rank of a node that asks makes it in `folder`.

    Raises TokenFileError as `make_batches` does.
    """
    if isinstance(recipe.data.spec, TokenSource):
        return Path(make_batches(recipe, folder).spec.path)
    own = folder / _digest(recipe)
    own.mkdir(parents=True, exist_ok=True)
    with locked(own):
        if not (own / _DONE).exists():
            make_batches(recipe, own)
            (own / _DONE).touch()
    return own / "tokens"


def _digest(recipe: Recipe) -> str:
    """Return what the content of the data follows from, as a short name."""
    settings = {name: value for name, value in recipe.settings().items() if name.startswith(("data.", "model.vocab"))}
    spec = {name: str(value) for name, value in vars(recipe.data.spec).items()}  # with the folders of files
    return hashlib.sha256(json.dumps([settings, spec, recipe.seed], sort_keys=True).encode()).hexdigest()[:16]
