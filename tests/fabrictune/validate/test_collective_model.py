"""The model of a collective: figures worked out by hand, and the packet engine, which never beats the bound."""

from pathlib import Path

import pytest

from fabrictune.foundation.errors import FabrictuneWarning, InputError, ScenarioError
from fabrictune.foundation.traces import Operation
from fabrictune.scenario.files import load_scenario
from fabrictune.validate.collective_model import CollectiveModel

CLEAN = """
name: clean
fabric: {builder: clos, num_hosts: 4, hosts_per_tor_set: 4, nics_per_host: 1, tiers: 2, downlink_split: 1,
         uplinks_per_tor: 1, nic_rate: 400 Gbps}
traffic: {workload: all_reduce, layout: {dp: 4}, message: 1 MB}
"""
COLLIDING = """
name: colliding
fabric: {builder: clos, num_hosts: 16, hosts_per_tor_set: 8, nics_per_host: 1, tiers: 2, downlink_split: 1,
         uplinks_per_tor: 8, nic_rate: 400 Gbps, uplink_rate: 400 Gbps}
traffic: {workload: collective, operation: all_reduce, layout: {dp: 16}, placement: interleaved, message: 1 MB}
"""
OPERATIONS = [operation for operation in Operation if operation < Operation.RECEIVE]
HEADERS = (4096 + 82) / 4096


def model(folder: Path, text: str, operation: Operation = Operation.ALL_REDUCE) -> CollectiveModel:
    path = folder / "scenario.yaml"
    path.write_text(text)
    return CollectiveModel(load_scenario(path), operation)


def test_the_line_is_what_a_nic_sends(tmp_path: Path) -> None:
    """Four ranks of 4,096 kB: 1.5 buffers, every packet full, at 400 Gbps."""
    modelled = model(tmp_path, CLEAN).at(4_096_000)
    assert modelled.line_ps == pytest.approx(1.5 * 4_096_000 * HEADERS * 8 / 400e9 * 1e12)
    assert modelled.fair_ps == modelled.bound_ps > modelled.line_ps


def test_alpha_beta_is_close_to_the_bound_of_large_buffers(tmp_path: Path) -> None:
    """64 MB on a clean fabric: the same rounds and the same bytes."""
    modelled = model(tmp_path, CLEAN).at(64_000_000)
    assert modelled.alpha_beta_ps == pytest.approx(modelled.bound_ps, rel=0.01)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name.lower())
def test_the_engine_never_beats_the_bound(tmp_path: Path, operation: Operation) -> None:
    """Neither where nothing collides nor where something does; without collisions it is near."""
    for text, most in ((CLEAN, 1.05), (COLLIDING, 3.0)):
        modelled = model(tmp_path, text, operation).at(1_600_000, with_engine=True)
        assert modelled.engine_ps is not None
        assert 1 <= modelled.engine_ps / modelled.bound_ps < most


def test_where_flows_collide_the_engine_takes_the_fair_time(tmp_path: Path) -> None:
    """Two flows of a ring on one link: the slowest edge has half its rate, and sets the pace of every step."""
    modelled = model(tmp_path, COLLIDING).at(16_000_000, with_engine=True)
    assert modelled.fair_ps > 1.5 * modelled.bound_ps
    assert modelled.engine_ps == pytest.approx(modelled.fair_ps, rel=0.03)


def test_more_queue_pairs_give_some_of_it_back(tmp_path: Path) -> None:
    """Sixteen smaller flows fill links more evenly than one; a scenario that has them has nothing to gain."""
    modelled = model(tmp_path, COLLIDING).at(16_000_000)
    assert modelled.bound_ps < modelled.many_qps_ps < modelled.fair_ps
    many = COLLIDING.replace("message:", "expansion: {qps_per_connection: 16}, message:")
    modelled = model(tmp_path, many).at(16_000_000)
    assert modelled.many_qps_ps == modelled.fair_ps


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name.lower())
def test_inside_a_host_there_is_nvlink_alone(tmp_path: Path, operation: Operation) -> None:
    """Four GPUs of one host: no NIC has anything to send, and the bound is NVLink's."""
    inside = CLEAN.replace("message:", "gpus_per_host: 4, message:")
    modelled = model(tmp_path, inside, operation).at(1_000_000, with_engine=True)
    assert modelled.line_ps == 0
    assert modelled.engine_ps is not None
    assert 0 < modelled.bound_ps <= modelled.engine_ps


def test_a_scenario_that_sprays_is_warned_of(tmp_path: Path) -> None:
    """Max-min fairness on one path a flow says nothing of it."""
    with pytest.warns(FabrictuneWarning, match="`fair` takes the hash's paths"):
        model(tmp_path, f"{CLEAN}engine: {{path_choice: {{mode: spray}}}}\n")


def test_other_traffic_and_small_fabrics_are_refused(tmp_path: Path) -> None:
    """With the line of the scenario."""
    with pytest.raises(
        ScenarioError, match=r"scenario.yaml:5: traffic.workload: workload 'incast'\n  allowed: collect"
    ):
        model(tmp_path, CLEAN.replace("all_reduce, layout: {dp: 4}", "incast, senders: 3"))
    with pytest.raises(InputError, match="ranks for 4 GPUs"):
        model(tmp_path, CLEAN.replace("dp: 4", "dp: 8"))
