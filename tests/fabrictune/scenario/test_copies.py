"""A scenario copied to another folder finds its files, and has the changes."""

from pathlib import Path

from fabrictune.scenario.composition import compose
from fabrictune.scenario.copies import copy_text
from fabrictune.scenario.files import load_scenario, parse_scenario
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.files import write_fabric

SCENARIO = """
name: jobs
fabric: {file: fabrics/pod.json}
law: ./laws/own.py
traffic:
  workload: mix
  parts:
  - {name: a, traffic: {workload: all_reduce, layout: {dp: 2}, placement: a.hosts, message: 1 MB}}
  - {name: b, traffic: {workload: all_reduce, layout: {dp: 2}, hosts: [host2, host3], message: 1 MB}}
"""


def test_files_are_found_from_the_new_folder(tmp_path: Path) -> None:
    """The fabric, a job's hosts and a law of one's own; names of hosts and laws that are no files stay."""
    (tmp_path / "fabrics").mkdir()
    (tmp_path / "runs" / "plan").mkdir(parents=True)
    write_fabric(build_clos(ClosSpec(num_hosts=4, hosts_per_tor_set=4, tiers=2)), tmp_path / "fabrics" / "pod.json")
    (tmp_path / "a.hosts").write_text("host1\nhost0\n")
    path = tmp_path / "jobs.yaml"
    path.write_text(SCENARIO.replace("./laws/own.py", "none"))
    scenario, folder = load_scenario(path), tmp_path / "runs" / "plan"
    changes = {"traffic.parts[1].traffic.message": "2 MB"}
    text = copy_text(scenario, changes, folder, drop=["traffic.parts.1.traffic.hosts", "traffic.parts.0.job"])
    copied = parse_scenario(text, folder / "planned.yaml")
    assert copied.traffic.spec.parts[0].traffic.spec.placement.resolve() == tmp_path / "a.hosts"
    assert copied.traffic.spec.parts[1].traffic.spec.hosts == ()
    assert copied.traffic.spec.parts[1].traffic.spec.message_bytes == 2_000_000
    first, second = scenario, parse_scenario(copy_text(scenario, {}, folder), folder / "same.yaml")
    assert len(compose(first).traffic) == len(compose(second).traffic)


def test_a_law_of_ones_own_is_found_too(tmp_path: Path) -> None:
    """No spec knows that its name is a file; what begins with a dot and a slash is one."""
    scenario = parse_scenario(SCENARIO, tmp_path / "jobs.yaml")
    assert '"../../laws/own.py"' in copy_text(scenario, {}, tmp_path / "runs" / "plan")
