"""A user's own switches: from their configuration to a better ECN threshold, and back to the lines that set it."""

import json
from pathlib import Path

from tests.first_hour.session import Session
from tests.json_patch import apply_patch

GOLDEN = Path(__file__).parents[1] / "golden" / "topology"
FILES = ("qos-leaf1.config_db.json", "qos-spine1.config_db.json")
TRAFFIC = ("workload: permutation, message: 10 MB", "workload: incast, senders: 3, message: 20 MB")


def test_own_configuration_to_a_sweep_to_switch_lines_and_back(session: Session) -> None:
    """Import with QoS, sweep a threshold, take the patch, and import again: what was asked for is there."""
    for name in FILES:
        session.write(f"configs/{name}", (GOLDEN / name).read_text())
    shown = session.command("fabrictune topo import configs --with-qos --dscp 26 --out pod.json")
    assert "note: WRED profile of queue 3: 5 of 7 taken; others: 2 at configs/qos-spine1.config_db.json:109" in shown
    scenario = (session.folder / "pod.yaml").read_text()
    assert "kmin: 1000000 B         # configs/qos-leaf1.config_db.json:53: WRED_PROFILE.ROCE_LOSSLESS" in scenario
    session.write("pod.yaml", scenario.replace(*TRAFFIC))

    vary = "--vary 'engine.queues.priorities[0].ecn.kmin=100 KB;1 MB' --seeds 1 --out runs/kmin"
    shown = session.command(f"fabrictune sim sweep pod.yaml {vary}")
    assert "for a NIC, the best in completion_time.p99, changed from scenario sonic-2-switches-qos" in shown
    assert "# on leaf1, spine1, changed from the switches' files:" in shown
    assert "sudo ecnconfig -p ROCE_LOSSLESS -gmin 100000\n" in shown

    (best,) = json.loads((session.folder / "runs/kmin/result/switch-patches.json").read_text())
    for name in FILES:
        tree = json.loads((GOLDEN / name).read_text())
        switch = tree["DEVICE_METADATA"]["localhost"]["hostname"]
        session.write(f"patched/{name}", json.dumps(apply_patch(tree, best["switches"][switch]), indent=4))
    session.command("fabrictune topo import patched --with-qos --dscp 26 --out patched.json")
    assert "kmin: 100000 B " in (session.folder / "patched.yaml").read_text()
