"""The ladder has each layer's time from the configuration, and says which stand in the wrong order."""

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
