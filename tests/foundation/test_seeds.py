"""Streams are named, independent, and the same on every machine."""

import hashlib

import numpy as np
import pytest

from fabrictune.foundation.seeds import stream, stream_key


def test_the_numbers_of_a_stream_never_change() -> None:
    """Golden numbers: a record made today must be made again next year from its seed."""
    assert stream_key(0) == 31968547004957882777163574513321328186
    assert stream(1, "workload", "permutation").integers(0, 1000, 6).tolist() == [444, 614, 632, 481, 6, 968]


def test_a_key_is_the_128_bit_blake2b_of_seed_and_name() -> None:
    """An engine in another language can derive the same key: the digest of `(1, 'a')`, read little-endian."""
    digest = hashlib.blake2b(b"(1, 'a')", digest_size=16).digest()
    assert stream_key(1, "a") == int.from_bytes(digest, "little")


@pytest.mark.parametrize(
    ("first", "second"),
    [((0, "a"), (1, "a")), ((0, "a"), (0, "b")), ((0, 1), (0, "1")), ((0, "a", "b"), (0, "ab")), ((0, 1), (0, 1, 0))],
)
def test_another_seed_or_name_is_another_stream(first: tuple[int, str], second: tuple[int, str]) -> None:
    """Types and the borders between parts count: 1 is not "1", and ("a", "b") is not "ab"."""
    assert stream_key(*first) != stream_key(*second)


def test_two_streams_are_uncorrelated() -> None:
    """The correlation of n independent pairs is about 1/sqrt(n); 5 of these at n = 100,000 is 0.016."""
    first, second = (stream(7, name).standard_normal(100_000) for name in ("flows", "faults"))
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / np.sqrt(100_000)


def test_drawing_from_one_stream_leaves_another_alone() -> None:
    """A new consumer must not shift the numbers of an old one."""
    alone = stream(3, "flows").random(4)
    stream(3, "faults").random(1000)
    assert (stream(3, "flows").random(4) == alone).all()


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_lies_within_63_bits(seed: int) -> None:
    """Engines hold it in a signed 64-bit integer."""
    with pytest.raises(AssertionError, match="a seed is a whole number"):
        stream(seed, "flows")


def test_a_name_of_another_type_is_refused() -> None:
    """NumPy prints its integers differently from version to version, which would change the key."""
    with pytest.raises(AssertionError, match="named by plain text and whole numbers"):
        stream(0, np.int64(3))  # type: ignore[arg-type]
