"""Diagnoses of snapshots, each with one fault or with none."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from fabrictune.trainer_probe.operation.observations import (
    Heartbeat,
    NodeView,
    RankStatus,
    ServiceStatus,
    Snapshot,
    StorageStatus,
    message_group,
)
from fabrictune.trainer_probe.operation.rules import RuleSettings, diagnose

SETTINGS = RuleSettings()
GROUPS = {0: (0, 1), 1: (2, 3), 2: (0, 2), 3: (1, 3)}
NODES = {0: "a", 1: "a", 2: "b", 3: "b"}
CLOSED = "RuntimeError: [../gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:5121"
WAITS_FOR_2 = {"waits_for": (2, 5), "issued": {0: 5, 2: 6}}


def make_snapshot(
    ranks: Mapping[int, Mapping[str, Any]] | None = None,
    nodes: Mapping[str, Mapping[str, Any]] | None = None,
    views: Mapping[str, Mapping[str, Any]] | None = None,
    **values: Any,
) -> Snapshot:
    """Return four ranks on two nodes in step 7 of 1 s each, with some fields of ranks, heartbeats and views changed."""
    usual: dict[str, Any] = {
        "section": "step",
        "step": 7,
        "num_changes": 90,
        "quiet_s": 0.1,
        "section_s": 30.0,
        "process_state": "S",
        "cpu_s": 25.0,
        "idle_s": 0.05,
        "issued": {0: 5, 1: 5, 2: 5, 3: 5},
    }
    statuses = {
        rank: RankStatus(rank=rank, pid=100 + rank, **{**usual, **(ranks or {}).get(rank, {})}) for rank in NODES
    }
    heartbeats = {
        node: replace(
            Heartbeat(
                node=node,
                generation=1,
                number=9,
                state="running",
                ranks=tuple(status for rank, status in statuses.items() if NODES[rank] == node),
            ),
            **(nodes or {}).get(node, {}),
        )
        for node in "ab"
    }
    view_values = {node: {"heartbeat": heartbeats[node], "age_s": 0.1, **(views or {}).get(node, {})} for node in "ab"}
    return Snapshot(
        **{
            "generation": 1,
            "nodes": tuple(NodeView(node=node, **view_values[node]) for node in "ab"),
            "node_of_rank": NODES,
            "groups": GROUPS,
            "step_s": (1.0,) * 8,
            **values,
        }
    )


FAILED = {"section": "failed", "exit_code": 1, "process_state": "", "quiet_s": 2.0}
CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "killed, peers fail at once": (
        {
            "ranks": {
                2: {"exit_code": -9, "process_state": "", "quiet_s": 0.2},
                0: {**FAILED, "error": CLOSED, "waits_for": (2, 5)},
            }
        },
        "rank killed",
        "rank 2",
    ),
    "abort after a lost peer is the peer's": (
        {
            "ranks": {
                2: {"exit_code": -9, "process_state": "", "quiet_s": 0.2},
                0: {"exit_code": -6, "process_state": "", "quiet_s": 3.0, "error": CLOSED, "waits_for": (2, 5)},
            }
        },
        "rank killed",
        "rank 2",
    ),
    "stopped, peers wait": (
        {"ranks": {2: {"process_state": "T", "quiet_s": 2.4, "idle_s": 2.4}, 0: {"quiet_s": 2.3, **WAITS_FOR_2}}},
        "rank stopped",
        "rank 2",
    ),
    "own error": (
        {"ranks": {3: {**FAILED, "error": "ValueError: a shape"}, 1: {**FAILED, "error": CLOSED, "quiet_s": 1.9}}},
        "rank failed",
        "rank 3",
    ),
    "gone, and nobody says how": (
        {"ranks": {2: {"process_state": "", "quiet_s": 12.0, "state_s": 11.0}, 0: {**FAILED, "error": CLOSED}}},
        "rank failed",
        "rank 2",
    ),
    "damaged data": (
        {"ranks": {1: {**FAILED, "error": "TokenFileError: /data/t.bin: id number 7: id 9, beyond the vocabulary"}}},
        "data damaged",
        "data /data/t.bin",
    ),
    "damaged checkpoint": (
        {"ranks": {1: {**FAILED, "error": "CheckpointError: /c/step-00000010.g3/0.safetensors: checksum differs"}}},
        "checkpoint damaged",
        "checkpoint step 10",
    ),
    "full disk in a rank": (
        {"ranks": {1: {**FAILED, "error": "OSError: [Errno 28] No space left on device"}}},
        "storage full",
        "rank 1",
    ),
    "executor ended": ({"views": {"b": {"has_ended": True}}}, "executor lost", "node b"),
    "executor silent": ({"views": {"b": {"age_s": 11.0}}}, "executor lost", "node b"),
    "node silent and not reached": (
        {"views": {"b": {"age_s": 11.0}}, "nodes": {"a": {"unreachable": ("b",)}}},
        "node lost",
        "node b",
    ),
    "hung": (
        {"ranks": {2: {"quiet_s": 12.0, "idle_s": 11.0}, 0: {"quiet_s": 11.9, "idle_s": 11.0, **WAITS_FOR_2}}},
        "rank hung",
        "rank 2",
    ),
    "endless loop": (
        {"ranks": {2: {"quiet_s": 130.0, "idle_s": 0.0}, 0: {"quiet_s": 129.0, "idle_s": 11.0, **WAITS_FOR_2}}},
        "rank hung",
        "rank 2",
    ),
    "busy for long": (
        {"ranks": {2: {"quiet_s": 50.0, "idle_s": 0.0}, 0: {"quiet_s": 49.0, "idle_s": 11.0, **WAITS_FOR_2}}},
        "rank slow",
        "rank 2",
    ),
    "duty-cycled": (
        {"ranks": {2: {"process_state": "T", "quiet_s": 12.0, "idle_s": 0.4}, 0: {"quiet_s": 12.0, **WAITS_FOR_2}}},
        "rank slow",
        "rank 2",
    ),
    "link cut, all have issued": (
        {
            "ranks": {
                0: {"quiet_s": 12.0, "idle_s": 11.0, **WAITS_FOR_2},
                2: {"quiet_s": 12.0, "idle_s": 11.0, **WAITS_FOR_2},
            }
        },
        "link cut",
        "link a-b",
    ),
    "link cut, messages": (
        {
            "ranks": {
                0: {"quiet_s": 12.0, "idle_s": 11.0, "issued": {-3: 3}, "waits_for": (message_group(0, 2, 4), 2)},
                2: {"quiet_s": 12.0, "idle_s": 11.0, "issued": {-3: 3}, "waits_for": (message_group(0, 2, 4), 2)},
            }
        },
        "link cut",
        "link a-b",
    ),
    "link cut, errors": (
        {"ranks": {rank: {**FAILED, "error": CLOSED, "waits_for": (2 + rank % 2, 5)} for rank in NODES}},
        "link cut",
        "link a-b",
    ),
    "deadlock": (
        {
            "ranks": {
                0: {"quiet_s": 12.0, "idle_s": 11.0, "waits_for": (0, 5), "issued": {0: 6, 2: 5}},
                1: {"quiet_s": 12.0, "idle_s": 11.0, "waits_for": (3, 5), "issued": {0: 5, 3: 6}},
                3: {"quiet_s": 12.0, "idle_s": 11.0, "waits_for": (1, 5), "issued": {1: 6, 3: 5}},
                2: {"quiet_s": 12.0, "idle_s": 11.0, "waits_for": (2, 5), "issued": {1: 5, 2: 6}},
            }
        },
        "deadlock",
        "ranks 0, 1, 3, 2",
    ),
    "loader gone": (
        {
            "ranks": {
                rank: {**FAILED, "error": "LoaderError: loader x: has ended before its workers"} for rank in (0, 1)
            }
        },
        "loader failed",
        "loader a",
    ),
    "loader ended by itself": (
        {"nodes": {"b": {"services": (ServiceStatus(name="loader", pid=7, process_state="", state_s=0.6),)}}},
        "loader failed",
        "loader b",
    ),
    "loader stopped": (
        {"nodes": {"b": {"services": (ServiceStatus(name="loader", pid=7, process_state="T", state_s=2.5),)}}},
        "loader failed",
        "loader b",
    ),
    "loader waited for": (
        {"ranks": {rank: {"quiet_s": 12.0, "idle_s": 11.0, "tag": "loader"} for rank in (2, 3)}},
        "loader failed",
        "loader b",
    ),
    "store gone": (
        {"ranks": {rank: {**FAILED, "error": "StartupError: store: was lost (Broken pipe)"} for rank in NODES}},
        "store lost",
        "store",
    ),
    "store runs and is not reached": (
        {
            "ranks": {2: {**FAILED, "error": "StartupError: tcp://10.0.0.1:1: cannot be reached (timed out)"}},
            "nodes": {"a": {"services": (ServiceStatus(name="store", pid=7, process_state="S"),)}},
        },
        "link cut",
        "link a-b",
    ),
    "not a number": ({"losses": ((5, 2.0), (6, math.nan))}, "not a number", "step 6"),
    "spike": (
        {"losses": (*((step, 2.0 + 0.01 * (step % 3)) for step in range(20)), (20, 9.0))},
        "loss spike",
        "step 20",
    ),
    "full storage": (
        {
            "nodes": {
                "a": {
                    "storages": (StorageStatus(url="file:///c", failure="OSError: [Errno 28] No space left on device"),)
                }
            }
        },
        "storage full",
        "storage file:///c",
    ),
    "slow storage": (
        {"nodes": {"a": {"storages": (StorageStatus(url="file:///c", write_s=61.0),)}}, "save_s": (0.1, 0.1)},
        "storage slow",
        "storage file:///c",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_fault_is_named(name: str) -> None:
    """The cause and the entity are those of the fault, and not of what it did to others."""
    values, cause, entity = CASES[name]
    diagnosis = diagnose(make_snapshot(**values), SETTINGS)
    assert diagnosis is not None
    assert (diagnosis.cause, diagnosis.entity) == (cause, entity)
    assert diagnosis.evidence
    assert diagnosis.is_fatal == (cause not in ("rank slow", "loss spike", "storage slow") and entity[:7] != "storage")


HEALTHY: dict[str, dict[str, Any]] = {
    "training": {},
    "stopped for less than two steps": {"ranks": {2: {"process_state": "T", "quiet_s": 1.9, "idle_s": 1.9}}},
    "stopped but its page changes": {"ranks": {2: {"process_state": "T", "quiet_s": 0.4, "idle_s": 0.4}}},
    "stopped a moment ago while it waits": {
        "ranks": {2: {"process_state": "T", "quiet_s": 4.0, "idle_s": 4.0, "state_s": 0.2}}
    },
    "a peer's error, and a node not heard since": {
        "ranks": {0: {**FAILED, "error": CLOSED, "quiet_s": 0.1}},
        "views": {"b": {"age_s": 0.4}},
    },
    "a wait, and a node not heard since it began": {
        "ranks": {0: {"quiet_s": 10.5, "idle_s": 10.5, **WAITS_FOR_2}, 2: {"quiet_s": 0.6, **WAITS_FOR_2}},
        "views": {"b": {"age_s": 9.9}},
    },
    "a rank that is gone, and whether a signal ended it is not known yet": {
        "ranks": {2: {"process_state": "", "quiet_s": 2.5, "state_s": 0.0}, 0: {**FAILED, "error": CLOSED}}
    },
    "a loader that ended a moment ago: its rank may have": {
        "nodes": {"b": {"services": (ServiceStatus(name="loader", pid=7, process_state="", state_s=0.1),)}}
    },
    "others wait for a rank, and its node is not heard since": {
        "ranks": {0: {"quiet_s": 5.0, **WAITS_FOR_2}},
        "views": {"b": {"age_s": 4.8}},
    },
    "a late heartbeat": {"views": {"b": {"age_s": 9.0}}},
    "all late at once: the driver was": {"views": {"a": {"age_s": 15.0}, "b": {"age_s": 15.0}}},
    "not reached, but training": {"nodes": {"a": {"unreachable": ("b",)}}},
    "first step compiles": {"ranks": {rank: {"section": "first step", "quiet_s": 400.0} for rank in NODES}},
    "a save takes long": {"ranks": {rank: {"section": "save", "quiet_s": 50.0, "idle_s": 50.0} for rank in NODES}},
    "done": {"ranks": {r: {"section": "done", "exit_code": 0, "process_state": "", "quiet_s": 90.0} for r in NODES}},
    "done, and the executors ended": {
        "ranks": {r: {"section": "done", "exit_code": 0, "process_state": "", "quiet_s": 90.0} for r in NODES},
        "views": {node: {"has_ended": True} for node in "ab"},
    },
    "ending": {
        "ranks": {rank: {"exit_code": -9, "process_state": ""} for rank in NODES},
        "nodes": {node: {"state": "ending"} for node in "ab"},
    },
    "of the last generation": {
        "ranks": {rank: {"exit_code": -9, "process_state": ""} for rank in NODES},
        "nodes": {node: {"generation": 0} for node in "ab"},
    },
    "nothing measured yet": {"ranks": {2: {"quiet_s": 300.0, "idle_s": 300.0}}, "step_s": ()},
}


@pytest.mark.parametrize("name", HEALTHY)
def test_no_fault_is_named(name: str) -> None:
    """What is late or slow, but at work, has no diagnosis."""
    assert diagnose(make_snapshot(**HEALTHY[name]), SETTINGS) is None


def test_kernel_and_device_are_evidence() -> None:
    """A line of the log says what killed a rank, and whether a device is to blame."""
    lines = (
        "Out of memory: Killed process 102 (python)",
        "NVRM: Xid (PCI:0000:3b:00): 79, pid=102, GPU has fallen off the bus.",
    )
    killed = {2: {"exit_code": -9, "process_state": ""}}
    diagnosis = diagnose(make_snapshot(killed, {"b": {"log_lines": lines}}), SETTINGS)
    assert diagnosis is not None
    assert diagnosis.is_hardware
    assert "the kernel of node b killed process 102 for lack of memory" in diagnosis.evidence
