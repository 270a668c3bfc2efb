"""From what a recipe calls its data to a token file that fits the recipe's model."""

from pathlib import Path

import numpy as np

from fabrictune.foundation.seeds import stream
from fabrictune.trainer_probe.data.batches import Batches
from fabrictune.trainer_probe.data.token_file import TokenWriter
from fabrictune.trainer_probe.data.tokenization import ByteTokenizer, SubwordTokenizer, tokenize
from fabrictune.trainer_probe.recipes.schema import Recipe, SyntheticSource, TextSource, TokenSource

_BLOCK_TOKENS = 2**20
_ZIPF_EXPONENT = 1.0  # the n-th most frequent id is as frequent as the first over n


def make_tokens(recipe: Recipe, folder: Path) -> Batches:
    """Return the batches of the recipe's data, as a token file in `folder` unless it is one.

    Raises TokenFileError where texts or token files can't be read, are cut short, or don't fit the model.
    """
    path = folder / "tokens"
    match recipe.data.spec:
        case TokenSource(path=given):
            path = given
        case TextSource(paths=texts, tokenizer=vocabulary):
            tokenize(texts, path, SubwordTokenizer(vocabulary) if vocabulary else ByteTokenizer())
        case SyntheticSource(num_tokens=num_tokens):
            _draw_tokens(path, num_tokens, recipe.model.vocabulary, recipe.seed)
    return Batches(recipe.batches(path))


def _draw_tokens(path: Path, num_tokens: int, vocabulary: int, seed: int) -> None:
    """Write ids in Zipf's proportions."""
    weight_V = np.arange(1, vocabulary + 1, dtype=np.float64) ** -_ZIPF_EXPONENT
    bound_V = np.cumsum(weight_V / weight_V.sum())
    random = stream(seed, "synthetic tokens")
    with TokenWriter(path, vocabulary) as writer:
        for first in range(0, num_tokens, _BLOCK_TOKENS):
            drawn_T = random.random(min(_BLOCK_TOKENS, num_tokens - first))
            writer.append(np.minimum(np.searchsorted(bound_V, drawn_T), vocabulary - 1))
