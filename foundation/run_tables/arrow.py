"""Arrow form of tables: the columns of a Parquet file, and the same with a label for each number that is a name.

Every field carries its `unit` and `meaning` as metadata. In a labelled table a column `x` that refers to a port, a NIC
or an address is followed by `x_label`, flags are truth values, codes are names, and text is dictionary-encoded. A label
is null where the number names nothing, or the record has no table `fabric`.
"""

from collections.abc import Callable, Mapping
from ipaddress import IPv4Address
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import Columns, IntArray
from fabrictune.foundation.run_tables.labels import nic_labels, port_labels
from fabrictune.foundation.run_tables.schema import FLAG, Column, Reference, TableSchema

LabelsOf = Callable[[IntArray], Any]  # from numbers to an Arrow array of their names


def to_arrow(schema: TableSchema, columns: Columns) -> Any:
    """Return the `pyarrow.Table` of a Parquet file: columns of the schema's types."""
    import pyarrow as pa

    fields, arrays = [], []
    for name, values in columns.items():
        column = schema.column(name)
        assert column is not None, f"{schema.name}.{name} is not in the schema"
        type_ = getattr(pa, column.type)()
        fields.append(pa.field(name, type_, metadata=_metadata(column)))
        arrays.append(pa.array(values if np.size(values) else [], type_))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def to_labelled_arrow(schema: TableSchema, columns: Columns, fabric: Columns | None) -> Any:
    """Return the `pyarrow.Table` for people; `fabric` is the record's table of that name."""
    import pyarrow as pa

    plain = to_arrow(schema, columns)
    labels = _labels(fabric)
    fields, arrays = [], []
    for field in plain.schema:
        column = schema.column(field.name)
        assert column is not None, "to_arrow has checked it"
        array = _named(column, plain.column(field.name))
        fields.append(pa.field(field.name, array.type, metadata=field.metadata))
        arrays.append(array)
        if column.refers_to in labels:
            label = labels[column.refers_to](_references(column, field.name, plain))
            fields.append(pa.field(f"{field.name}_label", label.type, metadata={"meaning": f"name of `{field.name}`"}))
            arrays.append(label)
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def units_of(table: Any) -> dict[str, str]:
    """Return the units of the columns of a `pyarrow.Table` that have one."""
    units = {field.name: (field.metadata or {}).get(b"unit", b"").decode() for field in table.schema}
    return {name: unit for name, unit in units.items() if unit}


def _metadata(column: Column) -> dict[str, str]:
    return {"unit": column.unit, "meaning": column.meaning}


def _named(column: Column, array: Any) -> Any:
    """Return flags as truth values, codes as names, and text dictionary-encoded."""
    if column.codes is FLAG:
        return array.cast("bool")
    if column.codes:
        return _encoded(array.to_numpy(), lambda code: column.codes.get(code, str(code)))
    return array.dictionary_encode() if column.type == "string" else array


def _labels(fabric: Columns | None) -> Mapping[Reference | None, LabelsOf]:
    """Return what names the numbers of each reference that can be followed."""
    labels: dict[Reference | None, LabelsOf] = {"ipv4": lambda ipv4: _encoded(ipv4, _address)}
    if fabric is not None:
        port_label_P, nic_label_C = port_labels(fabric), nic_labels(fabric)
        labels["port"] = lambda port: _taken(port, port_label_P)
        labels["nic"] = lambda nic: _taken(nic, nic_label_C)
    return labels


def _references(column: Column, name: str, table: Any) -> IntArray:
    """Return a column's numbers, -1 where they refer to nothing."""
    values = table.column(name).to_numpy()
    if column.refers_where:
        values = np.where(table.column(column.refers_where).to_numpy() >= 0, values, -1)
    return np.asarray(values)


def _encoded(values: IntArray, name_of: Callable[[int], str | None]) -> Any:
    """Return the names of whole numbers, dictionary-encoded."""
    import pyarrow as pa

    distinct, place = np.unique(values, return_inverse=True)
    names = np.array([name_of(value) for value in distinct.tolist()], object)
    return pa.array(names[place], pa.string()).dictionary_encode()


def _taken(index: IntArray, labels: NDArray[np.object_]) -> Any:
    """Return the label of each number, dictionary-encoded; null for one that has none."""
    import pyarrow as pa

    has_label = (index >= 0) & (index < len(labels))
    return pa.DictionaryArray.from_arrays(
        pa.array(index.astype(np.int32), mask=~has_label), pa.array(labels, pa.string())
    )


def _address(ipv4: int) -> str | None:
    return str(IPv4Address(ipv4)) if 0 <= ipv4 < 2**32 else None
