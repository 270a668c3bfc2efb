"""Token files: what is written is read, and whatever is wrong with one is said."""

import struct
import zlib
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.foundation.errors import TokenFileError
from fabrictune.trainer_probe.data.token_file import HEADER_BYTES, TokenFile, TokenWriter
from tests.trainer_probe.data.conftest import MakeFile, make_first_version


def refusal(path: Path) -> str:
    """Return what opening says, without the folder."""
    with pytest.raises(TokenFileError) as error:
        TokenFile.open(path)
    return str(error.value).replace(f"{path.parent}/", "")


@given(data=st.data(), vocabulary_size=st.integers(1, 2**32))
def test_what_is_written_is_read(
    data: st.DataObject, vocabulary_size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever the blocks it came in; ids take two bytes where the vocabulary allows, else four."""
    ids = st.integers(0, vocabulary_size - 1)
    blocks = data.draw(st.lists(st.lists(ids, max_size=20), max_size=5).filter(any))
    path = tmp_path_factory.mktemp("written") / "text.tokens"
    with TokenWriter(path, vocabulary_size) as writer:
        for block in blocks:
            writer.append(np.array(block, dtype=np.int64))
    found = TokenFile.open(path)
    found.verify()
    assert found.ids_T.tolist() == list(chain.from_iterable(blocks))
    assert found.vocabulary_size == vocabulary_size
    assert found.id_bytes == (2 if vocabulary_size <= 2**16 else 4)
    assert path.stat().st_size == HEADER_BYTES + found.num_tokens * found.id_bytes + 4  # one block


def test_a_file_cut_short_is_refused(make_file: MakeFile) -> None:
    """A header of 64 bytes, 100 ids of 2 and a checksum of 4 are 268 bytes; 3 are missing."""
    path = make_file(100)
    path.write_bytes(path.read_bytes()[:-3])
    assert refusal(path) == (
        "100.tokens: cut short: 265 bytes\n  allowed: 268 bytes: a header and 100 ids of 2 bytes, and their checksums\n"
        "  next: copy the file again, or tokenize the text again"
    )


def test_a_file_cut_inside_its_header_is_refused(make_file: MakeFile) -> None:
    """Its first bytes still say what it was."""
    path = make_file(100)
    path.write_bytes(path.read_bytes()[:40])
    assert refusal(path).startswith("100.tokens: cut short inside its header\n")


def test_a_file_with_more_than_its_ids_is_refused(make_file: MakeFile) -> None:
    """As when something was appended to a finished file."""
    path = make_file(100)
    path.write_bytes(path.read_bytes() + b"\0\0")
    assert refusal(path).startswith("100.tokens: 270 bytes\n  allowed: 268 bytes")


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    """Text given in place of tokens is the likeliest mistake."""
    path = tmp_path / "novel.txt"
    path.write_text("It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of")
    assert refusal(path).startswith("novel.txt: not a token file\n  next: make one from text")


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    """In the system's words."""
    assert refusal(tmp_path / "none.tokens") == "none.tokens: No such file or directory"


@pytest.mark.parametrize("byte", range(8, HEADER_BYTES))
def test_any_damage_to_the_header_is_found(byte: int, make_file: MakeFile) -> None:
    """CRC-32 finds every change of one byte, padding and checksum themselves included."""
    path = make_file(100)
    content = bytearray(path.read_bytes())
    content[byte] ^= 0x10
    path.write_bytes(content)
    assert refusal(path).startswith("100.tokens: a damaged header\n")


def test_ids_beyond_the_vocabulary_are_refused_without_reading_them(make_file: MakeFile) -> None:
    """A header that is whole and says so itself: largest id 99 (bytes 32 to 39) in a vocabulary of 50 (16 to 23)."""
    path = make_file(100)
    content = bytearray(path.read_bytes())
    struct.pack_into("<Q", content, 16, 50)
    struct.pack_into("<I", content, 60, zlib.crc32(content[:60]))
    path.write_bytes(content)
    assert refusal(path) == (
        "100.tokens: id 99, beyond the vocabulary\n  allowed: 0 to 49\n  next: tokenize the text again"
    )


def test_two_mistakes_are_said_at_once(make_file: MakeFile) -> None:
    """Cut short, and with ids beyond its vocabulary."""
    path = make_file(100)
    content = bytearray(path.read_bytes()[:-2])
    struct.pack_into("<Q", content, 16, 50)
    struct.pack_into("<I", content, 60, zlib.crc32(content[:60]))
    path.write_bytes(content)
    assert [line for line in refusal(path).splitlines() if line.startswith("100.tokens")] == [
        "100.tokens: cut short: 266 bytes",
        "100.tokens: id 99, beyond the vocabulary",
    ]


def test_a_version_of_another_time_is_refused(make_file: MakeFile) -> None:
    """Version 3 (bytes 8 to 11), with a checksum that fits."""
    path = make_file(100)
    content = bytearray(path.read_bytes())
    struct.pack_into("<I", content, 8, 3)
    struct.pack_into("<I", content, 60, zlib.crc32(content[:60]))
    path.write_bytes(content)
    assert refusal(path) == (
        "100.tokens: version 3 with ids of 2 bytes\n  allowed: version 1 or 2 with ids of 2 or 4 bytes"
    )


def test_verifying_finds_a_single_flipped_bit(make_file: MakeFile) -> None:
    """Opening reads the header alone and lets it pass."""
    path = make_file(100)
    content = bytearray(path.read_bytes())
    content[HEADER_BYTES + 31] ^= 1
    path.write_bytes(content)
    with pytest.raises(TokenFileError, match=r"ids with checksum [0-9a-f]{8}, the largest"):
        TokenFile.open(path).verify()


def test_reading_finds_a_flipped_bit_in_the_block_that_it_reads(make_file: MakeFile) -> None:
    """Of 5000 ids the blocks have 4096 and 904; id 4100 changes from an id of the vocabulary to another."""
    path = make_file(5000)
    content = bytearray(path.read_bytes())
    content[HEADER_BYTES + 2 * 4100] ^= 1
    path.write_bytes(content)
    found = TokenFile.open(path)
    assert found.read(0, 4096).tolist() == [number % 1000 for number in range(4096)]
    with pytest.raises(TokenFileError, match="ids 4096 to 4999 with another checksum"):
        found.read(4095, 4097)


def test_a_damaged_table_is_refused_when_ids_are_read(make_file: MakeFile) -> None:
    """The header has the checksum of the checksums."""
    path = make_file(100)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(TokenFileError, match="a damaged table of checksums"):
        TokenFile.open(path).read(0, 1)


def test_a_file_of_the_first_version_is_read(make_file: MakeFile) -> None:
    """Without checksums of blocks: 64 bytes and 100 ids."""
    path = make_file(100)
    make_first_version(path)
    assert path.stat().st_size == 264
    assert TokenFile.open(path).read(10, 12).tolist() == [10, 11]


@pytest.mark.parametrize("wrong", [-1, 10])
def test_a_writer_refuses_ids_beyond_the_vocabulary_and_leaves_no_file(wrong: int, tmp_path: Path) -> None:
    """Ten ids are 0 to 9; what was written before is taken back."""

    def write() -> None:
        with TokenWriter(tmp_path / "text.tokens", 10) as writer:
            writer.append(np.array([3, 4]))
            writer.append(np.array([5, wrong]))

    with pytest.raises(TokenFileError, match=f"id {wrong}, beyond the vocabulary"):
        write()
    assert list(tmp_path.iterdir()) == []
