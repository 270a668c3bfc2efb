"""How often a fault that is planted on a testbed's link is named, and how often a healthy testbed has an alarm.

Run as root: `python -m benchmarks.studies.testbed_faults [--trials N] [--out FILE]` (20 of each are about a quarter of
an hour); started again it goes on. Eight hosts under two leaves and four spines, 20 Mbps, two greedy streams a host.
A trial plants one fault on a busy link, looks for five seconds, and heals it: a rate of 30 to 70 %, a flap of 0.2 to
1 s, or 1 % loss. It is right when exactly the planted link is named, as what was planted.

Expected before the first run: 20 of 20 of each fault, and no alarm in 20 clean trials. A flap and a loss are counters
of the kernel and cannot be missed, but for a loss of 1 % where fewer than three of some 1,000 packets are hit (one in a
few thousand trials). A slow link is missed only if its queue does not wait for a second without a break.
"""

import argparse
import csv
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from fabrictune.testbed.links import check_links, link_use
from fabrictune.testbed.plan import plan_testbed
from fabrictune.testbed.shaping import change_rate, discard, heal, set_link
from fabrictune.testbed.streams import Stream, streams
from fabrictune.testbed.testbed import Testbed, temporary_testbed
from fabrictune.testbed.watching import watch_links
from fabrictune.topology.builders.clos import ClosSpec, build_clos

FAULTS = ("clean", "slow", "flap", "loss")
NUM_HOSTS = 8
LOOK_S, INTERVAL_S = 5.0, 0.2
BUSY_FRACTION = 0.9  # of a link on which a fault is planted


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What was planted where, and what was named."""

    fault: str
    seed: int
    link: str
    named: str  # "slow host1:nic0 -> tor0:down1", several joined by "; "

    @property
    def is_right(self) -> bool:
        """Whether exactly the planted fault was named, or nothing of a clean testbed."""
        return self.named == ("" if self.fault == "clean" else f"{self.fault} {self.link}")


def main() -> None:
    """Run the trials that are not in the file yet, and print a table of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("runs/testbed-faults.csv"))
    options = parser.parse_args()
    done = read_trials(options.out)
    known = {(trial.fault, trial.seed) for trial in done}
    missing = [(fault, seed) for seed in range(options.trials) for fault in FAULTS if (fault, seed) not in known]
    if missing:
        with busy_testbed() as testbed:
            for fault, seed in missing:
                done.append(run_trial(testbed, fault, seed))
                append_trial(options.out, done[-1])
                print(f"{len(done)}: {'right' if done[-1].is_right else 'WRONG'} {done[-1]}", flush=True)
    right, total = Counter(trial.fault for trial in done if trial.is_right), Counter(trial.fault for trial in done)
    for fault in FAULTS:
        print(f"{fault:8}{right[fault]:>4} of {total[fault]}")


@contextmanager
def busy_testbed() -> Iterator[Testbed]:
    """Give a testbed all of whose hosts send to two others."""
    spec = ClosSpec(num_hosts=NUM_HOSTS, hosts_per_tor_set=4, nics_per_host=1, tiers=2, uplinks_per_tor=4)
    fabric = plan_testbed(build_clos(spec), rate_bps=20_000_000)
    wanted = [
        Stream(source_nic=nic, destination_nic=(nic + step) % NUM_HOSTS) for step in (1, 4) for nic in range(NUM_HOSTS)
    ]
    with (
        tempfile.TemporaryDirectory() as folder,
        temporary_testbed(fabric, "faults", Path(folder), with_ssh=False) as testbed,
        streams(testbed.built, wanted),
    ):
        yield testbed


def run_trial(testbed: Testbed, fault: str, seed: int) -> Trial:
    """Plant a fault on a busy link, look, and heal it."""
    built, fabric = testbed.built, testbed.fabric
    random = np.random.default_rng(seed)
    rate_P = link_use(fabric, watch_links(built, duration_s=2.0, interval_s=1.0)).rate_bps_P
    port = int(random.choice(np.nonzero(rate_P > BUSY_FRACTION * fabric.port_rate_bps_P)[0]))
    first = watch_links(built, duration_s=0.2, interval_s=0.1) if fault == "flap" else []
    if fault == "slow":
        change_rate(built, port, round(random.uniform(0.3, 0.7) * fabric.port_rate_bps_P[port]))
    elif fault == "loss":
        discard(built, port, 0.01)
    elif fault == "flap":
        set_link(built, port, "down")
        watch_links(built, duration_s=random.uniform(0.2, 1.0), interval_s=1.0)
        set_link(built, port, "up")
    report = check_links(link_use(fabric, [*first, *watch_links(built, duration_s=LOOK_S, interval_s=INTERVAL_S)]))
    heal(built, port)
    named = [f"{one.id.removeprefix('testbed.link-')} {one.entity}" for one in report.findings]
    end = min(port, int(fabric.port_peer_P[port])) if fault == "flap" else port
    return Trial(fault=fault, seed=seed, link=fabric.link_label(end), named="; ".join(named))


def read_trials(path: Path) -> list[Trial]:
    """Return the trials in a file, none where there is no file."""
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        return [
            Trial(fault=row["fault"], seed=int(row["seed"]), link=row["link"], named=row["named"])
            for row in csv.DictReader(file)
        ]


def append_trial(path: Path, trial: Trial) -> None:
    """Add a trial to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.is_file()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(Trial.__dataclass_fields__))
        if is_new:
            writer.writeheader()
        writer.writerow(asdict(trial))


if __name__ == "__main__":
    main()
