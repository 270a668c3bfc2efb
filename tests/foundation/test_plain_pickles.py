"""Pickles of plain values are read as Python reads them; whatever would run something is refused."""

import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fabrictune.foundation.errors import TraceError
from fabrictune.foundation.plain_pickles import load_plain_pickle

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
PLAIN = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner, inner),
    max_leaves=30,
)


def load(path: Path) -> Any:
    return load_plain_pickle(path, max_bytes=2**20, error=TraceError)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=PLAIN, protocol=st.sampled_from([2, 3, 4, 5]))
def test_plain_values_come_back(value: Any, protocol: int, tmp_path: Path) -> None:
    """As `pickle` itself loads them, in each binary protocol; bytes are a call of a function in the oldest."""
    path = tmp_path / "plain"
    path.write_bytes(pickle.dumps(value, protocol))
    if b"_codecs" in path.read_bytes() or b"__builtin__" in path.read_bytes():
        return
    assert load(path) == value


def test_what_is_twice_is_one(tmp_path: Path) -> None:
    """A list that is met again is taken from what was kept."""
    path, inner = tmp_path / "shared", [1, 2]
    path.write_bytes(pickle.dumps([inner, inner]))
    first, second = load(path)
    assert first is second


class Runs:
    """What runs a command when `pickle` loads it."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.target,)


@pytest.mark.parametrize("protocol", range(6))
def test_nothing_is_run(protocol: int, tmp_path: Path) -> None:
    """A pickle that would make a file; loaded by `pickle` it does."""
    path, target = tmp_path / "evil", tmp_path / "made"
    path.write_bytes(pickle.dumps([1, Runs(target)], protocol))
    with pytest.raises(TraceError, match=r"a pickle with the step (STACK_)?GLOBAL.*\n  allowed: numbers, texts"):
        load(path)
    assert not target.exists()
    pickle.loads(path.read_bytes())
    assert target.exists()


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_is_a_value_or_a_named_error(data: st.DataObject, tmp_path: Path) -> None:
    """Bytes changed, cut away or put in."""
    whole = bytearray(pickle.dumps({"entries": [{"name": "x", "sizes": [[1, 2**40]]}], "more": (None, 1.5, True)}, 2))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(whole) - 1))
        whole[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
        if not whole:
            break
    path = tmp_path / "damaged"
    path.write_bytes(bytes(whole))
    with suppress(TraceError):
        load(path)
