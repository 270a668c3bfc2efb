"""Answers about collectives: the bandwidth they reach, what takes their time, and how they start."""

import numpy as np

from fabrictune.foundation.metrics.units import format_metric
from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import format_bytes, format_duration, format_fraction, format_rate
from fabrictune.reports.answers.answer import Answer, nanoseconds, spread
from fabrictune.reports.blocks import plural
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

MEASUREMENTS = select("measurements", "operation", "size_bytes", "num_ranks", "bus_bandwidth_bps", "num_wrong")
MODEL = select("model", "operation", "num_ranks", "size_bytes", "bound_ps", "fair_ps", "engine_ps")
VERDICTS = select("verdicts", "operation", "num_ranks", "size_bytes", "cause", "share_fraction")
FITS = select("fits", "operation", "num_ranks", "busbw_bps", "busbw_low_bps", "busbw_high_bps")
STARTUP = select("startup", "rank", "elapsed_ns")
STORM_GAINS = select("gains", "ranks", "pattern", "requests_times", "wall_ns_times")
STORMS = select("storms", "pattern", "ranks", "wall_ns")


def measured_answer(run: Run) -> Answer | None:
    """Return the highest bus bandwidth, and how many results were wrong."""
    measured = run.rows(MEASUREMENTS)
    if measured is None:
        return None
    best = int(np.argmax(measured["bus_bandwidth_bps"]))
    rate, wrong = format_rate(float(measured["bus_bandwidth_bps"][best])), int(measured["num_wrong"].clip(0).sum())
    return Answer(
        sentence=f"Highest bus bandwidth: {rate}, {_collective(measured, best)}. "
        f"{f'{wrong:,} values were wrong.' if wrong else 'No value was found wrong.'}"
    )


def modelled_answer(run: Run) -> Answer | None:
    """Return how long the largest collective takes, by the finest model that the record has."""
    model = run.rows(MODEL)
    if model is None:
        return None
    row = int(np.argmax(model["size_bytes"]))
    bound_ps, fair_ps, engine_ps = (int(model[f"{name}_ps"][row]) for name in ("bound", "fair", "engine"))
    time_ps, by = (engine_ps, "by the packet engine") if engine_ps >= 0 else (fair_ps, "at max-min fair rates")
    bound = f"; no network of such links is faster than {format_duration(bound_ps)}" if bound_ps >= 0 else ""
    return Answer(sentence=f"{_collective(model, row)}: {format_duration(max(time_ps, 0))} {by}{bound}.")


def compared_answer(run: Run) -> Answer | None:
    """Return what takes most of the largest collective's time, else the bandwidth that a fit gives."""
    verdicts, fits = run.rows(VERDICTS), run.rows(FITS)
    if verdicts is not None:
        row = int(np.argmax(verdicts["size_bytes"]))
        share = format_fraction(float(verdicts["share_fraction"][row]))
        return Answer(sentence=f"{_collective(verdicts, row)}: most of the time, {share}, is {verdicts['cause'][row]}.")
    if fits is None:
        return None
    row = int(np.argmax(fits["busbw_bps"]))
    rate = spread((float(fits[f"busbw{end}_bps"][row]) for end in ("", "_low", "_high")), format_rate)
    return Answer(
        sentence=f"For large sizes {fits['operation'][row]} of {plural(int(fits['num_ranks'][row]), 'rank')} reaches a "
        f"bus bandwidth of {rate}, the highest of {plural(len(fits['operation']), 'series')}."
    )


def startup_answer(run: Run) -> Answer | None:
    """Return how long the start-up took."""
    startup = run.rows(STARTUP)
    if startup is None:
        return None
    slowest = int(np.argmax(startup["elapsed_ns"]))
    return Answer(
        sentence=f"All groups of {plural(len(startup['rank']), 'rank')} were made after "
        f"{nanoseconds(int(startup['elapsed_ns'][slowest]))}, on rank {startup['rank'][slowest]} last."
    )


def storm_answer(run: Run) -> Answer | None:
    """Return the start-up pattern that is fastest at the most ranks."""
    storms, gains = run.rows(STORMS), run.rows(STORM_GAINS)
    if storms is None:
        return None
    at_most = np.flatnonzero(storms["ranks"] == storms["ranks"].max())
    best = int(at_most[np.argmin(storms["wall_ns"][at_most])])
    pattern, ranks = str(storms["pattern"][best]), int(storms["ranks"][best])
    sentence = f"Fastest at {ranks:,} ranks: {pattern}, {nanoseconds(int(storms['wall_ns'][best]))}"
    is_own = (gains["pattern"] == pattern) & (gains["ranks"] == ranks) if gains is not None else np.zeros(0, bool)
    if gains is not None and is_own.any():
        wall, requests = (
            format_metric(float(gains[f"{cost}_times"][is_own][0]), "ratio") for cost in ("wall_ns", "requests")
        )
        sentence += f"; pattern legacy takes {wall} times as long, with {requests} times the requests"
    return Answer(sentence=f"{sentence}.")


def _collective(rows: Columns, row: int) -> str:
    name, size = str(rows["operation"][row]), format_bytes(int(rows["size_bytes"][row]))
    return f"{name} of {size} over {plural(int(rows['num_ranks'][row]), 'rank')}"
