"""A mixture of experts on 512 GPUs at 2:1: which law, and which marking threshold.

The commands are those for 512 GPUs; the fabric here has 32, so that the engine is done in seconds.
"""

from tests.first_hour.session import Session

SCENARIO = """name: moe
question: Which law suits experts and gradients at 2:1, and from which queue should switches mark?
fabric:
  {builder: clos, num_hosts: 8, hosts_per_tor_set: 2, nics_per_host: 4, tiers: 2, nic_rate: 400 Gbps,
   downlink_split: 1, oversubscription: 2}
traffic:
  workload: mix
  parts:
    - name: experts
      job: training
      traffic:
        workload: moe
        layout: &layout {dp: 32, ep: 16}
        num_tokens: 128
        width: 2048
        experts: {num_experts: 64, num_choices: 4}
        dispatch: fp8
        deduplication: rank
        expansion: {pxn: false}
    - name: gradients
      job: training
      traffic: {workload: collective, operation: all_reduce, axis: edp, layout: *layout, message: 4 MB}
law: dcqcn_firmware
"""
OBJECTIVES = "--objective makespan --objective queue.max --seeds 2"


def test_laws_are_compared_and_the_best_ones_marking_is_swept(session: Session) -> None:
    """Three commands: the file is checked, three laws stand beside one another, then three thresholds of one law."""
    session.write("moe.yaml", SCENARIO)
    session.command("fabrictune scenario check moe.yaml")
    laws = session.command(f'fabrictune sim sweep moe.yaml --vary "law=dcqcn_firmware;swift;hybrid" {OBJECTIVES}')
    assert "expansion.pxn: false: 288 of 384 connections leave through their own NIC and cross rails" in laws
    assert "a token reaches 2.77 hosts" in laws
    assert "of 3 points are Pareto-optimal" in laws
    rows = [line.split() for line in laws.splitlines() if line.strip().startswith(("*", "-"))]
    assert {row[1] for row in rows} == {"dcqcn_firmware", "swift", "hybrid"}
    marks = session.command(
        f'fabrictune sim sweep moe.yaml --out runs/marking --vary "engine.ecn.kmin=100 KB;200 KB;400 KB" {OBJECTIVES}'
    )
    assert "of 3 points are Pareto-optimal" in marks
    assert all(size in marks for size in ("100 KB", "200 KB", "400 KB"))
