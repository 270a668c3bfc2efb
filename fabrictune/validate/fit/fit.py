"""Fit of a hardware profile to files of measurements: read, modelled, calibrated, judged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fabrictune.foundation.units import BITS_PER_BYTE, NS_PER_S, NS_PER_US
from fabrictune.hardware.profile import HardwareProfile
from fabrictune.rdma_bench.counters.differences import Comparison, compare_snapshots
from fabrictune.rdma_bench.counters.snapshots import read_snapshot
from fabrictune.validate.fit.calibration import Calibration, Known, Modelled, calibrate, model_series
from fabrictune.validate.fit.congestion import NOT_DETERMINED, CounterRate, Loss, counter_rates, fit_losses
from fabrictune.validate.fit.fitted_profile import (
    MOST_OF_NIC,
    FittedValue,
    base_values,
    fitted_values,
    refuse_beyond_nic,
)
from fabrictune.validate.fit.series import Series, make_series
from fabrictune.validate.fit.sources import FitHints, MeasuredFile, read_times
from fabrictune.validate.fit.terms import AlgorithmName, is_between_hosts, message_series, nccl_terms, terms_of
from fabrictune.validate.fit.verdicts import Judged, judge

Algorithm = Literal["auto", "ring", "hierarchical"]
ONE_COUNT = "loss by number of hosts: one number of hosts does not determine it; add runs on twice and four times it"


@dataclass(frozen=True, kw_only=True)
class Fit:
    """What measurements say of a profile."""

    base: HardwareProfile
    files: tuple[MeasuredFile, ...]
    algorithm: AlgorithmName
    calibration: Calibration
    judged: tuple[Judged, ...]
    values: tuple[FittedValue, ...]  # that a profile gets
    losses: tuple[Loss, ...]
    counters: tuple[CounterRate, ...]
    notes: tuple[str, ...]  # what was left out, and what is assumed


def fit_files(
    paths: Sequence[Path],
    base: HardwareProfile,
    *,
    hints: FitHints | None = None,
    algorithm: Algorithm = "auto",
    counters: tuple[Path, Path] | None = None,
) -> Fit:
    """Return the fit; raises InputError for files that say too little, contradict each other, or measure nothing."""
    files = tuple(read_times(path, hints or FitHints()) for path in paths)
    comparison = compare_snapshots(read_snapshot(counters[0]), read_snapshot(counters[1])) if counters else None
    series = make_series(time for file in files for time in file.times)
    known = base_values(base)
    chosen, calibration = _calibrated(series, base, known, algorithm)
    judged = tuple(judge(calibration))
    for estimate in calibration.estimates:
        if estimate.name.endswith(".rate") and not estimate.is_held:
            refuse_beyond_nic(base, estimate.value, ", ".join(map(str, paths)))
    losses = tuple(fit_losses(calibration.modelled, known))
    return Fit(
        base=base,
        files=files,
        algorithm=chosen,
        calibration=calibration,
        judged=judged,
        values=tuple(fitted_values(base, judged, _files_of(calibration, files), spread=calibration.spread)),
        losses=losses,
        counters=tuple(counter_rates(comparison)) if comparison else (),
        notes=tuple(_notes(files, calibration, chosen, losses, comparison)),
    )


def model_all(
    series: Sequence[Series], algorithm: AlgorithmName, profile: HardwareProfile | None = None
) -> list[Modelled]:
    """Return every series with the terms of its times; with a profile, those between hosts by NCCL's own model."""
    keys = [one.key for one in series]
    has_collectives, message = any(map(is_between_hosts, keys)), message_series(keys)
    modelled = []
    for one in series:
        terms = terms_of(one.key, algorithm, is_beside_collectives=has_collectives, has_message=one.key == message)
        if profile is not None:
            terms = nccl_terms(one.key, terms, one.size_bytes[0], profile)
        modelled.append(model_series(one, terms))
    return modelled


def _calibrated(
    series: Sequence[Series], base: HardwareProfile, known: Mapping[str, Known], algorithm: Algorithm
) -> tuple[AlgorithmName, Calibration]:
    """Return the algorithm and its calibration: of `auto` a ring, unless it needs more than the NIC's rate."""
    if algorithm != "auto":
        return algorithm, calibrate(model_all(series, algorithm, base), known)
    ring = calibrate(model_all(series, "ring", base), known)
    rate = next((one for one in ring.estimates if one.name == "network.rate"), None)
    has_local = any(is_between_hosts(one.key) and one.key.num_ranks > one.key.num_hosts for one in series)
    if rate is None or not has_local:
        return "ring", ring
    if BITS_PER_BYTE * NS_PER_S / rate.value <= MOST_OF_NIC * base.network.nic_rate_bps:
        return "ring", ring
    return "hierarchical", calibrate(model_all(series, "hierarchical", base), known)


def _files_of(calibration: Calibration, files: Sequence[MeasuredFile]) -> dict[str, list[MeasuredFile]]:
    """Return the files in whose times each parameter stands."""
    by_path = {file.path: file for file in files}
    found: dict[str, list[MeasuredFile]] = {}
    for one in calibration.modelled:
        for name in (*one.terms.latency, *one.terms.bytes):
            of_name = found.setdefault(name, [])
            of_name += [by_path[path] for path in one.series.sources if by_path[path] not in of_name]
    return found


def _notes(
    files: Sequence[MeasuredFile],
    calibration: Calibration,
    algorithm: AlgorithmName,
    losses: Sequence[Loss],
    comparison: Comparison | None,
) -> list[str]:
    notes = [note for file in files for note in file.notes]
    keys = [one.series.key for one in calibration.modelled]
    between = [key for key in keys if is_between_hosts(key)]
    if any(key.num_ranks > key.num_hosts and not key.is_local for key in between):
        why = "" if algorithm == "ring" else ", since a ring would need more than the NIC's rate"
        notes.append(f"assumed: collectives between hosts are {_ARTICLE[algorithm]}{why}; --algorithm says otherwise")
    for one in calibration.modelled:
        if one.terms.constant_ns:
            steps, constant_us = one.terms.latency["network.latency"], one.terms.constant_ns / NS_PER_US
            took = (
                f"{one.terms.origin}, {steps:.3g} steps over the network beside {constant_us:.3g} us of its constants"
            )
            notes.append(f"assumed: the smallest size of {one.series.key.label} took {took}, by NCCL's model")
    if any(key.is_local for key in between):
        notes.append("assumed: gloo's ranks talk by sockets, so that its steps are the network's; rings")
    if between and not any(loss.of == "hosts" for loss in losses):
        notes.append(ONE_COUNT)
    if between or comparison:
        notes.append(NOT_DETERMINED)
    if comparison:
        notes += comparison.notes
    return list(dict.fromkeys(notes))


_ARTICLE = {"ring": "rings", "hierarchical": "hierarchical (sums inside hosts first)"}
