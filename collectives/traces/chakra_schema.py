"""Messages of a Chakra execution trace, as Protocol Buffers descriptors: the parts that a network needs.

What is left out here (inputs, outputs, storage) is kept by the library as unknown fields, and otherwise ignored.

Source: mlcommons/chakra, schema/protobuf/et_def.proto; field numbers are those of schema 0.0.4.
"""

from enum import IntEnum
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "ChakraProtoMsg"
_LABELS = descriptor_pb2.FieldDescriptorProto
_TYPES = {
    "string": _LABELS.TYPE_STRING,
    "uint64": _LABELS.TYPE_UINT64,
    "int64": _LABELS.TYPE_INT64,
    "uint32": _LABELS.TYPE_UINT32,
    "int32": _LABELS.TYPE_INT32,
    "sint32": _LABELS.TYPE_SINT32,
    "sint64": _LABELS.TYPE_SINT64,
    "fixed32": _LABELS.TYPE_FIXED32,
    "fixed64": _LABELS.TYPE_FIXED64,
    "sfixed32": _LABELS.TYPE_SFIXED32,
    "sfixed64": _LABELS.TYPE_SFIXED64,
    "bool": _LABELS.TYPE_BOOL,
    "double": _LABELS.TYPE_DOUBLE,
    "float": _LABELS.TYPE_FLOAT,
}
# name -> (number, type); a type in brackets is repeated, one that begins with a capital is another message.
_MESSAGES: dict[str, dict[str, tuple[int, str]]] = {
    "AttributeProto": {
        "name": (1, "string"),
        "doc_string": (2, "string"),
        **{
            f"{kind}_val": (number, kind)
            for number, kind in (
                (3, "double"),
                (5, "float"),
                (7, "int32"),
                (9, "int64"),
                (11, "uint32"),
                (13, "uint64"),
                (15, "sint32"),
                (17, "sint64"),
                (19, "fixed32"),
                (21, "fixed64"),
                (23, "sfixed32"),
                (25, "sfixed64"),
                (27, "bool"),
                (29, "string"),
            )
        },
    },
    "GlobalMetadata": {"version": (1, "string"), "attr": (2, "[AttributeProto]")},
    "Node": {
        "id": (1, "uint64"),
        "name": (2, "string"),
        "type": (3, "int32"),  # an enum has the same bytes
        "ctrl_deps": (4, "[uint64]"),
        "data_deps": (5, "[uint64]"),
        "start_time_micros": (6, "uint64"),
        "duration_micros": (7, "uint64"),
        "attr": (10, "[AttributeProto]"),
    },
}


class NodeField(IntEnum):
    """Numbers of a node's fields that are read."""

    ID = 1
    NAME = 2
    TYPE = 3
    CALLERS = 4  # ctrl_deps
    DATA_WAITS = 5  # data_deps
    DURATION = 7
    ATTRIBUTE = 10


class AttributeField(IntEnum):
    """Numbers of an attribute's fields that are read."""

    NAME = 1
    REMARK = 2  # doc_string
    INT32 = 7
    INT64 = 9
    UINT32 = 11
    UINT64 = 13
    BOOL = 27
    TEXT = 29


class NodeType(IntEnum):
    """Types of nodes, as far as they are used here."""

    COMPUTE = 4
    SEND = 5
    RECEIVE = 6
    COLLECTIVE = 7


class CollectiveType(IntEnum):
    """The values of the attribute `comm_type`."""

    ALL_REDUCE = 0
    REDUCE = 1
    ALL_GATHER = 2
    GATHER = 3
    SCATTER = 4
    BROADCAST = 5
    ALL_TO_ALL = 6
    REDUCE_SCATTER = 7
    REDUCE_SCATTER_BLOCK = 8
    BARRIER = 9


def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="et_def.proto", package=_PACKAGE, syntax="proto3")
    for message_name, fields in _MESSAGES.items():
        message = file.message_type.add(name=message_name)
        if message_name == "AttributeProto":
            message.oneof_decl.add(name="value")
        for name, (number, written) in fields.items():
            kind = written.strip("[]")
            field = message.field.add(name=name, number=number)
            field.label = _LABELS.LABEL_REPEATED if written != kind else _LABELS.LABEL_OPTIONAL
            if kind in _TYPES:
                field.type = _TYPES[kind]
            else:
                field.type, field.type_name = _LABELS.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
            if name.endswith("_val"):
                field.oneof_index = 0
    return file


_pool = descriptor_pool.DescriptorPool()
_pool.Add(_file())


def _message(name: str) -> Any:
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


GlobalMetadata = _message("GlobalMetadata")
Node = _message("Node")
