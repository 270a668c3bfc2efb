"""Chakra traces: what is written is read again, graphs become waits and work, and damage is named."""

import json
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fabrictune.collectives.traces import chakra_nodes, request_graph
from fabrictune.collectives.traces.chakra import GROUPS_FILE, read_chakra
from fabrictune.collectives.traces.chakra_schema import GlobalMetadata, Node, NodeType
from fabrictune.collectives.traces.chakra_writing import write_chakra
from fabrictune.foundation.errors import RecordError, TraceError
from fabrictune.foundation.traces import CommTrace, Operation

ALONE = "collectives of all ranks, of which one alone has a file, that move nothing: {}"


def save(path: Path, *nodes: object) -> Path:
    """Write nodes after the metadata, each with its length before it (below 128 bytes)."""
    bodies = [message.SerializeToString() for message in (GlobalMetadata(version="0.0.4"), *nodes)]
    path.write_bytes(b"".join(bytes([len(body)]) + body for body in bodies))
    return path


def collective(number: int, *waits: int, kind: int = 0, size: int = 100) -> object:
    node = Node(id=number, type=NodeType.COLLECTIVE, data_deps=waits)
    node.attr.add(name="comm_type", int64_val=kind)
    node.attr.add(name="comm_size", uint64_val=size)  # as some converters have it
    return node


def work(number: int, micros: int, *waits: int) -> object:
    return Node(id=number, type=NodeType.COMPUTE, duration_micros=micros, ctrl_deps=waits)


def test_what_is_written_is_read_again(both: CommTrace, tmp_path: Path) -> None:
    """Every column that a request has, to the picosecond; one file a rank and the groups beside them."""
    paths = write_chakra(both, tmp_path / "out", "step")
    assert [path.name for path in paths] == ["step.0.et", "step.1.et"]
    assert json.loads((tmp_path / "out" / GROUPS_FILE).read_text()) == {"0": [0, 1]}
    again = read_chakra(paths)
    for name, column in vars(both).items():
        if isinstance(column, np.ndarray):
            assert np.array_equal(column, getattr(again, name)), name
    assert (again.groups, again.tag_N) == (both.groups, both.tag_N)
    assert np.array_equal(again.dependencies.row_D, both.dependencies.row_D)


def test_an_export_is_put_in_place_whole(both: CommTrace, tmp_path: Path) -> None:
    """Where a rank's file cannot be written (its name is too long), the folder stays as it was."""
    write_chakra(both, tmp_path / "out", "step")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    (tmp_path / "out" / GROUPS_FILE).write_text("{}")
    with pytest.raises(RecordError, match="does not replace"):
        write_chakra(both, tmp_path / "out", "x" * 300)
    for path in list((tmp_path / "out").glob("*.et")):
        path.unlink()
    with pytest.raises(RecordError, match="File name too long"):
        write_chakra(both, tmp_path / "out", "x" * 300)
    assert [path.name for path in (tmp_path / "out").iterdir()] == [GROUPS_FILE]
    assert (tmp_path / "out" / GROUPS_FILE).read_text() == "{}"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    write_chakra(both, tmp_path / "out", "step")
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_the_longest_work_on_the_way_counts(tmp_path: Path) -> None:
    """Node 5 waits for 1 through works of 3 us and of 1 + 4 us: one wait, 5 us."""
    nodes = [collective(1), work(2, 3, 1), work(3, 1, 1), work(4, 4, 3), collective(5, 2, 4, kind=6)]
    trace = read_chakra([save(tmp_path / "one.0.et", *nodes)])
    assert trace.operation_N.tolist() == [Operation.ALL_REDUCE, Operation.ALL_TO_ALL]
    assert trace.compute_before_ps_N.tolist() == [0, 5_000_000]
    assert trace.dependencies.of(1).tolist() == [0]


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        ([collective(1, 9)], "node 1: a wait for node 9, which there is not"),
        ([collective(1, 2), collective(2, 1)], "node 1: a node that waits for itself, through others"),
        ([collective(1), collective(1)], "node 1: a node of the same id before"),
        ([collective(1, kind=3)], "node 1: collective type 3"),
        ([Node(id=1, type=NodeType.SEND)], "node 1, comm_dst: none"),
    ],
    ids=["missing", "circle", "twice", "gather", "no peer"],
)
def test_what_is_wrong_is_named_with_its_node(nodes: list[object], found: str, tmp_path: Path) -> None:
    """File, node, and what it is."""
    with pytest.raises(TraceError) as error:
        read_chakra([save(tmp_path / "bad.0.et", *nodes)])
    assert found in str(error.value)


@pytest.mark.parametrize("name", ["trace.et", "trace.x.et"])
def test_a_file_without_rank_is_refused(name: str, tmp_path: Path) -> None:
    """The rank stands in the name alone."""
    with pytest.raises(TraceError, match=r"NAME\.RANK\.et"):
        read_chakra([save(tmp_path / name, collective(1))])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=200)
@given(data=st.data())
def test_damage_is_a_trace_or_a_named_error(data: st.DataObject, both: CommTrace, tmp_path: Path) -> None:
    """Bytes changed, cut off and put in: never another exception."""
    path = write_chakra(both, tmp_path / "out", "damaged")[0]
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    with suppress(TraceError):
        read_chakra([path])


def on_host(number: int, micros: int, *waits: int) -> object:
    """Return the call of a collective as mlcommons/chakra's pytorch_converter writes it."""
    node = Node(
        id=number, name="c10d::allreduce_(0)", type=NodeType.COLLECTIVE, duration_micros=micros, ctrl_deps=waits
    )
    node.attr.add(name="is_cpu_op", bool_val=True)
    return node


def test_calls_on_the_host_are_work(tmp_path: Path) -> None:
    """The kernel waits for the call, which took 5 us; the call is not communication, and a note counts it."""
    trace = read_chakra(
        [save(tmp_path / "one.0.et", on_host(1, 5), collective(2, 1), on_host(3, 7, 2), collective(4, 3))]
    )
    assert trace.compute_before_ps_N.tolist() == [5_000_000, 7_000_000]
    assert trace.notes == ("nodes of collectives on the host, taken as work: 2", ALONE.format(2))


def test_a_message_without_peer_says_where_to_find_it(tmp_path: Path) -> None:
    """MLCommons' converter writes sends and receives with their size alone."""
    node = Node(id=1, type=NodeType.SEND)
    node.attr.add(name="comm_size", int64_val=8)
    with pytest.raises(
        TraceError, match=r"node 1, comm_dst: none\n  allowed: [^\n]*\n  next: MLCommons' converter leaves"
    ):
        read_chakra([save(tmp_path / "one.0.et", node)])


def test_the_callers_of_a_profile_are_no_dependencies(tmp_path: Path) -> None:
    """MLCommons' converter leaves some out, and some are what they wait for; only without rf_id are they waited for."""
    calls = [work(1, 5, 99, 2), collective(2, 1)]
    with pytest.raises(TraceError, match="node 1: a wait for node 99"):
        read_chakra([save(tmp_path / "one.0.et", *calls)])
    calls[0].attr.add(name="rf_id", int64_val=110)  # type: ignore[attr-defined]
    trace = read_chakra([save(tmp_path / "one.0.et", *calls)])
    assert trace.compute_before_ps_N.tolist() == [5_000_000]
    assert trace.notes == ("control dependencies, which are the callers of a profile, left out: 2", ALONE.format(1))


def test_ranks_without_a_file_are_noted(tmp_path: Path) -> None:
    """Files of ranks 0, 1, 3 and 4: rank 2 is missing below the highest, and groups of all lack it."""
    paths = [save(tmp_path / f"job.{rank}.et", collective(1)) for rank in (0, 1, 3, 4)]
    trace = read_chakra(paths)
    assert trace.groups == ((0, 1, 3, 4),)
    assert trace.notes == ("ranks without a file, whose part is missing (2): 1",)


def test_members_of_a_named_group_without_a_file_are_noted(tmp_path: Path) -> None:
    """The file of groups knows 16 ranks, of which 2 have files."""
    (tmp_path / GROUPS_FILE).write_text(json.dumps({"world": list(range(16))}))
    node = collective(1)
    node.attr.add(name="pg_name", string_val="world")  # type: ignore[attr-defined]
    trace = read_chakra([save(tmp_path / f"job.{rank}.et", node) for rank in (0, 1)])
    assert trace.notes == ("ranks without a file, whose part is missing (2, 3, 4, 5, 6, 7, 8, 9 and 6 more): 14",)


def test_one_file_alone_is_no_group(tmp_path: Path) -> None:
    """Its collectives move nothing, which a note says; so are those of a group that no file names."""
    node = collective(2, 1)
    node.attr.add(name="pg_name", string_val="7")  # type: ignore[attr-defined]
    trace = read_chakra([save(tmp_path / "job.0.et", collective(1), node)])
    assert trace.notes == (
        ALONE.format(2),
        "collectives of groups that no comm_group.json names (7), taken as all ranks: 1",
    )


def test_more_nodes_than_can_be_used_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node is 300 bytes in memory: two million of them are within a GiB."""
    monkeypatch.setattr(chakra_nodes, "MAX_NODES", 1)
    next_step = "record fewer steps, or give the PyTorch profile"
    with pytest.raises(TraceError, match=rf"byte \d+: more than 1 nodes\n  next: {next_step}$"):
        read_chakra([save(tmp_path / "x.0.et", collective(0), collective(1, 0))])


def test_more_waits_than_can_be_used_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where ways meet, all requests before are waited for: a chain of works that each join one more is quadratic."""
    monkeypatch.setattr(request_graph, "MAX_JOINED", 8)
    joins = [node for n in range(1, 10, 2) for node in (collective(n), work(n + 1, 1, n, max(n - 1, 1)))]
    with pytest.raises(TraceError, match="node 8: more than 8 waits where ways meet, up to here"):
        read_chakra([save(tmp_path / "x.0.et", *joins)])
    chain = [collective(1), collective(2), work(3, 1, 1, 2), *(collective(n, 3) for n in range(4, 10))]
    with pytest.raises(TraceError, match="node 8: more than 8 waits, up to here"):
        read_chakra([save(tmp_path / "x.0.et", *chain)])


def test_work_longer_than_a_column_holds_is_refused(tmp_path: Path) -> None:
    """Of one node, and of a chain of them."""
    long = 2**62 // 10**6
    with pytest.raises(TraceError, match=f"node 1: work of {long} us"):
        read_chakra([save(tmp_path / "x.0.et", work(1, long))])
    with pytest.raises(TraceError, match=f"node 3: work of {2 * (long - 1)} us before it"):
        read_chakra([save(tmp_path / "x.0.et", work(1, long - 1), work(2, long - 1, 1), collective(3, 2))])


def test_a_root_that_is_no_number_is_refused(tmp_path: Path) -> None:
    """A broadcast's root is a rank."""
    node = collective(1, kind=5)
    node.attr.add(name="root", string_val="first")  # type: ignore[attr-defined]
    with pytest.raises(TraceError, match="node 1, root: 'first'"):
        read_chakra([save(tmp_path / "x.0.et", node)])
