"""A sweep's table is the same whoever ran it, and whatever happened on the way; its mistakes are named."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from fabrictune.foundation.errors import InputError, ScenarioError
from fabrictune.foundation.records import RunRecord
from fabrictune.sweeps.executors import Take, Threads
from fabrictune.sweeps.points import Task
from fabrictune.sweeps.store import open_folder
from tests.fabrictune.sweeps.conftest import SWEEP, tables

Write = Callable[..., Path]
Run = Callable[..., RunRecord]


class Counting:
    """Threads that say what they ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def run(self, tasks: Sequence[Task], take: Take) -> None:
        """Run the tasks."""
        self.ran += [task.id for task in tasks]
        Threads(num_workers=2).run(tasks, take)


def test_the_table_is_that_of_any_number_of_workers(write: Write, run: Run) -> None:
    """1 and 4 threads, each in a folder of its own; 3 x 2 points of 2 seeds."""
    path = write()
    record = run(path, "one", Threads(num_workers=1))
    assert tables(record) == tables(run(path, "four", Threads(num_workers=4)))
    assert record.tables["points"]["num_seeds"].tolist() == [2] * 6
    assert record.tables["points"]["vary.engine.ecn.kmin"].tolist() == ["10 KB", "100 KB"] * 3


def test_a_larger_message_takes_longer_and_marks_more(write: Write, run: Run) -> None:
    """All senders share one 100 Gbps port: times go by 50 : 100 : 200, so the smallest message is the front."""
    record = run(write())
    time_ps = record.tables["objectives"]["value"][::2]
    assert time_ps[2] / time_ps[0] == pytest.approx(2, rel=0.1)
    assert time_ps[4] / time_ps[0] == pytest.approx(4, rel=0.1)
    assert record.tables["points"]["is_on_front"].tolist() == [0, 1, 0, 0, 0, 0]
    sensitivity = record.tables["sensitivity"]
    assert (sensitivity["measure"][0], sensitivity["key"][0]) == ("variance_share", "traffic.message")
    assert sensitivity["value"][0] > 0.99
    assert set(sensitivity["key"]) == {"traffic.message", "engine.ecn.kmin"}


MIXED = """
name: small
fabric: {builder: clos, num_hosts: 5, hosts_per_tor_set: 5, nics_per_host: 1, tiers: 2, nic_rate: 100 Gbps,
         uplink_rate: 100 Gbps, downlink_split: 1}
traffic:
  workload: mix
  parts:
    - {name: burst, traffic: {workload: incast, senders: 4, message: 100 KB}}
    - {name: job, traffic: {workload: permutation, message: 10 KB}}
law: {name: none}
"""
OF_JOB = """
name: of-job
scenario: small.yaml
vary: [{key: engine.ack_every, values: [1, 4]}]
seeds: 1
objectives: [{metric: completion_time.max}, {metric: completion_time.max, part: job}]
"""


def test_a_part_of_a_mixture_is_an_objective_of_its_own(write: Write, run: Run) -> None:
    """The job's small messages are done long before the burst is."""
    record = run(write(OF_JOB, MIXED))
    assert list(record.run["objectives"]) == ["completion_time.max", "completion_time.max of job"]
    of_all_ps, of_job_ps = record.tables["objectives"]["value"][:2]
    assert 0 < of_job_ps < of_all_ps


def test_a_part_that_is_not_there_is_named_with_its_nearest(write: Write, run: Run) -> None:
    """Before anything runs."""
    with pytest.raises(InputError, match=r"objectives: unknown part of the traffic 'jobs'\n  did you mean 'job'"):
        run(write(OF_JOB.replace("part: job", "part: jobs"), MIXED))


def test_nothing_is_run_twice(write: Write, run: Run) -> None:
    """12 runs, then none; a value more costs its own 4 runs, whatever the sweep's file looks like by then."""
    counting = Counting()
    first = run(write(), executor=counting)
    assert len(counting.ran) == len(set(counting.ran)) == 12
    counting.ran.clear()
    assert tables(run(write(), executor=counting)) == tables(first)
    assert counting.ran == []
    run(write(SWEEP.replace("200 KB]", "200 KB, 300 KB]").replace("seeds: 2", "seeds: 2\nseed: 9")), executor=counting)
    assert len(counting.ran) == 4


def test_a_random_search_is_summed_up_as_a_grid_is(write: Write, run: Run) -> None:
    """Points as drawn, with sensitivities; the probes at the ends are no points of the table."""
    search = "search: {method: random, points: 12}\n"
    ranges = SWEEP.replace("values: [50 KB, 100 KB, 200 KB]", "low: 50 KB, high: 200 KB, scale: log")
    record = run(write(ranges + search))
    assert len(record.tables["points"]["point"]) == 12
    sensitivity = record.tables["sensitivity"]
    is_rank = sensitivity["measure"] == "rank_correlation"
    assert sensitivity["value"][is_rank][0] > 0.9


def test_tpe_gives_the_same_table_after_a_stop(write: Write, run: Run) -> None:
    """The second run finds half of the points there, and proposes the others again."""
    pytest.importorskip("optuna")
    text = SWEEP.replace("values: [50 KB, 100 KB, 200 KB]", "low: 50 KB, high: 200 KB")
    half, whole = (text + f"search: {{method: tpe, points: {points}, batch: 4, startup: 4}}\n" for points in (8, 16))
    undisturbed = run(write(whole), "undisturbed")
    run(write(half), "stopped")
    assert tables(run(write(whole), "stopped")) == tables(undisturbed)
    assert len(undisturbed.tables["sensitivity"]["key"]) == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("engine.ecn.kmin", "engine.ecn.kmn"), "did you mean 'kmin'"),
        (("engine.ecn.kmin", "law.parameters.g"), "unknown key 'g'"),
        (("10 KB, 100 KB", "10 us, 100 us"), "'us' is no unit of size"),
    ],
)
def test_a_key_that_does_not_exist_is_named_before_anything_runs(
    write: Write, run: Run, change: tuple[str, str], words: str
) -> None:
    """With the nearest, as in the scenario's own file."""
    counting = Counting()
    with pytest.raises(ScenarioError, match=words):
        run(write(SWEEP.replace(*change)), executor=counting)
    assert counting.ran == []


def test_a_key_without_effect_is_named(write: Write, run: Run) -> None:
    """PFC's thresholds of an infinite buffer: what is switched off changes no packet."""
    idle = SWEEP.replace("engine.ecn.kmin, values: [10 KB, 100 KB]", "engine.cnp.interval, values: [4 us, 50 us]")
    with pytest.raises(InputError, match=r"engine\.cnp\.interval: 4 us and 50 us give the same run") as raised:
        run(write(idle))
    assert raised.value.mistakes[0].where.endswith("sweep.yaml:6: vary[1].key")
    assert len(run(write(idle + "probe: false\n")).tables["points"]["point"]) == 6


def test_values_that_do_not_fit_together_are_a_finding(write: Write, run: Run) -> None:
    """kmin above kmax is refused by the engine's settings; the other points stand."""
    record = run(write(SWEEP.replace("10 KB, 100 KB", "10 KB, 20 MB")))
    assert [finding.id for finding in record.findings] == ["sweep.point-failed"] * 3
    assert "kmax" in record.findings[0].actual
    assert sorted(set(record.tables["objectives"]["point"].tolist())) == [0, 2, 4]


def test_a_law_that_fails_everywhere_is_named_with_flow_and_time(write: Write, run: Run, tmp_path: Path) -> None:
    """Its first acknowledgement leaves a rate that is no number."""
    (tmp_path / "law.py").write_text(
        "PARAMETERS = ()\nSTATE = ()\n\n\ndef on_start(params, flow, now_ps):\n    flow.rate_bps = 0.0\n    return 0\n"
    )
    broken = SWEEP + "change: {law: ./law.py}\n"
    with pytest.raises(
        InputError, match=r"law law, on_start: left rate_bps below 1, or no number at 0 ps .* queue pair"
    ):
        run(write(broken), trust_code=True)


def test_two_sweeps_do_not_share_a_folder(write: Write, run: Run, tmp_path: Path) -> None:
    """The second is told; what a killed one left half written is gone."""
    half = tmp_path / "out" / "points" / f".abc-{'0' * 16}"
    with open_folder(tmp_path / "out"):
        (half / "new").mkdir(parents=True)
    with open_folder(tmp_path / "out"):
        assert not half.exists()
        with pytest.raises(InputError, match="another sweep writes here"):
            run(write())


def test_progress_counts_runs(write: Write, run: Run) -> None:
    """Each of the twelve once, to the end."""
    told: list[tuple[float, Any]] = []
    run(write(), progress=lambda share, note: told.append((share, note)))
    assert told[-1] == (1.0, "12 of 12 runs")
    assert len(told) == 12
