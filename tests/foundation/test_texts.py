"""Texts are a column of text as any other, at four bytes a row."""

import numpy as np
import pyarrow as pa
import pytest

from fabrictune.foundation.texts import Texts

ROWS = ("dp", "tp", "dp", "pp", "tp")


@pytest.fixture(params=["plain", "dictionaries"])
def texts(request: pytest.FixtureRequest) -> Texts:
    """Two chunks, whose dictionaries differ."""
    column = pa.chunked_array([pa.array(ROWS[:2]), pa.array(ROWS[2:])])
    return Texts.of_arrow(column if request.param == "plain" else column.dictionary_encode())


def test_texts_are_a_sequence(texts: Texts) -> None:
    """Rows, parts and comparisons are those of a tuple, from either side."""
    assert (tuple(texts), len(texts), texts[3], texts[-1]) == (ROWS, 5, "pp", "tp")
    assert texts == ROWS
    assert ROWS.__eq__(texts) is NotImplemented, "so that Python asks the other side"
    assert list(texts[1:3]) == ["tp", "dp"]
    assert texts != ROWS[:4]
    assert texts != (*ROWS[:4], "dp")
    assert texts != 5
    assert hash(texts) == hash(texts[:])
    assert texts.index("pp") == 3
    assert "cp" not in texts


def test_each_text_is_held_once(texts: Texts) -> None:
    """Three texts, and a place of four bytes a row."""
    assert sorted(texts.vocabulary) == ["dp", "pp", "tp"]
    assert texts.place_N.nbytes == 4 * 5
    assert Texts.of(ROWS) == texts
    assert Texts.of(texts) is texts
    assert texts.to_arrow().to_pylist() == list(ROWS)
    assert Texts.constant("none", 3).to_arrow().to_pylist() == ["none"] * 3
    assert texts.take(np.array([3, 0])) == ("pp", "dp")
    assert repr(texts) == "Texts(5 rows of 3 texts)"


def test_one_text_takes_no_place() -> None:
    """A column of one text is that text and a number of rows, also where it comes from a file."""
    many = Texts.constant("none", 10**12)
    assert (len(many), many[10**11]) == (10**12, "none")
    assert many.place_N.strides == (0,)
    assert Texts.of_arrow(pa.chunked_array([pa.array(["none"] * 3)])).place_N.strides == (0,)


def test_no_rows_are_no_texts() -> None:
    """A column of no chunk has no rows."""
    assert tuple(Texts.of_arrow(pa.chunked_array([], pa.string()))) == ()
