"""Keys that belong to something that is switched off are said, and do have no effect."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabrictune.foundation.errors import FabrictuneWarning
from fabrictune.foundation.records import RunRecord, notes_of
from fabrictune.foundation.settings.quantities import key_of
from fabrictune.scenario.files import parse_scenario
from fabrictune.scenario.idle_keys import NEEDS, NEEDS_ELSEWHERE, idle_notes
from fabrictune.scenario.overrides import override
from fabrictune.scenario.schema import Scenario
from fabrictune.studies.simulation import simulate

Changes = dict[str, Any]

BASE = """name: x
fabric: {builder: clos, num_hosts: 8, hosts_per_tor_set: 4, nics_per_host: 1, tiers: 2}
traffic: {workload: incast, senders: 3, message: 64 KB}
law: dcqcn
"""
JOB = {"workload": "all_reduce", "layout": {"dp": 4}, "message": "64 KB"}
STORAGE = {"workload": "storage", "servers": 2, "message": "64 KB"}
NEIGHBOURS = {"workload": "neighbours", "layout": {"dp": 4}, "message": "64 KB"}
HOSTS = str(Path(__file__).parents[2] / "golden" / "placement" / "four-ranks.hosts")
LONE = {"name": "one", "traffic": {"workload": "incast", "senders": 3, "message": "64 KB"}}
EXPERTS = {"num_experts": 8, "num_choices": 2}
MOE = {"workload": "moe", "layout": {"dp": 4, "ep": 4}, "num_tokens": 32, "width": 256, "experts": EXPERTS}
PRIORITIES = {"engine.queues.priorities": [{"priority": 3, "lossless": True}]}
PCIE = {"engine.host.pcie_generation": 4}
ARS = {"engine.path_choice.mode": "ars"}
SHARED = {**PRIORITIES, "engine.buffer.size": "4 MB"}
CREDITS = {"engine.transport.reliability": "selective-repeat", "engine.transport.credits.enabled": True}
COALESCED = {"engine.transport.reliability": "selective-repeat", "engine.transport.acknowledge_after": "16 KiB"}
TRIMS = {
    "engine.trimming.enabled": True,
    "engine.pfc.enabled": False,
    "engine.transport.reliability": "selective-repeat",
}
# key, a value that is not its default, what switches it off, what switches it on
KEYS: tuple[tuple[str, Any, Changes, Changes], ...] = (
    ("convergence_delay", "1 us", {}, {"faults": [{"fault": "link_down", "link": "tor0:up0", "at": "1 s"}]}),
    ("adapter", "connectx-6", {"engine.transport.timeout": "1 ms"}, {}),
    *((f"engine.cnp.{key}", "7 us", {"law": "timely"}, {}) for key in (
        "interval", "generation_delay", "handling_delay")),
    ("engine.telemetry", "50 B", {}, {"law": "hpcc"}),
    ("engine.nvlink_rate", "1 Tbps", {}, {"traffic": JOB}),
    *((f"engine.ecn.{key}", value, {"engine.ecn.enabled": False}, {}) for key, value in (
        ("kmin", "10 KB"), ("kmax", "2 MB"), ("pmax", 0.5))),
    *((f"engine.pfc.{key}", value, {"engine.pfc.enabled": False}, {}) for key, value in (
        ("xoff", "20 KB"), ("xon", "10 KB"), ("headroom", "200 KB"), ("response", "1 us"))),
    ("engine.ecn.not_capable", "drop", {**PRIORITIES, "engine.ecn.enabled": False}, PRIORITIES),
    ("engine.nic.ecn_capable", "all", {}, {**PRIORITIES, "engine.ecn.not_capable": "drop"}),
    ("engine.pfc.quanta", 100, {**PRIORITIES, "engine.pfc.enabled": False}, PRIORITIES),
    ("engine.pfc.watchdog", {"detect": "1 ms"}, {**PRIORITIES, "engine.pfc.enabled": False}, PRIORITIES),
    ("engine.pfc.refresh", False, {}, {**PRIORITIES, "engine.pfc.quanta": 100}),
    ("engine.pfc.buffer", "300 KB", SHARED, {}),
    ("engine.path_choice.spray", "round-robin", {}, {"engine.path_choice.mode": "spray"}),
    ("engine.path_choice.gap", "1 us", {}, {"engine.path_choice.mode": "flowlet"}),
    ("engine.path_choice.flowlet_port", "least-queue", {}, {"engine.path_choice.mode": "flowlet"}),
    ("engine.path_choice.ties", "first", {}, {"engine.path_choice.mode": "adaptive"}),
    ("engine.path_choice.queue_step", "1 KB", {"engine.path_choice.mode": "flowlet"},
     {"engine.path_choice.mode": "flowlet", "engine.path_choice.flowlet_port": "least-queue"}),
    ("engine.path_choice.queue_levels", 4, {}, {"engine.path_choice.mode": "adaptive"}),
    ("engine.path_choice.ars", {"max_flows": 8}, {}, {"engine.path_choice.mode": "ars"}),
    *((f"engine.path_choice.ars.{key}", value, {**ARS, "engine.path_choice.ars.assign_mode": "per_packet"}, ARS)
      for key, value in (("flowlet_idle_time", "1 us"), ("max_flows", 8))),
    *((f"engine.path_choice.ars.past_load_{key}", value, {**ARS, "engine.path_choice.ars.past_load_weight": 0}, ARS)
      for key, value in (("min", "10 %"), ("max", "90 %"))),
    *((f"engine.path_choice.ars.future_load_{key}", value, {**ARS, "engine.path_choice.ars.future_load_weight": 0}, ARS)
      for key, value in (("min", "10 KB"), ("max", "90 KB"))),
    ("engine.path_choice.weights", "links", {}, {"engine.path_choice.mode": "weighted"}),
    ("engine.path_choice.acknowledgements", "same", {}, {"engine.path_choice.mode": "spray"}),
    *((f"engine.host.{key}", value, {}, PCIE) for key, value in (
        ("pcie_lanes", 8), ("max_payload", "512 B"), ("memory", "cpu"), ("nics_per_gpu", 2))),
    ("engine.host.nics_per_switch", 2, PCIE, {**PCIE, "engine.host.memory": "cpu"}),
    ("engine.host.nics_per_gpu", 2, {**PCIE, "engine.host.memory": "cpu"}, PCIE),
    *((f"engine.path_choice.{key}", value, {}, {"engine.path_choice.mode": "entropy"}) for key, value in (
        ("entropy", "reps"), ("entropy_values", 128))),
    ("engine.path_choice.freeze", "1 ms", {"engine.path_choice.mode": "entropy"},
     {"engine.path_choice.mode": "entropy", "engine.path_choice.entropy": "reps"}),
    *((f"engine.trimming.{key}", value, {}, TRIMS) for key, value in (
        ("threshold", "50 KB"), ("last_hop_threshold", "80 KB"), ("trimmed", "100 B"))),
    ("engine.trimming.priority", 3, {}, {**TRIMS, "engine.queues.priorities": [{"priority": 3}]}),
    ("engine.nic.receive_buffer", "2 MB", {}, {"engine.nic.drain_rate": "50 Gbps"}),
    ("engine.nic.xoff", "20 KB", {}, {"engine.nic.drain_rate": "50 Gbps"}),
    ("engine.transport.rnr.replenish", "1 us", {}, {"engine.transport.rnr.receives": 4}),
    ("engine.transport.rnr.timer_code", 3, {}, {"engine.transport.rnr.receives": 4}),
    ("engine.transport.rnr.retries", 3, {}, {"engine.transport.rnr.receives": 4}),
    ("engine.transport.window", 64, {}, {"engine.transport.reliability": "selective-repeat"}),
    ("engine.transport.reorder_window", "1 us", {}, {"engine.transport.reliability": "selective-repeat"}),
    ("engine.transport.acknowledge_after", "16 KiB", {}, {"engine.transport.reliability": "selective-repeat"}),
    *((f"engine.transport.credits.{key}", value, {}, CREDITS) for key, value in (
        ("window", "100 KB"), ("grant", 8), ("rate", "90 %"))),
    ("engine.skip_precision", 0.1, {}, {"engine.skip": "bounded"}),
    ("engine.threads", 2, {"engine.skip": "fluid"}, {"engine.skip": "off"}),
    ("engine.threads", 2, {"engine": {"name": "fluid"}}, {"engine": {"name": "packet"}}),
    *((f"engine.{key}", value, {"engine": {"name": "fluid"}}, {"engine": {"name": "fluid", "audits": 0.02}})
      for key, value in (("ecn", {"kmin": "5 KB", "kmax": "50 KB"}), ("cnp", {"interval": "9 us"}),
                         ("transport", {"retries": 3}), ("pfc.xoff", "90 KB"), ("pfc.headroom", "90 KB"),
                         ("pfc.response", "1 us"))),
    ("engine.ack_every", 4, COALESCED, {"engine.transport.reliability": "selective-repeat"}),
    ("engine.transport.timeout_exponent", 16, {"engine.transport.timeout": "1 ms"}, {}),
    *((f"probe.{key}", value, {}, {"probe.interval": "10 us"}) for key, value in (
        ("ports", "all"), ("num_busiest", 2), ("all_flows", True), ("flows", [0]))),
    ("traffic.placement_seed", 5, {"traffic": JOB}, {"traffic": {**JOB, "placement": "random"}}),
    *((f"traffic.{key}", value, {"traffic": {**JOB, "placement": HOSTS}}, {"traffic": JOB}) for key, value in (
        ("hosts", ["host[1-4]"]), ("first_host", "host2"))),
    ("traffic.parts[0].job", "j", {"traffic": {"workload": "mix", "parts": [LONE]}},
     {"traffic": {"workload": "mix", "parts": [{"name": "one", "traffic": JOB}]}}),
    ("traffic.layout.ep", 2, {"traffic": NEIGHBOURS}, {"traffic": {**NEIGHBOURS, "axes": ["edp"]}}),
    ("traffic.expansion.qp_use", "split", {"traffic": JOB},
     {"traffic": {**JOB, "expansion": {"qps_per_connection": 2}}}),
    *((f"traffic.expansion.{key}", value, {"traffic": NEIGHBOURS}, {"traffic": JOB}) for key, value in (
        ("algorithm", "halving_doubling"), ("channels", 2), ("slice", "8 KB"), ("pxn", False))),
    *((f"traffic.expansion.{key}", value, {"traffic": MOE}, {"traffic": JOB}) for key, value in (
        ("algorithm", "halving_doubling"), ("channels", 2))),
    ("traffic.expansion.slice", "8 KB", {"traffic": MOE}, {"traffic": {**MOE, "deduplication": "node"}}),
    ("traffic.dispatch", "fp8", {"traffic": {**MOE, "phase": "combine"}}, {"traffic": MOE}),
    ("traffic.combine", "fp32", {"traffic": {**MOE, "phase": "dispatch"}}, {"traffic": MOE}),
    ("traffic.expert_compute", "5 us", {"traffic": {**MOE, "phase": "dispatch"}}, {"traffic": MOE}),
    ("traffic.experts.num_groups", 4, {"traffic": MOE},
     {"traffic": {**MOE, "experts": {**EXPERTS, "chosen_groups": 2}}}),
    ("traffic.interval", "1 us", {"traffic": STORAGE}, {"traffic": {**STORAGE, "bursts": 2}}),
    ("traffic.priority", 2, {}, {"engine.queues.priorities": [{"priority": 2}]}),
    ("traffic.expansion.priority", 2, {"traffic": JOB},
     {"traffic": JOB, "engine.queues.priorities": [{"priority": 2}]}),
)  # fmt: skip


def changed(changes: Changes) -> Scenario:
    """Return the scenario with some keys set."""
    return override(parse_scenario(BASE, Path("x.yaml")), changes, origin="test")


def ran(scenario: Scenario) -> RunRecord:
    """Return what the engine makes of it."""
    with pytest.warns(FabrictuneWarning):
        return simulate(scenario, with_collisions=False)


def test_every_key_of_the_table_is_tried() -> None:
    """By its last name: some stand in several specs."""
    all_needs = (*NEEDS.values(), *NEEDS_ELSEWHERE.values())
    listed = {key_of(field.rpartition(".")[2]) for needs in all_needs for need in needs for field in need.fields}
    assert listed == {key.rpartition(".")[2] for key, *_ in KEYS}


@pytest.mark.parametrize(("key", "value", "off", "on"), KEYS, ids=[key for key, *_ in KEYS])
def test_an_idle_key_is_said_and_one_that_works_is_not(key: str, value: Any, off: Changes, on: Changes) -> None:
    """Also where the key has its default value, which misleads nobody."""
    assert any(f": {key} has no effect without " in note for note in idle_notes(changed({**off, key: value})))
    assert not any(f": {key} has no effect" in note for note in idle_notes(changed({**on, key: value})))
    assert idle_notes(changed(off)) == ()


@pytest.mark.parametrize(("key", "value", "off", "on"), KEYS, ids=[key for key, *_ in KEYS])
def test_an_idle_key_has_no_effect(key: str, value: Any, off: Changes, on: Changes) -> None:
    """The run is the same to the last packet, and its record says that the key did nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FabrictuneWarning)  # traffic of experts says what it draws
        without = simulate(changed(off), with_collisions=False)
    record = ran(changed({**off, key: value}))
    assert any(key in note for note in notes_of(record))
    for table in ("transfers", "ports") if "ports" in without.tables else ("transfers",):
        for column, values in without.tables[table].items():
            np.testing.assert_array_equal(values, record.tables[table][column], err_msg=f"{table}.{column}")


def test_the_bundled_keys_work() -> None:
    """No scenario of the project sets a key that does nothing."""
    for path in sorted((Path(__file__).parents[3] / "scenarios").glob("*.yaml")):
        assert idle_notes(parse_scenario(path.read_text(), path)) == (), path


def test_priorities_of_parts_that_share_one_class_are_said() -> None:
    """Each with its place; a capture shows them as DSCP, and priorities of the switches tell them apart."""
    part = {"workload": "incast", "senders": 2, "message": "8 KB", "priority": 2}
    parts = [{"name": "a", "traffic": part}, {"name": "b", "traffic": {**part, "priority": 3}}]
    mixed = {"traffic": {"workload": "mix", "parts": parts}}
    assert [note.partition(" has no effect")[0] for note in idle_notes(changed(mixed))] == [
        "test: traffic.parts[0].traffic.priority"
    ]
    assert idle_notes(changed({**mixed, "capture": {}})) == ()
    rules = [{"priority": 2}, {"priority": 3, "lossless": True}]
    assert idle_notes(changed({**mixed, "engine.queues.priorities": rules})) == ()
