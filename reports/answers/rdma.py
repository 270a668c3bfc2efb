"""Answers about RDMA devices: what they carry, whether a flap is survived, and where packets are lost."""

from collections.abc import Iterable

import numpy as np

from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import format_bytes, format_fraction, format_rate
from fabrictune.foundation.wording import some
from fabrictune.reports.answers.answer import Answer, nanoseconds
from fabrictune.reports.blocks import plural
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

TRANSFERS = select("rdma_transfers", "sender", "receiver", "size_bytes", "bandwidth_bps", "median_ns")
PERFTEST = select("perftest", "test", "device", "size_bytes", "bandwidth_bps", "median_ns")
TIMERS = select("timers", "profile", "timeout", "retries", "gives_up_ns", "flap_ns", "stall_ns", "simulated_stall_ns")
TRIALS = select("trials", "timeout", "retries", "status", "after_ns", "model_ns")
FLAPS = select("flaps", "down_ns", "stall_ns")
LOSSY = select("lossy_links", "links", "loss_fraction", "error_fraction")
COUNTERS = select("nic_counters", "device", "counter", "class", "rise")
DEVICES = select("nic_devices", "device", "sent_bytes", "received_bytes", "peak_fraction", "link_downs")
ALERTS = select("nic_alerts", "rule", "entity")
NINETY_FIVE = 1.96  # standard errors, half of a 95 % interval


def transfers_answer(run: Run) -> Answer | None:
    """Return the fastest and the slowest case."""
    cases = run.rows(TRANSFERS)
    if cases is None:
        return None
    is_rate = bool((cases["bandwidth_bps"] > 0).any())
    figures = cases["bandwidth_bps"] if is_rate else -cases["median_ns"].astype(float)
    worst, best = int(np.argmin(figures)), int(np.argmax(figures))
    slowest = f"Slowest of {plural(len(figures), 'case')}: {_case(cases, worst, is_rate=is_rate)}"
    return Answer(sentence=f"{slowest}; fastest: {_case(cases, best, is_rate=is_rate)}.")


def perftest_answer(run: Run) -> Answer | None:
    """Return the highest bandwidth, else the lowest latency."""
    rows = run.rows(PERFTEST)
    if rows is None:
        return None
    best = int(np.argmax(rows["bandwidth_bps"]))
    if rows["bandwidth_bps"][best] > 0:
        return Answer(
            sentence=f"Highest bandwidth: {_program(rows, best)}, {format_rate(rows['bandwidth_bps'][best])}."
        )
    timed = np.flatnonzero(rows["median_ns"] > 0)
    if not len(timed):
        return Answer(sentence=f"{plural(len(rows['test']), 'row')} without a bandwidth or a median latency.")
    best = int(timed[np.argmin(rows["median_ns"][timed])])
    return Answer(sentence=f"Lowest median latency: {_program(rows, best)}, {nanoseconds(rows['median_ns'][best])}.")


def timers_answer(run: Run) -> Answer | None:
    """Return which settings of timers survive the flap."""
    timers = run.rows(TIMERS)
    if timers is None:
        return None
    survives = timers["stall_ns"] >= 0
    flap = f"A flap of {nanoseconds(float(timers['flap_ns'][0]))}"
    alive, dead = np.flatnonzero(survives), np.flatnonzero(~survives)
    sentences = []
    if len(alive):
        best = int(alive[np.argmin(timers["stall_ns"][alive])])
        sentences.append(
            f"{flap} is survived by {len(alive)} of {plural(len(survives), 'setting')}, with the shortest stall, "
            f"{nanoseconds(float(timers['stall_ns'][best]))}, by {_setting(timers, best)}."
        )
    else:
        sentences.append(f"{flap} is survived by none of {plural(len(survives), 'setting')}.")
    if len(dead):
        last = max(float(timers["gives_up_ns"][row]) for row in dead.tolist())
        names = some(_setting(timers, row) for row in dead.tolist())
        sentences.append(f"Queue pairs fail, after {nanoseconds(max(last, 0))} at the latest: {names}.")
    return Answer(sentence=" ".join(sentences))


def trials_answer(run: Run) -> Answer | None:
    """Return how far trials are from the model of the timers."""
    trials = run.rows(TRIALS)
    if trials is None:
        return None
    is_compared = (trials["model_ns"] > 0) & (trials["after_ns"] >= 0)
    num_failed = int((trials["status"] > 0).sum())
    sentence = f"{plural(len(trials['status']), 'cut')}: queue pairs failed in {num_failed:,}."
    if is_compared.any():
        ratio = trials["after_ns"][is_compared] / trials["model_ns"][is_compared]
        sentence += f" Measured times are {ratio.min():.2f} to {ratio.max():.2f} times those of the timer profile."
    return Answer(sentence=sentence)


def flaps_answer(run: Run) -> Answer | None:
    """Return how long the job stalled."""
    flaps = run.rows(FLAPS)
    if flaps is None:
        return None
    worst = int(np.argmax(flaps["stall_ns"]))
    down, stall = (nanoseconds(int(flaps[name][worst])) for name in ("down_ns", "stall_ns"))
    return Answer(
        sentence=f"Of {plural(len(flaps['down_ns']), 'flap')} the worst, {down} long, stalled the job for {stall}."
    )


def loss_answer(run: Run) -> Answer | None:
    """Return the links that lose packets, the worst first."""
    links = run.table(LOSSY)
    if links is None:
        return None
    if not len(links["links"]):
        return Answer(sentence="No link was found that loses packets.")
    order = np.argsort(-links["loss_fraction"], kind="stable").tolist()
    loss, error = (float(links[name][order[0]]) for name in ("loss_fraction", "error_fraction"))
    half = format_fraction(NINETY_FIVE * error)
    return Answer(
        sentence=f"{plural(len(order), 'link')} lose{'s' if len(order) == 1 else ''} packets; the worst, "
        f"{links['links'][order[0]]}, loses {format_fraction(loss)} (95 % interval ± {half})."
    )


def counters_answer(run: Run) -> Answer | None:
    """Return which classes of counters rose."""
    counters = run.rows(COUNTERS)
    if counters is None:
        return None
    rose = np.flatnonzero(counters["rise"] > 0)
    classes = _by_count(counters["class"][rose].tolist())
    what = f": {some(classes)}" if classes else ""
    return Answer(sentence=f"{len(rose):,} of {plural(len(counters['rise']), 'counter')} rose{what}.")


def monitor_answer(run: Run) -> Answer | None:
    """Return the busiest NIC, link downs and alerts."""
    devices, alerts = run.rows(DEVICES), run.rows(ALERTS)
    if devices is None:
        return None
    carried = devices["sent_bytes"] + devices["received_bytes"]
    busiest = int(np.argmax(carried))
    peak, downs = float(devices["peak_fraction"][busiest]), int(devices["link_downs"].sum())
    share = f", at most {format_fraction(peak)} of its link" if peak >= 0 else ""
    count = 0 if alerts is None else len(alerts["rule"])
    named = f" ({some(_by_count(alerts['rule'].tolist()))})" if alerts is not None else ""
    return Answer(
        sentence=f"Busiest NIC: {devices['device'][busiest]}, {format_bytes(int(carried[busiest]))}{share}. "
        f"{plural(count, 'alert')}{named}, {plural(downs, 'link down')}."
    )


def _case(cases: Columns, row: int, *, is_rate: bool) -> str:
    figure = format_rate(cases["bandwidth_bps"][row]) if is_rate else nanoseconds(cases["median_ns"][row])
    size = format_bytes(int(cases["size_bytes"][row]))
    return f"{cases['sender'][row]} to {cases['receiver'][row]}, {size}: {figure}"


def _program(rows: Columns, row: int) -> str:
    return f"{rows['test'][row]} on {rows['device'][row]} with {format_bytes(int(rows['size_bytes'][row]))}"


def _setting(timers: Columns, row: int) -> str:
    return f"{timers['profile'][row]} timeout {timers['timeout'][row]}, retries {timers['retries'][row]}"


def _by_count(names: Iterable[str]) -> list[str]:
    """Return "name 3" for each name, the most frequent first."""
    every = list(names)
    return [f"{name} {every.count(name):,}" for name in sorted(set(every), key=lambda name: (-every.count(name), name))]
