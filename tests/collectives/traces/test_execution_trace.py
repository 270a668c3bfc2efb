"""Execution traces of PyTorch's observer: nodes become requests in order, groups are found, and damage is named.

The nodes are built to schema 1.1.1-chakra.0.0.4 of execution_trace_observer.cpp; the attributes of a collective are
those of getCommsNodeAttrs there.
"""

import gzip
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fabrictune.collectives.traces.execution_trace import is_execution_trace
from fabrictune.collectives.traces.formats import read_trace
from fabrictune.foundation.errors import TraceError
from fabrictune.foundation.traces import CommTrace, Operation

GROUPS = [
    {"pg_name": "0", "pg_desc": "default_pg", "ranks": [], "group_size": 4},
    {"pg_name": "5", "pg_desc": "tp", "ranks": [0, 2], "group_size": 2},
]


def node(name: str, values: list[Any], attributes: dict[str, Any]) -> dict[str, Any]:
    common = {"rf_id": 1, "scope": 7}
    attrs = [{"name": key, "type": "string", "value": value} for key, value in {**common, **attributes}.items()]
    return {"id": 9, "name": name, "ctrl_deps": 2, "inputs": {"values": values}, "attrs": attrs}


def collective(name: str, group: str = "0", place: int = 0, **more: Any) -> dict[str, Any]:
    described = {"collective_name": name, "dtype": "Float", "in_msg_nelems": 100, "out_msg_nelems": 50}
    described |= {"pg_name": group, "pg_desc": "dp"}
    return node("record_param_comms", [[], [1, False], [group, "dp"], place, name], {**described, **more})


def save(path: Path, *nodes: dict[str, Any]) -> Path:
    first = node("## process_group:init ##", [json.dumps(GROUPS)], {})
    document = {"schema": "1.1.1-chakra.0.0.4", "pid": 7, "time": "2026-11-23", "nodes": [first, *nodes]}
    text = json.dumps(document).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def read(*paths: Path) -> CommTrace:
    return read_trace(paths)


@pytest.mark.parametrize("suffix", ["json", "json.gz"])
def test_collectives_become_requests(suffix: str, tmp_path: Path) -> None:
    """400 B each; those of one group in their order, without work; operators and waits are none."""
    nodes = [collective("allreduce"), node("aten::add", [1], {}), collective("wait"), collective("_allgather_base")]
    path = save(
        tmp_path / f"rank-0.{suffix}", *nodes, collective("allreduce", "5"), collective("sparse"), collective("gather")
    )
    assert is_execution_trace(path)
    trace = read(path)
    assert trace.groups == ((0, 1, 2, 3), (0, 2))
    assert trace.rank_N[:3].tolist() == [0, 0, 0]
    assert trace.operation_N[:3].tolist() == [Operation.ALL_REDUCE, Operation.ALL_GATHER, Operation.ALL_REDUCE]
    assert trace.bytes_N[:3].tolist() == [400] * 3
    assert [trace.dependencies.of(row).tolist() for row in range(3)] == [[], [0], []]
    assert not trace.compute_before_ps_N.any()
    assert trace.notes == (
        f"{path}: collectives of kinds that are not read, left out (sparse 1): 1",
        "gathers and scatters of groups of which a rank has no file, left out: 1",
        "requests without times, between which no work is counted: 3",
        "ranks without a profile, taken to ask what the lowest profiled rank of their group does: 3 of 4",
    )


def test_messages_are_between_places_of_their_group(tmp_path: Path) -> None:
    """Place 1 of the group of ranks 0 and 2 is rank 2."""
    paths = [
        save(tmp_path / "et_0.json", collective("send", "5", 1)),
        save(tmp_path / "et_2.json", collective("recv", "5", 0)),
    ]
    assert read(*paths).peer_N.tolist() == [2, 0]


def test_a_stride_tells_the_ranks_where_no_group_is_listed(tmp_path: Path) -> None:
    """As in a profile."""
    strided = {"global_rank_start": 0, "global_rank_stride": 8, "pg_size": 3}
    assert read(save(tmp_path / "et_8.json", collective("allreduce", "9", **strided))).groups == ((0, 8, 16),)


@pytest.mark.parametrize(
    ("name", "nodes", "message"),
    [
        ("et.json", [], "no rank at the end of the name\n  allowed: NAME_RANK.json"),
        (
            "et_0.json",
            [node("aten::add", [], {})],
            "no record_param_comms that describes its collective\n  next: record",
        ),
        ("et_1.json", [collective("allreduce", "5")], r"a collective of ranks \[0, 2\] in the trace of rank 1"),
        ("et_0.json", [collective("send", "5", 2)], "a send to or from 2\n  allowed: a place in its group"),
        ("et_0.json", [collective("allreduce", dtype="Quad")], "elements of type 'Quad'"),
    ],
)
def test_mistakes_are_named(name: str, nodes: list[dict[str, Any]], message: str, tmp_path: Path) -> None:
    """With what to do."""
    with pytest.raises(TraceError, match=message):
        read(save(tmp_path / name, *nodes))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_is_a_trace_or_a_named_error(data: st.DataObject, tmp_path: Path) -> None:
    """Bytes changed, cut away or put in."""
    path = save(tmp_path / "et_0.json", collective("allreduce"), collective("send", "5", 1))
    whole = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, max(len(whole) - 1, 0)))
        whole[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    path.write_bytes(bytes(whole))
    with suppress(TraceError):
        read(path)
