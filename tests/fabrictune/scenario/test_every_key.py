"""Every key of engine, probes, traffic and routing changes a run, is refused, or is said to have no effect."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabrictune.foundation.errors import FabrictuneError, FabrictuneWarning
from fabrictune.foundation.settings.keys import KeyLine, list_keys, sections
from fabrictune.scenario.files import parse_scenario
from fabrictune.scenario.idle_keys import idle_keys
from fabrictune.scenario.overrides import override
from fabrictune.scenario.schema import Scenario
from fabrictune.studies.simulation import simulate

# Marks, pauses and flows that share uplinks, but no loss and no host of several ranks.
BASE = """name: x
fabric: {builder: clos, num_hosts: 16, hosts_per_tor_set: 4, nics_per_host: 1, tiers: 2}
traffic: {workload: incast, senders: 7, message: 500 KB}
law: %s
"""
SMALL = """name: x
fabric:
  {builder: clos, num_hosts: 16, hosts_per_tor_set: 4, nics_per_host: 2, tiers: 2, uplinks_per_tor: 2}
traffic: {%s}
law: none
"""
VALUES = {
    "size": ("1 KB", "20 KB", "3 MB"),
    "duration": ("1 us", "50 us", "1 s"),
    "rate": ("10 Gbps",),
    "share of one": (0.3, 0.01),
    "number": (2,),
    "whole number": (2, 3, 5, 100),
    "list of text": (["host0"], ["host[4-7]"]),
    "text": ("host1",),
    "list of whole number": ([0],),
    "list of tp | cp | dp | pp": (["tp"], ["dp", "tp", "pp"]),
}
MATTERS_LATER = {  # what has to happen in a run before a key matters
    "engine.pfc.xon": "a pause that ends before the queue is empty",
    "engine.transport.reliability": "a loss",
    "engine.transport.timeout_exponent": "a loss",
    "engine.transport.retries": "a loss",
    "engine.transport.rnr.receives": "more messages than receives",
    "engine.queues.acknowledgement_class": "data on the way of acknowledgements, or a law that follows round trips",
    "engine.threads": "nothing: a run over threads is the same run",
}
NAMED = sections(Scenario, "scenario")
LINES = [
    (f"{section}.{line.key}", line)
    for section in ("engine", "probe")
    for line in list_keys(NAMED, section)
    if line.takes not in ("keys", "list of keys") and "priorities." not in line.key
]


def values_of(line: KeyLine) -> Iterator[Any]:
    """Yield values that are not the default."""
    if line.takes == "true or false":
        yield line.default != "true"
    elif line.takes in VALUES:
        yield from VALUES[line.takes]
    elif line.takes.startswith("list of "):
        yield from ([choice] for choice in line.takes.removeprefix("list of ").split(" | "))
    else:
        yield from (choice for choice in line.takes.split(" | ") if choice != line.default)


def columns(scenario: Scenario) -> dict[tuple[str, str], Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FabrictuneWarning)
        tables = simulate(scenario, with_collisions=False).tables
    return {(table, name): column for table, values in tables.items() for name, column in values.items()}


def is_same(first: dict[tuple[str, str], Any], second: dict[tuple[str, str], Any]) -> bool:
    if first.keys() != second.keys():
        return False
    is_number = {name: first[name].dtype.kind == "f" for name in first}  # nan where there is no value
    return all(np.array_equal(first[name], second[name], equal_nan=is_number[name]) for name in first)


def is_noticed(base: Scenario, expected: dict[tuple[str, str], Any], key: str, value: Any) -> bool | None:
    """Return whether a key changes the run or is said to be idle; None where it is refused."""
    try:
        scenario = override(base, {key: value}, origin="test")
        if any(key.startswith(".".join(map(str, path))) for path, _ in idle_keys(scenario)):
            return True
        return not is_same(columns(scenario), expected)
    except FabrictuneError:
        return None


@pytest.mark.parametrize("law", ["dcqcn", "none"])
def test_no_key_is_idle_in_silence(law: str) -> None:
    """With any of several values, by the tables of the record; a key whose every value is refused is not silent."""
    base = parse_scenario(BASE % law, Path("x.yaml"))
    expected = columns(base)
    silent = set()
    for key, line in LINES:
        noticed = [is_noticed(base, expected, key, value) for value in values_of(line)]
        assert noticed, f"{key}: no value to try for {line.takes!r}"
        if True not in noticed and False in noticed:
            silent.add(key)
    assert silent <= MATTERS_LATER.keys() | {"engine.skip"}  # which adds intervals, but not under a law with timers
    if law == "none":
        assert silent == MATTERS_LATER.keys(), "a key that does show in a run needs no excuse"


def test_no_key_of_the_fluid_engine_is_idle_in_silence() -> None:
    """Without audits a key changes what is on the wire, or is refused, or is said to have no effect."""
    base = override(parse_scenario(BASE % "hpcc", Path("x.yaml")), {"engine": {"name": "fluid"}}, origin="test")
    expected = columns(base)
    silent = set()
    for line in list_keys(NAMED, "engine.fluid"):
        if line.takes not in ("keys", "list of keys") and "priorities." not in line.key:
            noticed = [is_noticed(base, expected, f"engine.{line.key}", value) for value in values_of(line)]
            if True not in noticed and False in noticed:
                silent.add(line.key)
    assert silent == {"ack_every"}, "which matters where acknowledgements meet data"


JOB = "layout: {tp: 2, dp: 4}, gpus_per_host: 4, message: 64 KB"  # whose rings change rails
TRAFFICS = {  # that of a base, by the section whose keys are tried
    "traffic.incast": "workload: incast, senders: 3, message: 64 KB",
    "traffic.permutation": "workload: permutation, message: 64 KB",
    "traffic.all_to_all": "workload: all_to_all, message: 8 KB",
    "traffic.poisson": "workload: poisson, load: 0.4, duration: 20 us",
    "traffic.storage": "workload: storage, servers: 3, message: 64 KB",
    "traffic.all_reduce": f"workload: all_reduce, {JOB}",
    "traffic.collective": f"workload: collective, operation: all_gather, {JOB}",
    "traffic.neighbours": f"workload: neighbours, {JOB}",
    "traffic.moe": "workload: moe, layout: {tp: 2, dp: 6, ep: 2}, gpus_per_host: 3, num_tokens: 64, width: 512, "
    "experts: {num_experts: 12, num_choices: 3, num_groups: 4}",
    "routing": "workload: permutation, message: 64 KB",
}


@pytest.mark.parametrize("section", TRAFFICS)
def test_no_key_of_traffic_or_routing_is_idle_in_silence(section: str) -> None:
    base = parse_scenario(SMALL % TRAFFICS[section], Path("x.yaml"))
    expected = columns(base)
    silent = set()
    for line in list_keys(NAMED, section):
        if line.takes not in ("keys", "list of keys", "file") and ".tiers." not in f".{line.key}":
            key = f"{section.partition('.')[0]}.{line.key}"
            if not any(is_noticed(base, expected, key, value) for value in values_of(line)):
                silent.add(key)
    assert not silent
