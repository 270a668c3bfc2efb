"""Train on this machine, replay the run on a fabric, and plan the step of a cluster; the answers on screens."""

import re

import pytest

from tests.first_hour.session import Session

pytest.importorskip("torch")

TRAINED = "--set degrees.layout.tp=1 --set degrees.layout.pp=1 --set degrees.virtual=1 --set num_steps=3"


@pytest.mark.slow
def test_a_training_run_is_replayed_and_a_cluster_planned(session: Session) -> None:
    """Three commands: a fabric, a run of two ranks with its replay behind it, and the plan of 12,288 GPUs."""
    session.command("fabrictune topo build clos num_hosts=4 hosts_per_tor_set=2 nics_per_host=1 tiers=2 --out f.json")
    screen = session.command(f"fabrictune train run tiny {TRAINED} --then-simulate f.json")
    answer = screen[screen.index("replayed steps of 2 ranks") :]
    headings, *steps, mean = re.findall(r"^  (?:step|\d+|mean) .*$", answer, re.M)
    columns = ("step", "time", "work", "exposed dp", "exposed pp", "exposed tp", "without network", "lower bound")
    assert re.split(r" {2,}", headings.strip()) == list(columns)
    assert len(steps) == 2, "the last two steps are traced"
    assert mean.startswith("  mean ")
    assert re.search(r"^critical path \d.*: .*\bwork \d+ %", screen, re.M)  # the axes' shares are this machine's
    assert "assumed: law none" in screen
    assert "record: runs/tiny-on-f" in screen

    plan = session.command("fabrictune train plan 175b --nic '400 Gbps'")
    assert re.search(r"^at most [\d,]+ tokens/s: \d\d\.\d% MFU", plan, re.M)
    assert re.search(r"^  step +\d\.\d+ s$", plan, re.M)


@pytest.mark.slow
def test_a_record_is_replayed_on_another_fabric(session: Session) -> None:
    """Of a run that is there: the same steps at a slower network, by one command."""
    session.command(f"fabrictune train run tiny {TRAINED} --out run --quiet")
    for rate in (100, 1):
        session.command(
            "fabrictune topo build clos num_hosts=2 hosts_per_tor_set=2 nics_per_host=1 tiers=2 "
            f"nic_rate='{rate} Gbps' uplink_rate='{2 * rate} Gbps' --out {rate}.json"
        )
    fast = exposed_ms(session.command("fabrictune sim run --trace run --fabric 100.json"))
    slow = exposed_ms(session.command("fabrictune sim run --trace run --fabric 1.json"))
    assert slow > fast


def exposed_ms(screen: str) -> float:
    """Return the exposed communication of dp, mean over steps, that the screen shows."""
    match = re.search(r"^  mean +\S+ \S+ +\S+ \S+ +(\S+) (ms|us)", screen, re.M)
    assert match, screen
    return float(match[1]) * {"ms": 1.0, "us": 1e-3}[match[2]]
