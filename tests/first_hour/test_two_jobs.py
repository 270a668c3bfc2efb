"""From a lab's own configuration to the links on which two jobs collide, to a fix that the engine confirms."""

import json

from tests.first_hour.session import Session

LAB = """name: lab
topology:
  nodes:
    spine1: {kind: nokia_srlinux}
    spine2: {kind: nokia_srlinux}
    leaf1: {kind: nokia_srlinux}
    leaf2: {kind: nokia_srlinux}
    gpu01: {kind: linux}
    gpu02: {kind: linux}
    gpu03: {kind: linux}
    gpu04: {kind: linux}
    gpu05: {kind: linux}
    gpu06: {kind: linux}
    gpu07: {kind: linux}
    gpu08: {kind: linux}
  links:
    - endpoints: ["leaf1:e1-49", "spine1:e1-1"]
    - endpoints: ["leaf1:e1-50", "spine2:e1-1"]
    - endpoints: ["leaf2:e1-49", "spine1:e1-2"]
    - endpoints: ["leaf2:e1-50", "spine2:e1-2"]
    - endpoints: ["gpu01:eth1", "leaf1:e1-1"]
    - endpoints: ["gpu02:eth1", "leaf1:e1-2"]
    - endpoints: ["gpu03:eth1", "leaf1:e1-3"]
    - endpoints: ["gpu04:eth1", "leaf1:e1-4"]
    - endpoints: ["gpu05:eth1", "leaf2:e1-1"]
    - endpoints: ["gpu06:eth1", "leaf2:e1-2"]
    - endpoints: ["gpu07:eth1", "leaf2:e1-3"]
    - endpoints: ["gpu08:eth1", "leaf2:e1-4"]
"""
JOBS = """name: two-jobs
fabric: {file: lab.clab.yml}
traffic:
  workload: mix
  parts:
    - name: training
      traffic:
        workload: all_reduce
        layout: {dp: 4}
        message: 40 MB
        placement: training.hosts # Slurm's SLURM_HOSTFILE
    - name: finetune
      start: 50 us
      traffic:
        workload: all_reduce
        layout: {dp: 4}
        message: 40 MB
        hosts: "gpu[02,04,06,08]"
        placement: interleaved
"""


def test_from_a_configuration_to_colliding_links_to_a_fix(session: Session) -> None:
    """Every ring climbs at each of its four steps; under one leaf each climbs at none.

    Both uplinks of a leaf carry two flows of each job, whatever the hash: four flows for 200 Gbps.
    """
    session.write("lab.clab.yml", LAB)
    session.write("two-jobs.yaml", JOBS)
    session.write("training.hosts", "gpu01\ngpu05\ngpu03\ngpu07\n")

    shown = session.command("fabrictune ecmp analyze two-jobs.yaml", exit_code=1)
    assert "oversubscribed links" in shown
    assert "of training: gpu01:eth1 to gpu05:eth1" in shown
    assert "of finetune:" in shown

    shown = session.command("fabrictune ecmp explain two-jobs.yaml")
    assert "training" in shown
    assert "0 > 1" in shown or "2 > 3" in shown or "1 > 2" in shown or "3 > 0" in shown

    session.command("fabrictune ecmp plan two-jobs.yaml --simulate --quiet --out plan")
    assert "placement: " in session.screen
    assert "gain" in session.screen
    run = json.loads((session.folder / "plan" / "run.json").read_text())
    assert run["kind"] == "ecmp plan"

    shown = session.command("fabrictune sim run plan/planned.yaml")
    assert "two-jobs-planned" in shown
    assert len(session.commands) == 4


def test_two_jobs_on_the_same_gpus_are_said_at_once(session: Session) -> None:
    """Neither runs at half its rate in silence: both ranks are named, and what to write instead."""
    session.write("lab.clab.yml", LAB)
    first = JOBS.replace("placement: training.hosts # Slurm's SLURM_HOSTFILE", "hosts: [leaf1]")
    session.write("two-jobs.yaml", first.replace('"gpu[02,04,06,08]"', "[gpu01, gpu02, gpu07, gpu08]"))
    shown = session.command("fabrictune scenario check two-jobs.yaml", exit_code=2)
    assert "rank 0 of 'finetune' on gpu01 GPU 0, where rank 0 of 'training' is" in shown
    assert "hosts: free" in shown
