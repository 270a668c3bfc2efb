"""Nodes read many at once are those that the library reads one by one."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fabrictune.collectives.traces import chakra_nodes
from fabrictune.collectives.traces.chakra_nodes import NUMBERS, Nodes, read_nodes
from fabrictune.collectives.traces.chakra_schema import GlobalMetadata, Node
from fabrictune.collectives.traces.wire_format import packed_varints, read_fields, varints
from fabrictune.foundation.errors import TraceError

ALL_BY_THE_LIBRARY = 10**9
NAMES = st.sampled_from([*NUMBERS, "pg_name", "is_cpu_op", "rf_id", "op_schema", "other", "", "größe"])
WHOLE = st.sampled_from([0, 1, 127, 128, 300, 2**31 - 1])
VALUES = st.one_of(
    st.tuples(st.sampled_from(["int32_val", "sint32_val", "sfixed32_val"]), WHOLE | st.just(-1)),
    st.tuples(st.sampled_from(["uint32_val", "fixed32_val"]), WHOLE | st.just(2**32 - 1)),
    st.tuples(
        st.sampled_from(["int64_val", "sint64_val", "sfixed64_val"]), WHOLE | st.sampled_from([2**62 - 1, 2**62, -5])
    ),
    st.tuples(st.sampled_from(["uint64_val", "fixed64_val"]), WHOLE | st.just(2**64 - 1)),
    st.tuples(st.sampled_from(["double_val", "float_val"]), st.sampled_from([0.0, 1.5])),
    st.tuples(st.just("bool_val"), st.booleans()),
    st.tuples(st.just("string_val"), st.sampled_from(["", "7", "group ü"])),
)
IDS = st.sampled_from([0, 1, 127, 128, 2**32, 2**63 - 1, 2**64 - 1])
NODES = st.fixed_dictionaries(
    {
        "id": IDS,
        "name": st.sampled_from(["", "layer 1", "größe"]),
        "type": st.sampled_from([0, 4, 5, 6, 7, 2**31 - 1, -1]),
        "data_deps": st.lists(IDS, max_size=4),
        "ctrl_deps": st.lists(IDS, max_size=3),
        "duration_micros": st.sampled_from([0, 5, 2**40, 2**64 - 1]),
        "start_time_micros": st.sampled_from([0, 2**50]),
    }
)


def varint(number: int) -> bytes:
    head = b""
    while number > 0x7F:
        head, number = head + bytes([number & 0x7F | 0x80]), number >> 7
    return head + bytes([number])


def save(path: Path, *bodies: bytes) -> Path:
    """Write messages after the metadata, each with its length before it."""
    head = GlobalMetadata(version="0.0.4").SerializeToString()
    path.write_bytes(b"".join(varint(len(body)) + body for body in (head, *bodies)))
    return path


def outcome(path: Path, few: int) -> Nodes | str:
    try:
        return read_nodes(path, few=few)
    except TraceError as error:
        return str(error)


def waits(nodes: Nodes) -> list[tuple[Any, ...]]:
    return sorted(zip(nodes.wait_node_W.tolist(), nodes.wait_id_W.tolist(), nodes.is_caller_W.tolist(), strict=True))


def assert_same(fast: Nodes | str, slow: Nodes | str) -> None:
    if isinstance(fast, str) or isinstance(slow, str):
        assert fast == slow
        return
    for name in ("id_N", "type_N", "duration_micros_N", "runs_on_host_N", "is_of_profile_N"):
        np.testing.assert_array_equal(getattr(fast, name), getattr(slow, name), err_msg=name)
    for name in NUMBERS:
        np.testing.assert_array_equal(fast.numbers[name], slow.numbers[name], err_msg=name)
    names = [np.array([*nodes.group_names, None], object)[nodes.group_N].tolist() for nodes in (fast, slow)]
    assert names[0] == names[1]
    assert waits(fast) == waits(slow)
    assert fast.written == slow.written
    everyone = np.arange(len(fast))
    assert fast.names(everyone) == slow.names(everyone)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(nodes=st.lists(st.tuples(NODES, st.lists(st.tuples(NAMES, VALUES), max_size=5)), max_size=6))
def test_all_at_once_is_one_by_one(nodes: list[Any], tmp_path: Path) -> None:
    """Every column, for nodes of every form."""
    bodies = []
    for fields, attributes in nodes:
        node = Node(**fields)
        for name, (kind, value) in attributes:
            node.attr.add(name=name, **{kind: value})
        bodies.append(node.SerializeToString())
    path = save(tmp_path / "x.0.et", *bodies)
    assert_same(outcome(path, 0), outcome(path, ALL_BY_THE_LIBRARY))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(bodies=st.lists(st.binary(max_size=24), min_size=1, max_size=5))
def test_any_bytes_are_what_the_library_makes_of_them(bodies: list[bytes], tmp_path: Path) -> None:
    """Damage, unknown fields and other wire types included: the same nodes, or the same refusal."""
    path = save(tmp_path / "x.0.et", *bodies)
    assert_same(outcome(path, 0), outcome(path, ALL_BY_THE_LIBRARY))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(data=st.data())
def test_a_damaged_node_is_what_the_library_makes_of_it(data: st.DataObject, tmp_path: Path) -> None:
    """A byte changed in a node as converters write them."""
    node = Node(id=300, name="all_reduce", type=7, data_deps=[1, 300], ctrl_deps=[2], duration_micros=5)
    for name, (kind, value) in {"comm_type": ("int64_val", 0), "pg_name": ("string_val", "0")}.items():
        node.attr.add(name=name, **{kind: value})
    body = bytearray(node.SerializeToString())
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    path = save(tmp_path / "x.0.et", bytes(body))
    assert_same(outcome(path, 0), outcome(path, ALL_BY_THE_LIBRARY))


def test_chunks_and_long_nodes_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of a few nodes, and one node of many dependencies that the library reads."""
    nodes = [Node(id=n, name=f"n{n}", type=4, data_deps=[n - 1] if n else []) for n in range(100)]
    nodes[50].attr.extend([type(nodes[50].attr.add())(name=f"other {n}", int64_val=n) for n in range(40)])
    path = save(tmp_path / "x.0.et", *(node.SerializeToString() for node in nodes))
    whole = read_nodes(path, few=2)
    monkeypatch.setattr(chakra_nodes, "CHUNK_BYTES", 64)
    assert_same(read_nodes(path, few=0), whole)
    assert whole.id_N.tolist() == list(range(100))
    assert waits(whole) == [(n, n - 1, False) for n in range(1, 100)]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "an empty file"),
        (b"\xff\xff\xff\xff\xff\x01", "byte 0: no length of a message"),
        (b"\x80", "byte 0: no length of a message"),
        (b"\x05abc", "byte 0: a message that is cut off"),
        (b"\x00\x02\x00\x00", "byte 2: not a node of a Chakra trace"),
    ],
)
def test_what_is_no_sequence_of_messages_is_refused(content: bytes, found: str, tmp_path: Path) -> None:
    """With the place in the file."""
    (tmp_path / "x.0.et").write_bytes(content)
    with pytest.raises(TraceError, match=found):
        read_nodes(tmp_path / "x.0.et")


def test_varints_by_hand() -> None:
    """300 is 0xac 0x02; a varint that goes on behind its end, or for ten bytes, is none."""
    data = np.frombuffer(b"\xac\x02\x05" + b"\xff" * 9 + b"\x01", np.uint8)
    value, end, is_right = varints(data, np.array([0, 2, 0, 3]), np.array([3, 3, 1, 13]))
    assert (value[:2].tolist(), end[:2].tolist(), is_right.tolist()) == ([300, 5], [2, 3], [True, True, False, False])


def test_packed_varints_by_hand() -> None:
    """Two ranges of two and of no numbers, and one whose last number does not end."""
    data = np.frombuffer(b"\xac\x02\x05\x07\x80", np.uint8)
    value, of, is_right = packed_varints(data, np.array([0, 3, 3]), np.array([3, 3, 5]))
    assert (value[:3].tolist(), of[:3].tolist(), is_right.tolist()) == ([300, 5, 7], [0, 0, 2], [True, True, False])


def test_fields_by_hand() -> None:
    """Field 1 is the varint 5, field 2 two bytes of content; field 3 has four bytes."""
    data = np.frombuffer(b"\x08\x05\x12\x02ab\x1d\x01\x00\x00\x00", np.uint8)
    fields, is_odd = read_fields(data, np.array([0]), np.array([11]), few=0)
    assert (fields.number_F.tolist(), fields.wire_F.tolist(), is_odd.tolist()) == ([1, 2, 3], [0, 2, 5], [False])
    assert (fields.value_F[0], fields.begin_F[1], fields.end_F[1]) == (5, 4, 6)
    assert len(replace(fields).take(fields.number_F > 1).number_F) == 2
