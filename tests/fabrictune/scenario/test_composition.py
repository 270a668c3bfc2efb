"""Scenarios put together: fabrics, traffic from files, laws outside the project."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fabrictune.collectives.jobs import collective_step
from fabrictune.foundation.errors import ScenarioError, TraceError, UntrustedCodeError
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.traces import Dependencies, Medium, TrafficTrace
from fabrictune.scenario.composition import compose, compose_law
from fabrictune.scenario.files import load_scenario
from fabrictune.scenario.provenance import describe_composed

GOLDEN = Path(__file__).parents[2] / "golden" / "fabrictune" / "scenarios"
FAT_TREE = "fabric: {builder: fat_tree, radix: 4}\n"


def write(folder: Path, rest: str) -> Path:
    path = folder / "scenario.yaml"
    path.write_text("name: test\n" + FAT_TREE + rest)
    return path


def traffic_trace(qp: list[int], source: list[int], destination: list[int]) -> TrafficTrace:
    zero_N = np.zeros(len(qp), np.int64)
    return TrafficTrace(
        source_N=np.array(source),
        destination_N=np.array(destination),
        medium_N=zero_N + Medium.FABRIC,
        qp_N=np.array(qp),
        bytes_N=zero_N + 1000,
        start_ps_N=zero_N,
        delay_ps_N=zero_N,
        operation_N=zero_N - 1,
        dependencies=Dependencies.none(len(qp)),
    )


def test_a_traffic_trace_brings_its_queue_pairs(tmp_path: Path) -> None:
    """Three transfers on two queue pairs, 0 -> 5 and 7 -> 2, make two rows of the queue-pair table."""
    traffic_trace([0, 1, 0], [0, 7, 0], [5, 2, 5]).write(tmp_path / "trace.parquet")
    composed = compose(load_scenario(write(tmp_path, "traffic: {workload: traffic_trace, file: trace.parquet}\n")))
    pairs = composed.network.queue_pairs
    assert (pairs.source_nic_Q.tolist(), pairs.destination_nic_Q.tolist()) == ([0, 7], [5, 2])
    assert len(composed.traffic) == 3


@pytest.mark.parametrize(
    ("qp", "source", "destination", "found"),
    [
        ([0, 2], [0, 1], [5, 6], "queue pairs that are not numbered 0, 1, 2, ..."),
        ([0, 0], [0, 1], [5, 5], "a queue pair with transfers between different endpoints"),
        ([0], [0], [16], "endpoint 16, which the fabric does not have"),
    ],
)
def test_a_traffic_trace_that_does_not_fit_is_refused(
    qp: list[int], source: list[int], destination: list[int], found: str, tmp_path: Path
) -> None:
    """A k=4 fat tree has the NICs 0 to 15, and a queue pair joins one pair of them."""
    traffic_trace(qp, source, destination).write(tmp_path / "trace.parquet")
    scenario = load_scenario(write(tmp_path, "traffic: {workload: traffic_trace, file: trace.parquet}\n"))
    with pytest.raises(TraceError) as raised:
        compose(scenario)
    assert [(mistake.where, mistake.found) for mistake in raised.value.mistakes] == [
        (str(tmp_path / "trace.parquet"), found)
    ]


def test_a_communication_trace_from_a_file_is_the_job_it_was_written_from(tmp_path: Path) -> None:
    """The all-reduce of dp 4, written as a trace and read back, makes the same transfers as the workload itself."""
    collective_step(ParallelLayout(dp=4), 4_000_000).write(tmp_path / "comm.parquet")
    layout = "layout: {dp: 4}, placement: contiguous"
    from_file = load_scenario(write(tmp_path, f"traffic: {{workload: comm_trace, file: comm.parquet, {layout}}}\n"))
    read = compose(from_file).traffic
    by_name = load_scenario(write(tmp_path, f"traffic: {{workload: all_reduce, message: 4 MB, {layout}}}\n"))
    made = compose(by_name).traffic
    for column in ("source_N", "destination_N", "medium_N", "qp_N", "bytes_N"):
        assert np.array_equal(getattr(read, column), getattr(made, column)), column


def test_a_law_outside_the_project_needs_leave() -> None:
    """A scenario is data; the law it names is code, and runs only when the caller says so."""
    scenario = load_scenario(GOLDEN / "outside-law.yaml")
    with pytest.raises(UntrustedCodeError):
        compose_law(scenario)
    assert compose_law(replace(scenario, trust_code=True)).name == "steady"


def test_the_parameters_of_an_outside_law_are_checked_where_they_stand(tmp_path: Path) -> None:
    """`share` is the key of the law's share_fraction; 120 % is no share, and the message says on which line."""
    law = GOLDEN / "steady.py"
    path = write(
        tmp_path,
        "traffic: {workload: permutation, message: 1 MB}\n"
        f"law:\n  file: {law}\n  parameters:\n    share: 120 %\n    speed: 3\n",
    )
    with pytest.raises(ScenarioError) as raised:
        compose_law(load_scenario(path, trust_code=True))
    assert str(raised.value) == (
        f"{path}:7: law.parameters.share: '120 %': a share lies between 0 and 1\n"
        '  allowed: 0 to 1, or "0 %" to "100 %"\n'
        f"{path}:8: law.parameters.speed: unknown key 'speed'\n"
        "  allowed: share"
    )


def test_a_unit_for_a_parameter_without_one_says_what_its_name_lacks(tmp_path: Path) -> None:
    """`increase` takes a plain number, for nothing in its name says that it is a rate."""
    law = tmp_path / "steps.py"
    law.write_text(
        "from fabrictune.cc.interface import Parameter, Status\n"
        "PARAMETERS = (Parameter(name='increase', default=1e9, low=1.0, high=1e12, meaning='step'),)\n"
        "STATE = ()\n"
        "def on_start(params, flow, now_ps): return Status.OK\n"
    )
    traffic = "traffic: {workload: permutation, message: 1 MB}\n"
    path = write(tmp_path, f"{traffic}law: {{file: {law}, parameters: {{increase: 500 Mbps}}}}\n")
    with pytest.raises(ScenarioError) as raised:
        compose_law(load_scenario(path, trust_code=True))
    assert str(raised.value) == (
        f"{path}:4: law.parameters.increase: '500 Mbps' where a number is needed\n"
        "  next: name the parameter increase_bps in the law's file: the unit of a value ends its name"
    )


def test_parameters_reach_the_law(tmp_path: Path) -> None:
    """`rate_timer: 300 us` is 300,000,000 ps in the compiled law; what is not named keeps the law's default."""
    path = write(
        tmp_path,
        "traffic: {workload: permutation, message: 1 MB}\n"
        "law: {name: dcqcn, parameters: {rate_timer: 300 us, additive_increase: 5 Mbps}}\n",
    )
    params = compose_law(load_scenario(path)).params
    assert params["rate_timer_ps"].item() == 300e6
    assert params["additive_increase_bps"].item() == 5e6
    assert params["fast_recovery_stages"].item() == 5


def test_a_collective_of_any_kind_along_any_axis(tmp_path: Path) -> None:
    """Four tensor groups of four exchange 1 MB all to all: sixteen ranks send three quarters of it each."""
    traffic = "{workload: collective, operation: all_to_all, axis: tp, layout: {tp: 4, dp: 4}, message: 1 MB}"
    composed = compose(load_scenario(write(tmp_path, f"traffic: {traffic}\n")))
    assert composed.traffic.bytes_N.sum() == 16 * 750_000
    collective = describe_composed(composed)["collective"]
    assert (collective["operation"], collective["busbw_factor"]) == ("all_to_all", 0.75)
