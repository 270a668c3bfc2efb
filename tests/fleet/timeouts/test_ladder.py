"""The ladder has each layer's time from the configuration, and says which stand in the wrong order."""

import pytest

from fabrictune.fleet.facts.derived import fleet_facts
from fabrictune.fleet.timeouts.ladder import BFD, build_ladder, ended_by, find_disorders
from fabrictune.rdma_bench.timers.profiles import KNOWN_PROFILES
from tests.fleet.site import Site, clean_site

PROFILE = KNOWN_PROFILES["connectx-6"]


def ladder(site: Site, group_timeout_s: float | None = None):
    return build_ladder(fleet_facts(site.readings()), PROFILE, group_timeout_s=group_timeout_s)


def with_timeout(exponent: int) -> Site:
    site = clean_site()
    for host in site.texts:
        site.replace(host, "/etc/nccl.conf", "TIMEOUT=22", f"TIMEOUT={exponent}")
    return site


def test_times_come_from_the_configuration() -> None:
    """T = 20, R = 7 on a ConnectX-6 fails after 59.8 s; the watchdog takes 200 + 400 ms; Slurm has 300 s."""
    times = {rung.layer: (round(rung.time_s, 1), rung.assumed) for rung in ladder(with_timeout(20))}
    assert times == {
        "PFC watchdog": (0.6, ""),
        "longest flap survived": (51.2, "timers of connectx-6"),
        "queue pair fails": (59.8, "timers of connectx-6"),
        "BGP hold time": (180.0, "default"),
        "Slurm node timeout": (300.0, ""),
        "torch watchdog": (480.0, "default"),
        "process group": (600.0, "default"),
    }


def test_what_should_be_longer_is_said() -> None:
    """BGP's hold time of 180 s is longer than 51 s; BFD of 0.9 s makes that good; a group of 30 s hides the error."""
    site = with_timeout(20)
    pairs = [(one.longer.layer, one.shorter.layer) for one in find_disorders(ladder(site, 30.0))]
    assert pairs == [("longest flap survived", "BGP hold time"), ("process group", "queue pair fails")]
    rungs = (*ladder(site), ladder(site)[0].__class__(layer=BFD, time_s=0.9, where="leaf1"))
    assert list(find_disorders(rungs)) == []


def test_a_flap_ends_the_job_or_not() -> None:
    """5 s are survived; 55 s are beyond the last retransmission; with a group of 30 s that comes first."""
    rungs = ladder(with_timeout(20))
    assert ended_by(rungs, 5.0) is None
    ending = ended_by(rungs, 55.0)
    assert ending
    assert ending.layer == "queue pair fails"
    first = ended_by(ladder(with_timeout(20), 30.0), 55.0)
    assert first
    assert first.layer == "process group"


def with_failover(*hosts: str, settings: str = "NCCL_IB_RESILIENCY_PORT_FAILOVER=1\n") -> Site:
    site = with_timeout(20)
    for host in hosts:
        site.texts[host]["/etc/nccl.conf"] += settings
    return site


def test_port_failover_outlives_an_error_where_all_hosts_have_it() -> None:
    """10 ms after the error at 59.8 s; recovery asks 5 times for 9 s from 200 ms later on: 105 s. 70 s end nothing."""
    both = "NCCL_IB_RESILIENCY_PORT_FAILOVER=1\nNCCL_IB_RESILIENCY_PORT_RECOVERY=1\n"
    rungs = ladder(with_failover(*clean_site().texts, settings=both))
    times = {rung.layer: rung.time_s for rung in rungs}
    assert times["NCCL port failover"] - times["queue pair fails"] == pytest.approx(0.01)
    assert times["NCCL port recovery gives up"] - times["NCCL port failover"] == pytest.approx(0.2 + 5 * 9)
    assert ended_by(rungs, 70.0) is None
    (failover,) = (rung for rung in rungs if rung.layer == "NCCL port failover")
    assert failover.assumed.endswith("a fused device with another NIC that works")


def test_one_host_without_port_failover_ends_the_job() -> None:
    """Three of four have it on: the ladder has no failover, and an error is the end."""
    rungs = ladder(with_failover("gpu1", "gpu2", "gpu3"))
    assert "NCCL port failover" not in {rung.layer for rung in rungs}
    ending = ended_by(rungs, 70.0)
    assert ending
    assert ending.layer == "queue pair fails"


def test_a_group_that_ends_before_the_traffic_moved_is_said() -> None:
    """A process group of 30 s ends before failover at 59.8 s."""
    pairs = {
        (one.longer.layer, one.shorter.layer)
        for one in find_disorders(ladder(with_failover(*clean_site().texts), 30.0))
    }
    assert ("process group", "NCCL port failover") in pairs
