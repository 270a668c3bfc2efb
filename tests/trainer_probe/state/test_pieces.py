"""Pieces and their ranges in other divisions, with numbers worked out by hand and against whole weights."""

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")

import torch

from fabrictune.trainer_probe.model.weights import WeightSpec
from fabrictune.trainer_probe.state.pieces import VALUE, Piece, PieceTable, translate

COLUMNS = WeightSpec(name="w", shape=(2, 4), split=1, start="normal")  # rows 0 1 2 3 and 4 5 6 7


def piece(part: int, begin: int, values: list[int], name: str = "w") -> Piece:
    return Piece(weight=name, part=part, begin=begin, tensors={VALUE: torch.tensor(values, dtype=torch.float64)})


def cut(weight: WeightSpec, tp: int, ends: list[Fraction]) -> list[Piece]:
    """Every part of a weight whose element number i is i, each cut at these fractions of its length."""
    whole = torch.arange(int(torch.tensor(weight.shape).prod())).view(weight.shape)
    found = []
    for part in range(1 if weight.split is None else tp):
        own = weight.local_part(whole, tp, part).flatten().tolist()
        places = [0, *sorted({int(end * len(own)) for end in ends} - {0}), len(own)]
        found += [piece(part, begin, own[begin:end]) for begin, end in pairwise(places) if end > begin]
    return found


def test_a_range_of_columns_is_two_ranges_of_halves_and_four_of_quarters() -> None:
    """Part 1 of two has 2 3 6 7; its elements 1 to 2 are 3 and 6: of quarters the 4th's first and the 3rd's second."""
    wanted = piece(1, 1, [0, 0])
    assert list(translate(COLUMNS, wanted, tp=2, to=2)) == [(1, 1, 2)]
    assert list(translate(COLUMNS, wanted, tp=2, to=4)) == [(3, 0, 1), (2, 1, 1)]
    assert list(translate(COLUMNS, wanted, tp=2, to=1)) == [(0, 3, 1), (0, 6, 1)]


def test_what_several_ranks_hold_is_taken_once() -> None:
    """Pieces 0..2, 1..3 and 0..1 of the whole: elements 0 to 3 in order."""
    table = PieceTable([piece(0, 1, [1, 2, 3]), piece(0, 0, [0, 1]), piece(0, 0, [0, 1, 2]), piece(0, 4, [4])], 1)
    wanted = piece(0, 0, [9] * 5)
    assert table.missing(wanted, COLUMNS, 1) == ()
    table.fill(wanted, COLUMNS, 1)
    assert wanted.tensors[VALUE].tolist() == [0, 1, 2, 3, 4]


def test_what_is_missing_is_named() -> None:
    """Element 3 of four, all of part 1, and a moment."""
    table = PieceTable([piece(0, 0, [0, 1, 4])], 2)
    wanted = Piece(weight="w", part=0, begin=0, tensors={VALUE: torch.zeros(8), "first_moment": torch.zeros(8)})
    assert table.missing(wanted, COLUMNS, 1) == (
        "w: first_moment",
        "w: elements 0 to 1 of part 1",
        "w: elements 2 to 3 of part 0",
        "w: elements 2 to 3 of part 1",
    )


@given(
    shape=st.lists(st.sampled_from([1, 2, 3, 5]), min_size=0, max_size=2),
    split=st.sampled_from([None, 0, 1, 2]),
    degrees=st.tuples(st.sampled_from([1, 2, 3, 6]), st.sampled_from([1, 2, 3, 6])),
    ends=st.tuples(*[st.lists(st.fractions(0, 1), max_size=3)] * 2),
)
def test_any_division_is_filled_from_any_other(
    shape: list[int],
    split: int | None,
    degrees: tuple[int, int],
    ends: tuple[list[Fraction], list[Fraction]],
) -> None:
    """Element number i of the whole weight is i in every piece, however both sides are cut."""
    shape.insert(min(split or 0, len(shape)), 6)
    weight = WeightSpec(name="w", shape=tuple(shape), split=None if split is None else shape.index(6), start="normal")
    (tp, to), (cuts, other_cuts) = degrees, ends
    table = PieceTable(cut(weight, tp, cuts), tp)
    for expected in cut(weight, to, other_cuts):
        found = piece(expected.part, expected.begin, [-1] * (expected.end - expected.begin))
        assert table.missing(found, weight, to) == ()
        table.fill(found, weight, to)
        assert torch.equal(found.tensors[VALUE], expected.tensors[VALUE])
