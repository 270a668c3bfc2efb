"""Tokenization of text files into a token file, as a stream: memory does not grow with the text.

Bytes are the default vocabulary: any text, no training, nothing to install. A vocabulary of subwords is read from a
`tokenizer.json` by the `tokenizers` package. Both end each file with an id of their own, the largest.

Left out: tokenizing on several processors.

Shapes: T tokens.
"""

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.errors import Mistake, TokenFileError
from fabrictune.foundation.extras import require_extra
from fabrictune.trainer_probe.data.token_file import TokenFile, TokenWriter

BLOCK = 2**20  # bytes or characters of text in memory


class Tokenizer(Protocol):
    """Conversion of text to ids. `vocabulary_size` includes the id that ends a text, the largest."""

    vocabulary_size: int

    def encode(self, file: BinaryIO) -> Iterator[NDArray[Any]]:
        """Yield the ids (T) of a file's text, block by block; raises UnicodeDecodeError for other bytes."""


class ByteTokenizer:
    """Bytes as ids."""

    vocabulary_size = 257

    def encode(self, file: BinaryIO) -> Iterator[NDArray[Any]]:
        """Yield the bytes."""
        while block := file.read(BLOCK):
            yield np.frombuffer(block, dtype=np.uint8)


class SubwordTokenizer:
    """Subwords of a `tokenizer.json`. Lines stay whole up to a block, so that subwords are cut nowhere else."""

    def __init__(self, path: Path) -> None:
        """Raise UnavailableError where the `tokenizers` package is missing, TokenFileError where the file is none."""
        require_extra("tokenizers", extra="tokenize", where="subword tokenizer")
        from tokenizers import Tokenizer as Subwords

        try:
            self._subwords = Subwords.from_file(str(path))
        except Exception as error:  # the package raises no narrower type
            raise TokenFileError(Mistake(where=str(path), found=f"no tokenizer: {error}")) from None
        self.vocabulary_size = self._subwords.get_vocab_size(with_added_tokens=True) + 1

    def encode(self, file: BinaryIO) -> Iterator[NDArray[Any]]:
        """Yield the ids of UTF-8 text, some lines at a time."""
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        while block := text.read(BLOCK) + text.readline(BLOCK):
            yield np.array(self._subwords.encode(block, add_special_tokens=False).ids, dtype=np.int64)
        text.detach()


def tokenize(texts: Sequence[Path], path: Path, tokenizer: Tokenizer) -> TokenFile:
    """Write the ids of all texts, in order, to a token file, and return it.

    Raises TokenFileError, with all missing texts at once, where texts cannot be read or are not UTF-8.
    """
    mistakes = [Mistake(where=str(text), found="no such text file") for text in texts if not text.is_file()]
    if not texts:
        mistakes.append(Mistake(where=str(path), found="no text to tokenize"))
    if mistakes:
        raise TokenFileError(*mistakes)
    with TokenWriter(path, tokenizer.vocabulary_size) as writer:
        for text in texts:
            _append_text(text, writer, tokenizer)
    return TokenFile.open(path)


def _append_text(text: Path, writer: TokenWriter, tokenizer: Tokenizer) -> None:
    try:
        with text.open("rb") as file:
            for ids_T in tokenizer.encode(file):
                writer.append(ids_T)
    except UnicodeDecodeError as error:
        raise TokenFileError(Mistake(where=str(text), found=f"not UTF-8: {error.reason}")) from None
    except OSError as error:
        raise TokenFileError(Mistake(where=str(text), found=error.strerror or str(error))) from None
    writer.append(np.array([tokenizer.vocabulary_size - 1]))
