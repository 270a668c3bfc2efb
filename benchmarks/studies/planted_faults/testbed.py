"""Trials on a testbed: real packets over cables that are slow or lose some, read by the commands that a user has.

A slow link is a host's cable at a half to a sixth of its rate, in both directions, under a training of a rank a host,
whose spans `train stragglers` reads. A lossy link is one direction of any cable, between switches too, that loses 0.5
to 2 % of what it carries while every host sends to six others; `rdma gray-loss` reads what each connection's kernel
counts as sent and sent again, by the path that the switches' kernels choose for it.
"""

import csv
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks.studies.planted_faults.commands import LOSSY_LINK, lossy_links_of, stragglers_of
from benchmarks.studies.planted_faults.trials import Name, Result, Trial, Truth
from fabrictune.foundation.span_writer import spans_beside
from fabrictune.testbed.connections import read_connections
from fabrictune.testbed.paths import Flow, kernel_paths
from fabrictune.testbed.plan import plan_testbed
from fabrictune.testbed.shaping import change_rate, discard, heal
from fabrictune.testbed.streams import Stream, streams
from fabrictune.testbed.testbed import Testbed, temporary_testbed
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.fabric import Fabric
from fabrictune.trainer_probe.recipes.files import load_recipe
from fabrictune.validate.testbed_training import train_on

RATE_BPS = 40_000_000
RECIPE = """
name: planted-on-a-testbed
model: {{preset: tiny, vocabulary: 258, width: 128, depth: 2, sequence: 32}}
degrees: {{layout: {{dp: {dp}, pp: 2}}, virtual: 1, num_batches: 4, batch_size: 4}}
schedule: {{peak: 3.0e-3, num_warmup_steps: 2, num_steps: 12}}
data: {{source: synthetic}}
num_steps: 12
"""
SLOWER = (2.0, 6.0)
LOSSES = (0.005, 0.02)
DISTANCES = (1, 2, 3, 5, 6, 7)  # of the hosts that a host sends to
LOOK_S, POLL_S = 10.0, 0.1


def try_testbed(trials: Sequence[Trial], seed: int, folder: Path) -> Iterator[Result]:
    """Yield the results of the trials, all of one size, on one testbed."""
    fabric = fabric_of(trials[0].size)
    with (
        tempfile.TemporaryDirectory(prefix="planted-") as files,
        temporary_testbed(fabric, "planted", Path(files), with_ssh=False) as testbed,
    ):
        for trial in trials:
            place = folder / trial.name
            place.mkdir()
            yield _try(testbed, trial, np.random.default_rng(trial.seed(seed)), place)


def fabric_of(num_hosts: int) -> Fabric:
    """Return ToRs of two hosts under two spines, at a rate that two cores can carry.

    Under two ToRs alone both halves of a way between them have the same flows, and no count can tell them apart.
    """
    spec = ClosSpec(num_hosts=num_hosts, hosts_per_tor_set=2, nics_per_host=1, tiers=2, uplinks_per_tor=2)
    return plan_testbed(build_clos(spec), rate_bps=RATE_BPS)


def _try(testbed: Testbed, trial: Trial, random: np.random.Generator, folder: Path) -> Result:
    match trial.kind:
        case "slow link":
            return _slow_link(testbed, trial, random, folder)
        case "lossy link":
            return _lossy_link(testbed, trial, random, folder)
        case _:
            return _clean(testbed, trial, folder)


def _slow_link(testbed: Testbed, trial: Trial, random: np.random.Generator, folder: Path) -> Result:
    """Train while a rank's cable is slow."""
    fabric, rank, slower = testbed.fabric, int(random.integers(trial.size)), float(random.uniform(*SLOWER))
    port = fabric.first_port(rank)
    cable = (port, int(fabric.port_peer_P[port]))
    for end in cable:
        change_rate(testbed.built, end, round(int(fabric.port_rate_bps_P[end]) / slower))
    names, answer_s = _train(testbed, folder)
    for end in cable:
        heal(testbed.built, end)
    truth = Truth(cause="slow link", places=((str(rank),),))
    return Result(trial=trial, truth=truth, names=names, answer_s=answer_s)


def _lossy_link(testbed: Testbed, trial: Trial, random: np.random.Generator, folder: Path) -> Result:
    """Lose packets of a direction that data crosses, of any tier, while hosts send."""
    with _sending(testbed) as paths:
        port = int(random.choice(sorted({port for path in paths.values() for port in path})))
        discard(testbed.built, port, float(random.uniform(*LOSSES)))
        names, answer_s = _count(testbed, paths, folder)
        heal(testbed.built, port)
    truth = Truth(cause=LOSSY_LINK, places=((testbed.fabric.link_label(port),),))
    return Result(trial=trial, truth=truth, names=names, answer_s=answer_s)


def _clean(testbed: Testbed, trial: Trial, folder: Path) -> Result:
    """Train, then send, with nothing planted."""
    slow, slow_s = _train(testbed, folder)
    with _sending(testbed) as paths:
        lossy, lossy_s = _count(testbed, paths, folder)
    return Result(trial=trial, truth=None, names=(*slow, *lossy), answer_s=slow_s + lossy_s)


def _train(testbed: Testbed, folder: Path) -> tuple[tuple[Name, ...], float]:
    """Return what `train stragglers` names after a training, and after how long."""
    recipe, run = folder / "recipe.yaml", folder / "run"
    recipe.write_text(RECIPE.format(dp=len(testbed.hosts) // 2))
    train_on(testbed, load_recipe(recipe), recipe, {}, spans=spans_beside(run))
    began_s = time.perf_counter()
    names = stragglers_of(run, folder / "stragglers")
    return names, time.perf_counter() - began_s


@contextmanager
def _sending(testbed: Testbed) -> Iterator[dict[Flow, tuple[int, ...]]]:
    """Let each host send to some others; gives the ports that each connection's data crosses."""
    num_hosts = len(testbed.hosts)
    wanted = [
        Stream(source_nic=nic, destination_nic=(nic + distance) % num_hosts)
        for distance in DISTANCES
        for nic in range(num_hosts)
    ]
    with streams(testbed.built, wanted):
        while len(flows := _flows(testbed)) < len(wanted):
            time.sleep(POLL_S)
        yield kernel_paths(testbed.built, flows)


def _flows(testbed: Testbed) -> list[Flow]:
    """Return the flows that have sent data."""
    return [flow for flow, sent in read_connections(testbed.built).items() if sent.num_packets]


def _count(testbed: Testbed, paths: Mapping[Flow, tuple[int, ...]], folder: Path) -> tuple[tuple[Name, ...], float]:
    """Return what `rdma gray-loss` names in what connections send for a time, and after how long."""
    before = read_connections(testbed.built)
    time.sleep(LOOK_S)
    after = read_connections(testbed.built)
    counts = folder / "counts.csv"
    with counts.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("flow", "links", "sent", "received"))
        for number, (flow, path) in enumerate(paths.items()):
            sent = after[flow].num_packets - before[flow].num_packets
            lost = after[flow].num_lost - before[flow].num_lost
            writer.writerow((number, ";".join(map(testbed.fabric.link_label, path)), sent, sent - max(lost, 0)))
    began_s = time.perf_counter()
    names = lossy_links_of(counts, folder / "gray-loss")
    return names, time.perf_counter() - began_s
