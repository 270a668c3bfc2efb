"""A scenario with several kinds of traffic at once."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.errors import FabrictuneError, FabrictuneWarning, InputError
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.scenario import jobs
from fabrictune.scenario.composition import compose
from fabrictune.scenario.files import load_scenario
from fabrictune.scenario.mixture import placements
from fabrictune.studies.run_summary import summarize
from fabrictune.studies.simulation import simulate
from fabrictune.topology.placement import Placement, place

FABRIC = "fabric: {builder: clos, num_hosts: 8, hosts_per_tor_set: 8, nics_per_host: 1, tiers: 2}\n"
INCAST = "{name: burst, start: 100 ms, traffic: {workload: incast, senders: 2, message: 1 MB}}"
OTHERS = "{name: others, traffic: {workload: poisson, load: 0.2, duration: 50 us, sizes: web_search}}"


def write(folder: Path, parts: str, rest: str = "") -> Path:
    path = folder / "mix.yaml"
    path.write_text(f"name: mix\n{FABRIC}traffic: {{workload: mix, parts: [{parts}]}}\n{rest}")
    return path


def test_a_part_starts_when_it_is_told_and_is_measured_alone(tmp_path: Path) -> None:
    """Two messages meet in one port, so both take twice as long as alone: the others are long done."""
    record = simulate(load_scenario(write(tmp_path, f"{INCAST}, {OTHERS}")))
    transfers, summary = record.tables["transfers"], summarize(record)
    is_burst = transfers["part"] == "burst"
    assert transfers["ready_ps"][is_burst].tolist() == [10**11, 10**11]
    assert set(transfers["part"].tolist()) == {"burst", "others"}
    assert list(summary.parts) == ["burst", "others"]
    assert summary.parts["burst"]["slowdown.p99"] == pytest.approx(2, rel=0.01)


def test_what_a_part_draws_does_not_depend_on_its_neighbours(tmp_path: Path) -> None:
    """The same flows arrive at the same times with the burst and without."""
    alone = simulate(load_scenario(write(tmp_path, OTHERS))).tables["transfers"]
    beside = simulate(load_scenario(write(tmp_path, f"{INCAST}, {OTHERS}"))).tables["transfers"]
    is_other = beside["part"] == "others"
    for column in ("ready_ps", "bytes", "source", "destination"):
        assert np.array_equal(alone[column], beside[column][is_other]), column


def test_a_bound_can_be_set_for_a_part(tmp_path: Path) -> None:
    """The bound that the burst breaks names it; the same bound on all transfers' median would hold."""
    bounds = "expect: [{metric: slowdown.p99, part: burst, at_most: 1.5}]\n"
    findings = simulate(load_scenario(write(tmp_path, f"{INCAST}, {OTHERS}", bounds))).findings
    (finding,) = [finding for finding in findings if finding.id.startswith("expect.")]
    assert finding.entity == "slowdown.p99 of burst"


JOB = "{name: %s, traffic: {workload: all_reduce, layout: {dp: 2}, message: 1 MB, placement: %s}}"
SHARED = (
    "mix.yaml:3: traffic.parts[1]: rank 0 of 'b' on host0 GPU 0, where rank 0 of 'a' is; the same on 1 more GPUs\n"
    "  allowed: one rank a GPU\n"
    "  next: give 'b' other hosts in its `traffic` (`hosts: free`, a list, a switch, `first_host`, or "
    "`placement: FILE`); if both are collectives of one job, set `job: a` in both\n"
)


def test_two_jobs_on_the_same_gpus_are_refused_by_every_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each part is placed alone, from the first host on; a burst beside a job has no ranks and is none."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, f"{JOB % ('a', 'contiguous')}, {JOB % ('b', 'contiguous')}")
    for command in (
        *("sim run", "ecmp analyze", "ecmp whatif --seeds 2", "ecmp plan --seeds 2"),
        *("scenario check", "ecmp explain"),
    ):
        assert run([*command.split(), "mix.yaml"]) == 2
        assert SHARED in capsys.readouterr().err
    write(tmp_path, f"{JOB % ('a', 'contiguous')}, {INCAST}")
    assert run(["scenario", "check", "mix.yaml"]) == 0
    assert capsys.readouterr().err == ""


def test_collectives_of_one_job_share_its_gpus(tmp_path: Path) -> None:
    """Two parts with one job; a rank of it at two places is refused."""
    own = "{job: j, name: %s, traffic: {workload: all_reduce, layout: {dp: 2}, message: 1 MB%s}}"
    assert compose(load_scenario(write(tmp_path, f"{own % ('a', '')}, {own % ('b', '')}"))).notes == ()
    with pytest.raises(InputError, match="rank 0 of the job 'j' on host1 GPU 0 in 'b', and on host0 GPU 0 in 'a'"):
        compose(load_scenario(write(tmp_path, f"{own % ('a', '')}, {own % ('b', ', first_host: 1')}")))


def test_jobs_stand_on_hosts_of_their_own(tmp_path: Path) -> None:
    """A job on a list, one on what the others leave, whatever their order, and one from a host on."""
    free = (JOB % ("f", "contiguous")).replace("layout", "hosts: free, layout")
    listed = (JOB % ("l", "contiguous")).replace("layout", "hosts: [host1, 0, host3], layout")
    late = (JOB % ("late", "contiguous")).replace("layout", "first_host: host6, layout")
    scenario = load_scenario(write(tmp_path, f"{free}, {listed}, {late}"))
    fabric = compose(scenario).network.fabric
    places = {name: one.host_R.tolist() for name, one in placements(scenario.traffic.spec, fabric).items()}
    assert places == {"f": [2, 3], "l": [0, 1], "late": [6, 7]}


def test_each_job_has_its_rows_of_a_file(tmp_path: Path) -> None:
    """One file for both, as a plan writes it; an unknown host has its line in that file."""
    rows = [f"{job},{rank},host{first + rank}" for job, first in (("a", 4), ("b", 1)) for rank in (0, 1)]
    (tmp_path / "placement.csv").write_text("\n".join(["job,rank,host", *rows]))
    parts = ", ".join(JOB % (name, "placement.csv") for name in ("a", "b"))
    scenario = load_scenario(write(tmp_path, parts))
    fabric = compose(scenario).network.fabric
    places = {name: one.host_R.tolist() for name, one in placements(scenario.traffic.spec, fabric).items()}
    assert places == {"a": [4, 5], "b": [1, 2]}
    (tmp_path / "placement.csv").write_text("job,rank,host\na,0,host4\na,1,hots5\nb,0,host1\nb,1,host2\n")
    with pytest.raises(InputError, match=r"placement\.csv:3: unknown host 'hots5'"):
        compose(scenario)


@pytest.mark.parametrize("name", ["placement.csv", "four.hosts"])
def test_a_file_called_like_a_key_keeps_its_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bare name is no path of keys: neither `csv` below `placement`, nor `hosts` of a room called four."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, JOB % ("a", name))
    with pytest.raises(InputError, match=rf"^\./{name}: no such file"):
        compose(load_scenario(Path("mix.yaml")))
    Path(name).write_text("host0\nhots1\n")
    with pytest.raises(InputError, match=rf"^\./{name}:2: unknown host 'hots1'"):
        compose(load_scenario(Path("mix.yaml")))


def test_other_gpus_behind_the_same_nics_are_noted(tmp_path: Path) -> None:
    """Two GPUs a host behind its one NIC, a job on each."""
    (tmp_path / "gpus.csv").write_text("job,rank,host,gpu\na,0,host0,0\na,1,host1,0\nb,0,host0,1\nb,1,host1,1\n")
    parts = ", ".join((JOB % (name, "gpus.csv")).replace("layout", "gpus_per_host: 2, layout") for name in ("a", "b"))
    note = (
        "traffic.parts: 'a' and 'b' have ranks on GPUs of the same 2 NICs (host0:nic0, host1:nic0), and share their "
        "rate"
    )
    with pytest.warns(FabrictuneWarning) as caught:
        composed = compose(load_scenario(write(tmp_path, parts)))
    assert [str(warning.message) for warning in caught] == [note]
    assert composed.notes == (note,)


def test_explain_names_the_ranks_of_each_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rank 0 of the job sends to rank 1; the burst has no ranks."""
    path = write(tmp_path, f"{JOB % ('a', 'contiguous')}, {INCAST}")
    assert run(["ecmp", "explain", str(path), "host0:nic0", "--json"]) == 0
    flow, *_ = json.loads(capsys.readouterr().out)["flows"]
    assert (flow["part"], flow["source_ranks"], flow["destination_ranks"]) == ("a", [0], [1])
    assert run(["ecmp", "explain", str(path), "host0:nic0"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:2] == ["qp", "part"]


@pytest.mark.parametrize(
    ("parts", "rest", "message"),
    [
        (f"{INCAST}, {INCAST}", "", "two parts named 'burst'"),
        ("", "", "no parts"),
        (INCAST.replace("100 ms", "-1 us"), "", "-1"),
        (INCAST.replace("incast", "mix"), "", "unknown workload 'mix'"),
        (INCAST.replace("incast", "observed"), "", "unknown workload 'observed'"),
        (INCAST, "expect: [{metric: drops, part: burst, at_most: 0}]", "it is known of the whole run alone"),
        (INCAST, "expect: [{metric: makespan, part: brust, at_most: 1 s}]", "did you mean 'burst'"),
    ],
)
def test_what_cannot_be_mixed_or_measured_is_refused(tmp_path: Path, parts: str, rest: str, message: str) -> None:
    """Each in one message, before anything runs."""
    with pytest.raises(FabrictuneError, match=message):
        load_scenario(write(tmp_path, parts, rest))


def test_a_bound_for_a_part_needs_parts(tmp_path: Path) -> None:
    """A scenario with one workload has none to name."""
    path = tmp_path / "single.yaml"
    traffic = "traffic: {workload: incast, senders: 2, message: 1 MB}\n"
    path.write_text(f"name: one\n{FABRIC}{traffic}expect: [{{metric: makespan, part: burst, at_most: 1 s}}]\n")
    with pytest.raises(FabrictuneError, match="burst"):
        load_scenario(path)


def test_a_job_far_larger_than_the_fabric_is_refused_before_it_is_written_out(tmp_path: Path) -> None:
    """A hundred million ranks would take 17 GB as the groups of a trace."""
    job = "{name: job, traffic: {workload: all_reduce, layout: {dp: 99999999}, message: 1 MB}}"
    scenario = load_scenario(write(tmp_path, f"{job}, {INCAST}"))
    tracemalloc.start()
    try:
        with pytest.raises(FabrictuneError, match="99999999 ranks for 8 GPUs"):
            compose(scenario)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 2**25


def test_what_is_wrong_with_a_part_has_its_place(tmp_path: Path) -> None:
    """The room of the incast knows its senders, not which part of which file they are in."""
    path = write(tmp_path, f"{OTHERS}, {INCAST.replace('senders: 2', 'senders: 400')}")
    with pytest.raises(
        InputError, match=r"mix\.yaml:3: traffic\.parts\[1\]\.traffic\.senders: 400 senders\n  allowed: "
    ):
        simulate(load_scenario(path))


def test_each_part_is_placed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its messages and the check of its places have the same placement, which takes long for a large job."""
    layouts = []

    def count(layout: ParallelLayout, *arguments: Any, **options: Any) -> Placement:
        layouts.append(layout)
        return place(layout, *arguments, **options)

    monkeypatch.setattr(jobs, "place", count)
    second = (JOB % ("b", "contiguous")).replace("layout", "hosts: free, layout")
    compose(load_scenario(write(tmp_path, f"{JOB % ('a', 'contiguous')}, {second}")))
    assert len(layouts) == 2
