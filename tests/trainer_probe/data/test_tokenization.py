"""Text to token files."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from fabrictune.foundation.errors import TokenFileError, UnavailableError
from fabrictune.trainer_probe.data.tokenization import BLOCK, ByteTokenizer, SubwordTokenizer, tokenize

README = Path(__file__).parents[3] / "README.md"


def test_each_text_ends_with_an_id_of_its_own(tmp_path: Path) -> None:
    """`ab` is 97 98, `é` is 195 169, an empty text is nothing; after each comes 256."""
    texts = [tmp_path / name for name in ("1.txt", "2.txt", "3.txt")]
    for path, text in zip(texts, ("ab", "", "é"), strict=True):
        path.write_text(text, encoding="utf-8")
    found = tokenize(texts, tmp_path / "text.tokens", ByteTokenizer())
    assert found.ids_T.tolist() == [97, 98, 256, 256, 195, 169, 256]
    assert found.vocabulary_size == 257


def test_a_real_text_comes_back_byte_for_byte(tmp_path: Path) -> None:
    """The README, without the last id."""
    found = tokenize([README], tmp_path / "text.tokens", ByteTokenizer())
    assert found.ids_T[:-1].astype(np.uint8).tobytes() == README.read_bytes()


def test_memory_does_not_grow_with_the_text(tmp_path: Path) -> None:
    """24 blocks of text; each is held as bytes, as ids of 2 bytes and as those written: 5 blocks, and some room."""
    text = tmp_path / "long.txt"
    with text.open("wb") as file:
        for _ in range(24):
            file.write(bytes(range(256)) * (BLOCK // 256))
    tracemalloc.start()
    try:
        found = tokenize([text], tmp_path / "text.tokens", ByteTokenizer())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.num_tokens == 24 * BLOCK + 1
    assert peak < 8 * BLOCK


def test_all_missing_texts_are_named_at_once(tmp_path: Path) -> None:
    """And no token file is begun."""
    with pytest.raises(TokenFileError) as error:
        tokenize([tmp_path / "a.txt", README, tmp_path / "b.txt"], tmp_path / "text.tokens", ByteTokenizer())
    assert str(error.value).replace(f"{tmp_path}/", "") == "a.txt: no such text file\nb.txt: no such text file"
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def subwords(tmp_path: Path) -> Path:
    """A `tokenizer.json` of 300 subwords, learnt from the README."""
    package = pytest.importorskip("tokenizers")
    tokenizer = package.ByteLevelBPETokenizer()
    tokenizer.train([str(README)], vocab_size=300, show_progress=False)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path / "tokenizer.json"


def test_subwords_come_back_as_the_text_they_were(subwords: Path, tmp_path: Path) -> None:
    """300 subwords and the id that ends a text; fewer ids than bytes, or there would be no subwords."""
    from tokenizers import Tokenizer

    found = tokenize([README], tmp_path / "text.tokens", SubwordTokenizer(subwords))
    assert found.vocabulary_size == 301
    assert found.ids_T[-1] == 300
    assert Tokenizer.from_file(str(subwords)).decode(found.ids_T[:-1].tolist()) == README.read_text()
    assert found.num_tokens < len(README.read_bytes())


def test_subwords_need_text(subwords: Path, tmp_path: Path) -> None:
    """0xff begins nothing in UTF-8."""
    text = tmp_path / "image.txt"
    text.write_bytes(b"GIF\xff")
    with pytest.raises(TokenFileError, match=r"image\.txt: not UTF-8: invalid start byte"):
        tokenize([text], tmp_path / "text.tokens", SubwordTokenizer(subwords))
    assert not (tmp_path / "text.tokens").exists()


def test_another_file_in_place_of_subwords_is_refused() -> None:
    """The package says what it misses."""
    pytest.importorskip("tokenizers")
    with pytest.raises(TokenFileError, match=r"README\.md: no tokenizer: "):
        SubwordTokenizer(README)


def test_without_the_package_the_way_to_get_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra: bytes need nothing."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UnavailableError) as error:
        SubwordTokenizer(README)
    assert str(error.value) == (
        'subword tokenizer: tokenizers is not installed\n  next: pip install "fabrictune[tokenize]"'
    )
