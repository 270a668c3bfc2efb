"""Damage as disks, editors and hasty people do it, and as somebody would who means harm."""

import gzip
import random
import re
from collections.abc import Callable

ABSURD = [
    *(b"-1", b"0", b"1e309", b"NaN", b"99999999", b"9" * 400, b"9" * 5000, b"4294967296", b"9223372036854775808"),
    *(b"null", b"[]", b"{}", b"", b"\xff", b"true", b'"x"', b"-0.0", b"1e-320", b"\x00", "\u202e".encode()),
]


def lose(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    return data[:start] + data[start + chance.choice((1, 1, 3, 30, 300)) :]


def double(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    return data[:start] + 2 * data[start : start + chance.choice((1, 10, 100))] + data[start + 100 :]


def overwrite(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    return data[:start] + chance.randbytes(chance.choice((1, 2, 8))) + data[start + 8 :]


def cut_off(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(1, len(data) + 1)]


def move_lines(data: bytes, chance: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    for _ in range(chance.randint(1, 3)):
        lines.insert(chance.randrange(len(lines)), chance.choice(lines))
        del lines[chance.randrange(len(lines))]
    return b"".join(lines)


def make_absurd(data: bytes, chance: random.Random) -> bytes:
    numbers = list(re.finditer(rb"\d+", data))
    for number in sorted(chance.sample(numbers, min(2, len(numbers))), key=lambda match: -match.start()):
        data = data[: number.start()] + chance.choice(ABSURD) + data[number.end() :]
    return data


def exchange_words(data: bytes, chance: random.Random) -> bytes:
    words = list(re.finditer(rb"\w+", data))
    if not words:
        return data
    taken, given = chance.choice(words), chance.choice(words)
    return data[: taken.start()] + given.group() + data[taken.end() :]


DAMAGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    lose,
    double,
    overwrite,
    cut_off,
    move_lines,
    make_absurd,
    exchange_words,
)


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Return the data with one to four kinds of damage; of packed data, mostly inside."""
    if data[:2] == b"\x1f\x8b" and chance.random() < 0.8:
        return gzip.compress(damaged(gzip.decompress(data), chance), compresslevel=1)
    for damage in chance.choices(DAMAGES, k=chance.choice((1, 1, 2, 4))):
        data = damage(data, chance) or b" "
    return data
