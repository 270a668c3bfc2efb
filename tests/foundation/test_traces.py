"""Traces survive a file unchanged, and refuse what no engine could run."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.foundation import tables
from fabrictune.foundation.errors import TraceError
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Dependencies, Medium, Operation, TrafficTrace


def traffic(lists: list[list[int]], **columns: Any) -> TrafficTrace:
    """Return transfers of one byte on queue pair 0, one for each list of dependencies."""
    num_rows = len(lists)
    zeros = np.zeros(num_rows, np.int64)
    defaults: dict[str, Any] = {
        "source_N": zeros,
        "destination_N": zeros + 1,
        "medium_N": np.full(num_rows, int(Medium.FABRIC)),
        "qp_N": zeros,
        "bytes_N": zeros + 1,
        "start_ps_N": zeros,
        "delay_ps_N": zeros,
        "operation_N": np.full(num_rows, UNKNOWN),
        "dependencies": Dependencies.from_lists(lists),
    }
    return TrafficTrace(**defaults | columns)


def requests(**columns: Any) -> CommTrace:
    """Return two all-reduces of ranks 0 and 1, the second after the first."""
    defaults: dict[str, Any] = {
        "groups": ((0, 1),),
        "rank_N": np.array([0, 1, 0, 1]),
        "operation_N": np.full(4, int(Operation.ALL_REDUCE)),
        "group_N": np.zeros(4, np.int64),
        "peer_N": np.full(4, UNKNOWN),
        "bytes_N": np.full(4, 1024),
        "compute_before_ps_N": np.array([0, 0, 5, 7]),
        "step_N": np.array([0, 0, 1, 1]),
        "axis_N": ("dp",) * 4,
        "policy_N": ("",) * 4,
        "tag_N": ("a", "a", "b", "b"),
        "dependencies": Dependencies.from_lists([[], [], [0], [1]]),
    }
    return CommTrace(**defaults | columns)


def assert_same(first: Any, second: Any) -> None:
    """Compare two traces column by column."""
    for name, value in vars(first).items():
        if isinstance(value, Dependencies):
            assert_same(value, getattr(second, name))
        elif isinstance(value, np.ndarray):
            assert np.array_equal(value, getattr(second, name)), name
        else:
            assert value == getattr(second, name), name


def test_a_communication_trace_survives_its_file(tmp_path: Path) -> None:
    """Groups travel in the metadata, everything else in columns."""
    trace = requests(groups=((0, 1), (5,)), issue_ps_N=np.array([1, 2, 3, 4]))
    trace.write(tmp_path / "requests.parquet")
    assert_same(CommTrace.read(tmp_path / "requests.parquet"), trace)


def test_what_was_not_measured_is_unknown(tmp_path: Path) -> None:
    """A planned trace has no times: every row reads -1, before and after its file."""
    requests().write(tmp_path / "requests.parquet")
    trace = CommTrace.read(tmp_path / "requests.parquet")
    assert trace.complete_ps_N.tolist() == [UNKNOWN] * 4


@given(
    st.integers(0, 12).flatmap(
        lambda n: st.tuples(*(st.lists(st.integers(0, max(r - 1, 0)), max_size=3 * (r > 0)) for r in range(n)))
    )
)
def test_any_traffic_trace_survives_its_file(
    tmp_path_factory: pytest.TempPathFactory, lists: tuple[list[int], ...]
) -> None:
    """Also the empty trace, rows without dependencies and rows with the same dependency twice."""
    path = tmp_path_factory.mktemp("traces") / "traffic.parquet"
    trace = traffic(list(lists))
    trace.write(path)
    assert_same(TrafficTrace.read(path), trace)


def test_the_same_trace_makes_the_same_bytes(tmp_path: Path) -> None:
    """Records of two runs with one seed are compared byte for byte."""
    for name in ("first", "second"):
        requests().write(tmp_path / name)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


@pytest.mark.parametrize(
    ("dependencies", "row"),
    [([[0]], 0), ([[1], [0]], 0), ([[], [3], [1], [2], [0]], 1), ([[], [2], [1], [1]], 1)],
)
def test_transfers_that_wait_for_one_another_are_refused(dependencies: list[list[int]], row: int) -> None:
    """They would never start; a row behind the circle (row 3 of the last case) waits forever too."""
    with pytest.raises(TraceError) as caught:
        traffic(dependencies)
    assert str(caught.value) == (
        f"traffic trace: rows that wait for one another in a circle; row {row} is in or behind it\n"
        "  next: remove one dependency of the circle"
    )


def test_a_dependency_may_point_forward() -> None:
    """Order in the file is no order in time: row 0 waits for row 2, row 2 for row 1."""
    assert traffic([[2], [], [1]]).dependencies.of(0).tolist() == [2]


def test_a_long_chain_is_checked_at_once() -> None:
    """A million transfers, each after the one before: the usual order needs one comparison, not a million rounds."""
    num_rows = 1_000_000
    zeros = np.zeros(num_rows, np.int64)
    offsets = np.maximum(np.arange(num_rows + 1) - 1, 0)
    chain = Dependencies(offset_N1=offsets, row_D=np.arange(num_rows - 1))
    columns: dict[str, Any] = dict.fromkeys(
        ("source_N", "destination_N", "qp_N", "bytes_N", "start_ps_N", "delay_ps_N", "operation_N"), zeros
    )
    assert len(TrafficTrace(medium_N=zeros, dependencies=chain, **columns)) == num_rows


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"bytes_N": np.array([-1, 1])}, "a negative value in bytes_N"),
        ({"delay_ps_N": np.array([0, -1])}, "a negative value in delay_ps_N"),
        ({"medium_N": np.array([0, 3])}, "an unknown medium"),
        ({"qp_N": np.array([0, UNKNOWN])}, "a transfer on the fabric without queue pair"),
        ({"dependencies": Dependencies.from_lists([[], [2]])}, "a dependency on a row that does not exist"),
        ({"dependencies": Dependencies.none(3)}, "dependency offsets that do not fit the rows"),
        (
            {"dependencies": Dependencies(offset_N1=np.array([0, 2, 1]), row_D=np.array([0]))},
            "dependency offsets that do not fit the rows",
        ),
    ],
)
def test_traffic_that_makes_no_sense_is_refused(columns: Mapping[str, Any], message: str) -> None:
    """Each rule once."""
    with pytest.raises(TraceError) as caught:
        traffic([[], []], **columns)
    assert str(caught.value) == f"traffic trace: {message}"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"bytes_N": np.array([1, 1, -1, 1])}, "a negative value in bytes_N"),
        ({"compute_before_ps_N": np.array([0, 0, -5, 0])}, "a negative value in compute_before_ps_N"),
        ({"group_N": np.array([0, 0, 0, 1])}, "a group that is not listed"),
        ({"operation_N": np.array([0, 0, 0, 99])}, "an unknown operation"),
        ({"rank_N": np.array([0, 1, 0, 2])}, "row 3: rank 2 is not in group 0"),
        ({"rank_N": np.array([0, 1, 0, 2**31])}, "a rank outside 0 to 2**31 - 1"),
        ({"groups": ((0, 1), (-1, 2))}, "a rank outside 0 to 2**31 - 1"),
        (
            {"dependencies": Dependencies.from_lists([[2], [], [0], []])},
            "rows that wait for one another in a circle; row 0 is in or behind it\n"
            "  next: remove one dependency of the circle",
        ),
    ],
)
def test_requests_that_make_no_sense_are_refused(columns: Mapping[str, Any], message: str) -> None:
    """Each rule once."""
    with pytest.raises(TraceError) as caught:
        requests(**columns)
    assert str(caught.value) == f"communication trace: {message}"


def test_columns_of_unequal_length_are_refused() -> None:
    """The message gives every length, so that the short one stands out."""
    with pytest.raises(TraceError, match=r"columns of unequal length: .*'bytes_N': 1"):
        traffic([[], []], bytes_N=np.array([1]))


def rewrite(path: Path, change: Any) -> None:
    """Write the file again with its table changed, keeping its metadata."""
    table = pq.read_table(path)
    pq.write_table(change(table).replace_schema_metadata(table.schema.metadata), path)


def set_column(name: str, column: pa.Array) -> Any:
    """Return a change that puts another column in the place of one."""
    return lambda table: table.set_column(table.column_names.index(name), name, column)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.drop_columns(["bytes"]), "{path}: no column 'bytes'"),
        (lambda table: table.drop_columns(["dependencies"]), "{path}: no column 'dependencies'"),
        (set_column("bytes", pa.array([1.5])), "{path}: column 'bytes' holds double, not whole numbers"),
        (set_column("bytes", pa.array(["1"])), "{path}: column 'bytes' holds string, not whole numbers"),
        (set_column("bytes", pa.array([None], pa.int64())), "{path}: column 'bytes' has empty cells"),
        (
            set_column("dependencies", pa.array([[None]], pa.large_list(pa.int64()))),
            "{path}: column 'dependencies' has empty cells",
        ),
        (
            set_column("dependencies", pa.array([0])),
            "{path}: column 'dependencies' holds int64, not lists of rows",
        ),
        (set_column("bytes", pa.array([-1])), "{path}: traffic trace: a negative value in bytes_N"),
    ],
)
def test_a_file_with_a_wrong_column_is_refused(tmp_path: Path, change: Any, message: str) -> None:
    """The message names the file, the column and what it should hold."""
    path = tmp_path / "traffic.parquet"
    traffic([[]]).write(path)
    rewrite(path, change)
    with pytest.raises(TraceError) as caught:
        TrafficTrace.read(path)
    assert str(caught.value) == message.format(path=path)


def test_a_trace_of_the_other_kind_is_refused(tmp_path: Path) -> None:
    """Requests are expanded into traffic; an engine takes only the latter."""
    requests().write(tmp_path / "requests.parquet")
    with pytest.raises(TraceError, match="a CommTrace, where a TrafficTrace is needed"):
        TrafficTrace.read(tmp_path / "requests.parquet")


def test_a_foreign_table_is_refused(tmp_path: Path) -> None:
    """Any program may write Parquet."""
    pq.write_table(pa.table({"x": [1]}), tmp_path / "x.parquet")
    with pytest.raises(TraceError, match="a foreign table, where a CommTrace is needed"):
        CommTrace.read(tmp_path / "x.parquet")


@pytest.mark.parametrize("groups", ["[[0, 1]", "[0, 1]", "null", "[" * 100_000])
def test_a_trace_whose_groups_cannot_be_read_is_refused(tmp_path: Path, groups: str) -> None:
    """The list of groups is JSON in the file's metadata."""
    path = tmp_path / "requests.parquet"
    requests().write(path)
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({"table": "CommTrace", "groups": groups}), path)
    with pytest.raises(TraceError) as caught:
        CommTrace.read(path)
    assert str(caught.value) == f"{path}: no list of groups in the file's metadata"


@pytest.mark.parametrize("content", [b"", b"PAR1", b"\x00" * 4096, json.dumps({"a": 1}).encode()])
def test_what_is_no_parquet_is_refused(tmp_path: Path, content: bytes) -> None:
    """An empty file, a stump, noise, and another format."""
    path = tmp_path / "traffic.parquet"
    path.write_bytes(content)
    with pytest.raises(TraceError, match="not a readable Parquet file"):
        TrafficTrace.read(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    """With the next step that every reader gives."""
    with pytest.raises(TraceError, match=r"none.parquet: no such file\n  next: check the path$"):
        TrafficTrace.read(tmp_path / "none.parquet")


def test_a_file_of_too_many_rows_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit holds for what the file's footer says; here it is lowered to three rows."""
    monkeypatch.setattr(tables, "MAX_ROWS", 3)
    requests().write(tmp_path / "requests.parquet")
    with pytest.raises(TraceError, match="more than 3 rows"):
        CommTrace.read(tmp_path / "requests.parquet")


def test_notes_of_a_trace_travel_in_its_file(tmp_path: Path) -> None:
    """What a reader guessed is known to whoever reads the file it wrote; notes that are no list are refused."""
    for trace in (requests(notes=("one left out",)), traffic([[]], notes=("one left out",))):
        path = tmp_path / "trace.parquet"
        trace.write(path)
        assert type(trace).read(path).notes == ("one left out",)
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"notes": b"7"}), path)
    with pytest.raises(TraceError, match="notes in the file's metadata that cannot be read"):
        TrafficTrace.read(path)


def test_relays_travel_in_a_file_that_has_some(tmp_path: Path) -> None:
    """A file without any is as it was before there were relays."""
    for relays in ({}, {"relayed_from_N": np.array([-1, 3]), "relayed_to_N": np.array([-1, 0])}):
        path, trace = tmp_path / "trace.parquet", traffic([[], []], **relays)
        trace.write(path)
        assert ("relayed_to" in pq.read_schema(path).names) == bool(relays)
        assert_same(TrafficTrace.read(path), trace)


@pytest.mark.parametrize(
    "wrong",
    [
        {"relayed_from_N": np.array([0])},
        {"relayed_from_N": np.array([0]), "relayed_to_N": np.array([-2])},
        {"relayed_from_N": np.array([0]), "relayed_to_N": np.array([1]), "medium_N": np.array([int(Medium.NVLINK)])},
    ],
)
def test_a_relay_has_two_gpus_and_a_way_over_the_fabric(wrong: dict[str, Any]) -> None:
    """NVLink is a transfer's whole way, or its way to a NIC."""
    with pytest.raises(TraceError, match=r"^traffic trace: a relay without both its GPUs, or off the fabric$"):
        traffic([[]], **wrong)
