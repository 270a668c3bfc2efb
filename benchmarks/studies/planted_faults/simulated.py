"""Trials of simulated jobs: the files that their ranks, hosts and tools would leave, and the command that reads them.

Spans of stragglers, collections of garbage, starved loaders and wrong clocks go to `train stragglers`; what a hang
leaves (dumps, logs, stacks) to `diagnose`; receivers' counts by path to `rdma gray-loss`, long enough for 99 of 100
such losses to show. A clean job is read by all three.
"""

import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from random import Random

import numpy as np

from benchmarks.studies.gray_loss.trials import Bench
from benchmarks.studies.hangs.faults import FAULTS as HANGS
from benchmarks.studies.hangs.trials import LAYOUTS, write_clean, write_hang
from benchmarks.studies.planted_faults.commands import HANG, LOSSY_LINK, hang_of, lossy_links_of, stragglers_of
from benchmarks.studies.planted_faults.trials import CLEAN, Name, Result, Trial, Truth
from benchmarks.studies.planted_stragglers.faults import FAULTS, Planted
from benchmarks.studies.planted_stragglers.files import write_files
from benchmarks.studies.planted_stragglers.jobs import Disturbance, JobSize, simulate
from fabrictune.observability.gray_loss.counts import PathCounts

JOBS = {
    64: JobSize(dp=16, pp=4, num_batches=6, num_steps=10),
    256: JobSize(dp=64, pp=4, num_batches=4, num_steps=8),
    1024: JobSize(dp=256, pp=4, num_batches=4, num_steps=8),
}
LOSSES = (0.005, 0.02)
FEWEST_LOSSES = 0.005  # for which a clean fabric's packets are counted
FABRIC_SEED = 0


def try_simulated(trial: Trial, seed: int, folder: Path) -> Result:
    """Return the result of a trial; its files are left in the folder."""
    place, entropy = folder / "files", trial.seed(seed)
    if trial.kind == CLEAN:
        return _try_clean(trial, entropy, folder)
    truth: Truth
    read: Callable[[Path, Path], tuple[Name, ...]]
    if trial.kind == HANG:
        truth, read = _plant_hang(trial, entropy, place), hang_of
    elif trial.kind == LOSSY_LINK:
        place = folder / "counts.csv"
        truth, read = _plant_lossy_link(trial, entropy, place), lossy_links_of
    else:
        truth, read = _plant_straggler(trial, entropy, place), stragglers_of
    began_s = time.perf_counter()
    names = read(place, folder / "record")
    return Result(trial=trial, truth=truth, names=names, answer_s=time.perf_counter() - began_s)


def _try_clean(trial: Trial, entropy: list[int], folder: Path) -> Result:
    size = JOBS[trial.size]
    write_files(simulate(size, Disturbance.none(size), _number(entropy)), folder / "spans")
    (folder / "evidence").mkdir()
    write_clean(_number(entropy), trial.size, folder / "evidence")
    bench = _bench(trial.size)
    packets = bench.packets(FEWEST_LOSSES)
    _, counts = bench.spray(FEWEST_LOSSES, _number(entropy), packets=packets, is_clean=True)
    _write_counts(counts, folder / "counts.csv")
    began_s = time.perf_counter()
    names = (
        *stragglers_of(folder / "spans", folder / "record"),
        *hang_of(folder / "evidence", folder / "record"),
        *lossy_links_of(folder / "counts.csv", folder / "record"),
    )
    return Result(trial=trial, truth=None, names=names, answer_s=time.perf_counter() - began_s)


def _plant_straggler(trial: Trial, entropy: list[int], place: Path) -> Truth:
    size = JOBS[trial.size]
    planted = FAULTS[trial.kind](size, np.random.default_rng(entropy))
    write_files(simulate(size, planted.disturbance, _number(entropy)), place)
    return Truth(cause=planted.cause, places=_places(planted, size))


def _places(planted: Planted, size: JobSize) -> tuple[tuple[str, ...], ...]:
    """Return the ranks that are right: of collections the job, or the rank that has most of the time that they take."""
    if planted.rank is not None:
        return ((str(planted.rank),),)
    taken_DP = planted.disturbance.collection_SDP[1:].sum(axis=0)
    replica, stage = divmod(int(taken_DP.argmax()), size.pp)
    has_most = taken_DP.max() > taken_DP.sum() / 2
    return ((), *([(str(stage * size.dp + replica),)] if has_most else []))


def _plant_hang(trial: Trial, entropy: list[int], place: Path) -> Truth:
    """Plant a hang of each fault in turn, at an axis that the layout has."""
    place.mkdir()
    random, layout = Random(str(entropy)), LAYOUTS[trial.size]
    fault = HANGS[trial.number % len(HANGS)]
    axes = [axis for axis in ("tp", "dp", "ep", *_messages(fault)) if getattr(layout, axis) > 1]
    axis = random.choice(axes)
    planted, _ = write_hang(_number(entropy), trial.size, place, fault=fault, axis=axis)
    return Truth(cause=HANG, places=(tuple(map(str, planted.ranks)),))


def _messages(fault: str) -> tuple[str, ...]:
    """Return the axis of messages, for a fault that can be one of a message."""
    return () if fault in ("mismatch", "cut link") else ("pp",)


def _plant_lossy_link(trial: Trial, entropy: list[int], place: Path) -> Truth:
    bench, random = _bench(trial.size), np.random.default_rng(entropy)
    loss = float(random.uniform(*LOSSES))
    link, counts = bench.spray(loss, _number(entropy), packets=bench.packets(loss))
    _write_counts(counts, place)
    return Truth(cause=LOSSY_LINK, places=((link,),))


@lru_cache(maxsize=3)
def _bench(num_hosts: int) -> Bench:
    return Bench(num_hosts, FABRIC_SEED)


def _write_counts(counts: PathCounts, path: Path) -> None:
    """Write the counts as a collector of receivers' counters does."""
    links: list[list[str]] = [[] for _ in counts.flow_P]
    for row, link in zip(counts.path_E.tolist(), counts.link_E.tolist(), strict=True):
        links[row].append(counts.link_L[link])
    rows = zip(counts.flow_P.tolist(), links, counts.received_P.tolist(), counts.share_P.tolist(), strict=True)
    with path.open("w") as file:
        file.write("flow,links,received,share\n")
        file.writelines(f"{flow},{';'.join(own)},{received},{share}\n" for flow, own, received, share in rows)


def _number(entropy: list[int]) -> int:
    """Return one number that stands for all."""
    return int(np.random.SeedSequence(entropy).generate_state(1)[0])
