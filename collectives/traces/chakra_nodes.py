"""Nodes of a Chakra trace as columns: what they wait for, how long they work, and what of the network they ask for.

Millions of nodes are read field by field for many nodes at once; the few that `wire_format` calls odd, and those whose
attributes have rare types, one by one with the library. Both fill the same columns.

Source: mlcommons/chakra, schema/protobuf/et_def.proto; Protocol Buffers, "Streaming Multiple Messages".

Shapes: B bytes, N nodes, W waits, F fields, A attributes, L bytes of a text.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from fabrictune.collectives.traces.chakra_schema import AttributeField, Node, NodeField
from fabrictune.collectives.traces.wire_format import (
    FEW,
    Bytes,
    Fields,
    Wire,
    packed_varints,
    read_fields,
)
from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.foreign_files import read_foreign

MAX_FILE_BYTES = 2**30
MAX_NODES = 2_000_000  # of a rank
SHORTER = "record fewer steps, or give the PyTorch profile"
CHUNK_BYTES = 2**21  # of nodes that are read at once
ABSENT, INVALID = -1, -2  # in place of a whole number from 0 on
NUMBERS = ("comm_type", "comm_size", "comm_src", "comm_dst", "root", "compute_ps")
_OF_PROFILE = frozenset(("rf_id", "op_schema"))  # what PyTorch's observer knows of a host operation
_MAX_NUMBER = 2**62
_PLAIN = (AttributeField.INT32, AttributeField.INT64, AttributeField.UINT32, AttributeField.UINT64)


@dataclass(frozen=True, kw_only=True)
class Nodes:
    """N nodes in the order of their file."""

    path: Path
    id_N: NDArray[np.uint64]
    type_N: IntArray
    duration_micros_N: NDArray[np.uint64]
    numbers: Mapping[str, IntArray]  # by attribute: from 0 on, ABSENT or INVALID, shape (N,)
    group_N: IntArray  # which of `group_names` a node has, ABSENT without one
    group_names: tuple[str, ...]
    runs_on_host_N: BoolArray  # is_cpu_op
    is_of_profile_N: BoolArray
    wait_node_W: IntArray  # row of the node that waits
    wait_id_W: NDArray[np.uint64]  # for whom
    is_caller_W: BoolArray  # a control dependency
    written: Mapping[tuple[int, str], str]  # invalid numbers as their file has them, by row and attribute
    _data: bytes = field(repr=False)
    _odd_names: Mapping[int, str] = field(repr=False)  # by row
    _name_begin_N: IntArray = field(repr=False)
    _name_end_N: IntArray = field(repr=False)

    def __len__(self) -> int:
        return len(self.id_N)

    def where(self, row: int) -> str:
        """Return the place that a mistake names."""
        return f"{self.path}, node {self.id_N[row]}"

    def names(self, row_R: IntArray) -> list[str]:
        """Return the names of some nodes."""
        begins, ends = self._name_begin_N[row_R].tolist(), self._name_end_N[row_R].tolist()
        return [
            self._odd_names[row] if row in self._odd_names else self._data[begin:end].decode()
            for row, begin, end in zip(row_R.tolist(), begins, ends, strict=True)
        ]


def read_nodes(path: Path, *, few: int = FEW) -> Nodes:
    """Return the nodes of a file; raises TraceError with the place of what is no node."""
    data = read_foreign(path, max_bytes=MAX_FILE_BYTES, error=TraceError)
    begin_N, end_N = _messages(data, path)
    if not len(begin_N):
        raise TraceError(Mistake(where=str(path), found="an empty file"))
    begin_N, end_N = begin_N[1:], end_N[1:]  # without the head
    return _Reader(path, data, begin_N, end_N).read(few)


def _messages(data: bytes, path: Path) -> tuple[IntArray, IntArray]:
    """Return begin and end of each message behind its length."""
    begins, ends = [], []
    at, size = 0, len(data)
    while at < size:
        start, length = at, data[at]
        at += 1
        if length >= 0x80:
            length, at = _long_length(data, start, path)
        begins.append(at)
        at += length
        ends.append(at)
        if at > size:
            raise TraceError(Mistake(where=f"{path}, byte {start}", found="a message that is cut off"))
        if len(begins) > MAX_NODES + 1:
            found = f"more than {MAX_NODES:,} nodes"
            raise TraceError(Mistake(where=f"{path}, byte {start}", found=found, next_step=SHORTER))
    return np.array(begins, np.int64), np.array(ends, np.int64)


def _long_length(data: bytes, start: int, path: Path) -> tuple[int, int]:
    """Return a length of several bytes, and where it ends."""
    length = 0
    for place, byte in enumerate(data[start : start + 5]):
        length |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return length, start + place + 1
    raise TraceError(Mistake(where=f"{path}, byte {start}", found="no length of a message"))


class _Reader:
    """Fills the columns, chunk by chunk."""

    def __init__(self, path: Path, data: bytes, begin_N: IntArray, end_N: IntArray) -> None:
        num_nodes = len(begin_N)
        self.path, self.data, self.begin_N, self.end_N = path, data, begin_N, end_N
        self.data_B: Bytes = np.frombuffer(data, np.uint8)
        self.id_N, self.duration_N = np.zeros(num_nodes, np.uint64), np.zeros(num_nodes, np.uint64)
        self.type_N, self.group_N = np.zeros(num_nodes, np.int64), np.full(num_nodes, ABSENT)
        self.name_begin_N, self.name_end_N = np.zeros(num_nodes, np.int64), np.zeros(num_nodes, np.int64)
        self.numbers = {name: np.full(num_nodes, ABSENT) for name in NUMBERS}
        self.runs_on_host_N, self.is_of_profile_N = np.zeros(num_nodes, bool), np.zeros(num_nodes, bool)
        self.group_names: dict[str, int] = {}
        self.written: dict[tuple[int, str], str] = {}
        self.odd_names: dict[int, str] = {}
        self.waits: list[tuple[IntArray, NDArray[np.uint64], BoolArray]] = []

    def read(self, few: int) -> Nodes:
        for begin, end in self._chunks():
            is_odd = self._read_chunk(begin, end, few)
            for row in (begin + np.flatnonzero(is_odd)).tolist():
                self._read_one(row)
        node_W, id_W, is_caller_W = (np.concatenate(parts) for parts in zip(*self.waits, strict=True))
        return Nodes(
            path=self.path,
            id_N=self.id_N,
            type_N=self.type_N,
            duration_micros_N=self.duration_N,
            numbers=self.numbers,
            group_N=self.group_N,
            group_names=tuple(self.group_names),
            runs_on_host_N=self.runs_on_host_N,
            is_of_profile_N=self.is_of_profile_N,
            wait_node_W=node_W,
            wait_id_W=id_W,
            is_caller_W=is_caller_W,
            written=self.written,
            _data=self.data,
            _odd_names=self.odd_names,
            _name_begin_N=self.name_begin_N,
            _name_end_N=self.name_end_N,
        )

    def _chunks(self) -> Iterator[tuple[int, int]]:
        self._add_waits(np.zeros(0, np.int64), np.zeros(0, np.uint64), is_caller=False)
        begin = 0
        while begin < len(self.begin_N):
            end = int(np.searchsorted(self.begin_N, self.begin_N[begin] + CHUNK_BYTES))
            yield begin, end
            begin = end

    def _read_chunk(self, begin: int, end: int, few: int) -> BoolArray:
        """Fill the columns of some nodes; returns those that are left to the library."""
        fields, is_odd = read_fields(self.data_B, self.begin_N[begin:end], self.end_N[begin:end], few=few)
        wires = {NodeField.ID: Wire.VARINT, NodeField.TYPE: Wire.VARINT, NodeField.DURATION: Wire.VARINT}
        wires |= {NodeField.NAME: Wire.LENGTH, NodeField.ATTRIBUTE: Wire.LENGTH}
        for number, wire in wires.items():
            is_odd[fields.message_F[(fields.number_F == number) & (fields.wire_F != wire)]] = True
        names = fields.take(fields.number_F == NodeField.NAME)
        is_odd[names.message_F[self._is_foreign(names)]] = True
        attributes = fields.take(fields.number_F == NodeField.ATTRIBUTE)
        self._read_attributes(attributes, begin, is_odd, few)
        dependencies = [
            self._dependencies(fields.take((fields.number_F == number) & ~is_odd[fields.message_F]), is_odd)
            for number in (NodeField.DATA_WAITS, NodeField.CALLERS)
        ]
        types = fields.take(fields.number_F == NodeField.TYPE)
        is_odd[types.message_F[types.value_F >= 2**31]] = True
        columns = ((NodeField.ID, self.id_N), (NodeField.TYPE, self.type_N), (NodeField.DURATION, self.duration_N))
        for number, column in columns:
            plain = fields.take((fields.number_F == number) & ~is_odd[fields.message_F])
            column[begin + plain.message_F] = plain.value_F
        self.name_begin_N[begin + names.message_F] = names.begin_F
        self.name_end_N[begin + names.message_F] = names.end_F
        for (message_W, id_W), is_caller in zip(dependencies, (False, True), strict=True):
            is_kept_W = ~is_odd[message_W]
            self._add_waits(begin + message_W[is_kept_W], id_W[is_kept_W].astype(np.uint64), is_caller=is_caller)
        return is_odd

    def _is_foreign(self, texts: Fields) -> BoolArray:
        """Return which texts have bytes outside ASCII, which the library decides about."""
        if not len(texts.begin_F):
            return np.zeros(0, bool)
        begin, end = int(texts.begin_F.min()), int(texts.end_F.max())
        num_so_far = np.concatenate([[0], np.cumsum(self.data_B[begin:end] >= 0x80)])
        return np.asarray(num_so_far[texts.end_F - begin] > num_so_far[texts.begin_F - begin], bool)

    def _dependencies(self, fields: Fields, is_odd: BoolArray) -> tuple[IntArray, IntArray]:
        """Return who waits and for whom, from numbers one by one and packed ones."""
        is_single, is_packed = fields.wire_F == Wire.VARINT, fields.wire_F == Wire.LENGTH
        is_odd[fields.message_F[~is_single & ~is_packed]] = True
        packed = fields.take(is_packed)
        id_V, range_V, is_right = packed_varints(self.data_B, packed.begin_F, packed.end_F)
        is_odd[packed.message_F[~is_right]] = True
        message_W = np.concatenate([fields.message_F[is_single], packed.message_F[range_V]])
        return message_W, np.concatenate([fields.value_F[is_single], id_V])

    def _read_attributes(self, attributes: Fields, first: int, is_odd: BoolArray, few: int) -> None:
        """Fill the columns of the attributes that matter, and mark the nodes of those that are odd."""
        node_A = attributes.message_F
        fields, is_odd_A = read_fields(self.data_B, attributes.begin_F, attributes.end_F, few=few)
        texts = fields.take(np.isin(fields.number_F, (AttributeField.NAME, AttributeField.REMARK, AttributeField.TEXT)))
        is_odd_A[texts.message_F[(texts.wire_F != Wire.LENGTH) | self._is_foreign(texts)]] = True
        names = fields.take(fields.number_F == AttributeField.NAME)
        values = fields.take((fields.number_F != AttributeField.NAME) & (fields.number_F != AttributeField.REMARK))
        is_odd_A |= np.bincount(names.message_F, minlength=len(node_A)) > 1
        is_odd_A |= np.bincount(values.message_F, minlength=len(node_A)) > 1
        value_A = np.full(len(node_A), ABSENT)  # row of `values`
        value_A[values.message_F] = np.arange(len(values.message_F))
        kind_A = np.where(value_A == ABSENT, 0, np.append(values.number_F, 0)[value_A])
        for name in (*NUMBERS, "pg_name", "is_cpu_op", *_OF_PROFILE):
            attribute = names.message_F[self._are(names, name.encode())]
            attribute = attribute[kind_A[attribute] != 0]
            is_odd[np.flatnonzero(np.bincount(node_A[attribute], minlength=len(is_odd)) > 1)] = True
            is_plain = self._take(name, first, node_A[attribute], values, value_A[attribute])
            is_odd_A[attribute[~is_plain]] = True
        is_odd[node_A[is_odd_A]] = True

    def _are(self, texts: Fields, text: bytes) -> BoolArray:
        """Return which of the texts are this one."""
        is_one = texts.end_F - texts.begin_F == len(text)
        begin = texts.begin_F[is_one]
        byte_AL = self.data_B[begin[:, None] + np.arange(len(text))]
        is_one[is_one] = (byte_AL == np.frombuffer(text, np.uint8)).all(axis=1)
        return np.asarray(is_one, bool)

    def _take(self, name: str, first: int, node: IntArray, values: Fields, row: IntArray) -> BoolArray:
        """Fill in the values of one attribute; returns which are of a kind that is read here."""
        kind, value = values.number_F[row], values.value_F[row]
        is_varint = values.wire_F[row] == Wire.VARINT
        if name in _OF_PROFILE:
            self.is_of_profile_N[first + node] = True
            return np.asarray(np.isin(kind, list(AttributeField)), bool)
        if name == "pg_name":
            is_plain: BoolArray = (kind == AttributeField.TEXT) & (values.wire_F[row] == Wire.LENGTH)
            texts = values.take(row[is_plain])
            ends = zip(texts.begin_F.tolist(), texts.end_F.tolist(), strict=True)
            self.group_N[first + node[is_plain]] = [self._group(self.data[begin:end]) for begin, end in ends]
            return is_plain
        if name == "is_cpu_op":
            is_plain = (kind == AttributeField.BOOL) & is_varint & (value < 2)
            self.runs_on_host_N[first + node[is_plain]] = value[is_plain] == 1
            return is_plain
        is_plain = np.isin(kind, _PLAIN) & is_varint & (value < _MAX_NUMBER)
        is_narrow = (kind == AttributeField.INT32) | (kind == AttributeField.UINT32)
        is_plain &= ~is_narrow | (value < 2**31)
        self.numbers[name][first + node[is_plain]] = value[is_plain]
        return is_plain

    def _group(self, name: bytes) -> int:
        return self.group_names.setdefault(name.decode(errors="replace"), len(self.group_names))

    def _add_waits(self, node_W: IntArray, id_W: NDArray[np.uint64], *, is_caller: bool) -> None:
        self.waits.append((node_W, id_W, np.full(len(node_W), is_caller)))

    def _read_one(self, row: int) -> None:
        """Fill the columns of a node from what the library makes of it."""
        node = Node()
        begin, end = int(self.begin_N[row]), int(self.end_N[row])
        try:
            node.ParseFromString(self.data[begin:end])
        except DecodeError:
            where = f"{self.path}, byte {begin}"
            raise TraceError(Mistake(where=where, found="not a node of a Chakra trace")) from None
        self.id_N[row], self.type_N[row], self.duration_N[row] = node.id, node.type, node.duration_micros
        self.odd_names[row] = node.name
        for ids, is_caller in ((node.data_deps, False), (node.ctrl_deps, True)):
            self._add_waits(np.full(len(ids), row), np.array(ids, np.uint64), is_caller=is_caller)
        attributes = {one.name: getattr(one, kind) for one in node.attr if (kind := one.WhichOneof("value"))}
        for name, column in self.numbers.items():
            column[row] = self._number(row, name, attributes.get(name))
        group = attributes.get("pg_name")
        self.group_N[row] = ABSENT if group is None else self._group(str(group).encode())
        self.runs_on_host_N[row] = attributes.get("is_cpu_op") is True
        self.is_of_profile_N[row] = not _OF_PROFILE.isdisjoint(attributes)

    def _number(self, row: int, name: str, value: Any) -> int:
        if value is None:
            return ABSENT
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MAX_NUMBER:
            return value
        self.written[row, name] = repr(value)
        return INVALID
