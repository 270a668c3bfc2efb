"""Whole numbers of all settings: refused by name, or taken by the compiled engine."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictune.foundation.errors import FabrictuneError
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.config.queues import PriorityConfig, QueuesConfig
from fabrictune.netsim.config.switch import EcnConfig, WatchdogConfig
from fabrictune.netsim.engine_inputs.inputs import make_engine_inputs
from fabrictune.netsim.packet import make_simulation
from tests.netsim.conftest import compiled, network_of, one_switch, traffic_of


def _bounded(spec: Any, path: str = "") -> Iterator[str]:
    """Yield the path of every whole-number setting of a configuration."""
    hints = get_type_hints(spec)
    for field in fields(spec):
        hint = hints[field.name]
        inner = [one for one in (hint, *get_args(hint)) if is_dataclass(one)]
        if inner:
            yield from _bounded(inner[0], f"{path}{field.name}.")
        elif int in (hint, *get_args(hint)):
            yield f"{path}{field.name}"


SETTINGS = sorted({*_bounded(PacketConfig), *_bounded(ProbeConfig, "probe.")})
SMALL = network_of(one_switch(3), [(0, 1), (2, 1)])


def _config(changes: dict[str, int]) -> tuple[PacketConfig, ProbeConfig]:
    """Return the configurations with these settings; priorities and a watchdog where they are needed."""
    config: Any = PacketConfig()
    probe = ProbeConfig()
    for path, value in changes.items():
        where, _, name = path.rpartition(".")
        if where == "probe":
            probe = _changed(probe, [], name, value)
        elif where.startswith("queues.priorities"):
            inner = where.split(".")[2:]
            entry = _changed(PriorityConfig(lossless=True, ecn=EcnConfig()), inner, name, value)
            config = replace(config, queues=QueuesConfig(priorities=(entry,)))
        else:
            config = _changed(config, where.split(".") if where else [], name, value)
    return config, probe


def _changed(spec: Any, where: list[str], name: str, value: int) -> Any:
    if not where:
        is_tuple = isinstance(getattr(spec, name), tuple)
        return replace(spec, **{name: (value,) if is_tuple else value})
    inner = getattr(spec, where[0])
    if inner is None:
        inner = WatchdogConfig() if where[0] == "watchdog" else EcnConfig()
    return replace(spec, **{where[0]: _changed(inner, where[1:], name, value)})


EDGES = sorted({sign * 2**power + step for power in (0, 8, 16, 30, 31, 32, 33, 62, 63, 64) for sign in (1, -1)
                for step in (-1, 0, 1)} | {10**14, 10**15, 10**17, 10**18})  # fmt: skip


LAW = compiled("none")
TRAFFIC = traffic_of([{"bytes": 5000}, {"bytes": 5000, "qp": 1}])


def _take(changes: dict[str, int]) -> bool:
    """Return whether the engine takes these settings; refusing them by name is as good."""
    try:
        config, probe = _config(changes)
        inputs = make_engine_inputs(SMALL, TRAFFIC, LAW, config, seed=2**63 - 1, probe=probe)
    except FabrictuneError:
        return False
    make_simulation(inputs, LAW)
    return True


@pytest.mark.parametrize("path", SETTINGS)
def test_every_whole_number_is_refused_by_name_or_reaches_the_engine(path: str) -> None:
    """The engine's binding raises TypeError for a number that its type cannot hold; a user must never meet that."""
    assert sum(_take({path: value}) for value in EDGES) < len(EDGES)


@settings(deadline=None, max_examples=200)
@given(changes=st.dictionaries(st.sampled_from(SETTINGS), st.sampled_from(EDGES), min_size=2, max_size=3))
def test_so_is_every_combination(changes: dict[str, int]) -> None:
    """A sum or a product of two settings may be too large where neither is."""
    _take(changes)
