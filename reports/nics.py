"""NICs that were monitored: what they carried by the second and by the sample, congestion, flaps, phases, alerts."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import PS_PER_S, format_bytes, format_rate
from fabrictune.reports.blocks import (
    Block,
    Cell,
    Section,
    Table,
    duration,
    left_out,
    missing,
    number,
    percent,
    words,
)
from fabrictune.reports.nic_charts import CARRIED, by_sample, by_second
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

MAX_DEVICES, MAX_ROWS = 8, 64
DEVICES = select(
    *("nic_devices", "device", "rate_bps", "sent_bytes", "received_bytes", "peak_fraction", "ecn_marked", "cnps"),
    *("pauses", "out_of_sequence", "link_downs"),
)
SECONDS = select("nic_seconds", "time_s", "device", "counter", "class", "mean_rate", "peak_rate")
SAMPLES = select("nic_samples", "time_s", "device", "counter", "class", "rate")
PHASES = select(
    *("nic_phases", "device", "direction", "begin_s", "duration_s", "num_bytes", "rate_bps", "share_fraction"),
    *("ecn_marked", "cnps", "pauses", "out_of_sequence"),
)
ALERTS = select("nic_alerts", "time_s", "rule", "entity", "actual")
RATES = select(
    "transfer_rates", "axis", "operation", "num_bytes", "num_requests", "time_ns", "rate_bps", "share_fraction"
)
COUNTS = ("ecn_marked", "cnps", "pauses", "out_of_sequence")
COUNT_NAMES = ("ECN marks", "CNPs", "Pauses", "Out of sequence")


def nics_section(runs: Sequence[Run]) -> Section | None:
    """Return figures and tables of each run's NICs, and its transfers against what a NIC carries, or None."""
    blocks: list[Block] = []
    for run in runs:
        blocks += _monitored(run)
        if (rates := run.rows(RATES)) is not None:
            blocks.append(_transfers(run.label, rates))
    if not blocks:
        return None
    lead = "A phase far below its link's rate waits for something: look for marks, pauses or a flap beside it."
    return Section(anchor="nics", title="NICs", lead=lead, blocks=tuple(blocks))


def _monitored(run: Run) -> Iterator[Block]:
    devices = run.rows(DEVICES)
    limits = {} if devices is None else dict(zip(devices["device"].tolist(), devices["rate_bps"].tolist(), strict=True))
    seconds, samples, phases = run.rows(SECONDS), run.rows(SAMPLES), run.rows(PHASES)
    if devices is not None:
        yield _devices(run.label, devices)
    names = _most_carried(seconds)
    for device in names[:MAX_DEVICES]:
        limit_bps = float(limits.get(device, -1))
        if seconds is not None:
            yield by_second(run.label, device, seconds, limit_bps)
        if samples is not None and (samples["device"] == device).any():
            yield by_sample(run.label, device, samples, phases, limit_bps)
    if phases is not None:
        yield _phases(run.label, phases)
    if (alerts := run.rows(ALERTS)) is not None:
        yield _alerts(run.label, alerts)


def _most_carried(seconds: Columns | None) -> list[str]:
    """Return the devices, those that carried most first."""
    if seconds is None:
        return []
    is_carried = np.isin(seconds["class"].astype(str), CARRIED)
    total = dict.fromkeys(seconds["device"].tolist(), 0.0)
    for device, rate in zip(seconds["device"][is_carried].tolist(), seconds["mean_rate"][is_carried], strict=True):
        total[device] += float(rate)
    return sorted(total, key=lambda device: -total[device])


def _devices(label: str, devices: Columns) -> Table:
    rows = tuple(
        (
            words(str(devices["device"][row])),
            _known(float(devices["rate_bps"][row]), format_rate),
            *(
                number(devices[name][row], format_bytes(int(devices[name][row])))
                for name in ("sent_bytes", "received_bytes")
            ),
            _known(float(devices["peak_fraction"][row]), percent),
            *_counts(devices, row, (*COUNTS, "link_downs")),
        )
        for row in range(min(MAX_ROWS, len(devices["device"])))
    )
    return Table(
        caption=f"{label}: NICs since the start",
        headings=("Device", "Link", "Sent", "Received", "Highest share of the link", *COUNT_NAMES, "Link downs"),
        rows=rows,
        left_out=left_out(len(rows), len(devices["device"]), "device", "nic_devices"),
    )


def _phases(label: str, phases: Columns) -> Table:
    """Return the phases, those of the lowest share of their link first."""
    order = np.argsort(phases["share_fraction"], kind="stable")[:MAX_ROWS].tolist()
    return Table(
        caption=f"{label}: transfer phases against their link's rate, the lowest share first",
        headings=("Device", "Direction", "From", "For", "Bytes", "Rate", "Share of the link", *COUNT_NAMES),
        rows=tuple(
            (
                words(str(phases["device"][row])),
                words(str(phases["direction"][row])),
                number(phases["begin_s"][row], _time(float(phases["begin_s"][row]))),
                number(phases["duration_s"][row], _time(float(phases["duration_s"][row]))),
                number(phases["num_bytes"][row], format_bytes(int(phases["num_bytes"][row]))),
                number(phases["rate_bps"][row], format_rate(float(phases["rate_bps"][row]))),
                number(phases["share_fraction"][row], percent(float(phases["share_fraction"][row]))),
                *_counts(phases, row, COUNTS),
            )
            for row in order
        ),
        left_out=left_out(len(order), len(phases["device"]), "phase", "nic_phases"),
    )


def _alerts(label: str, alerts: Columns) -> Table:
    count = len(alerts["rule"])
    return Table(
        caption=f"{label}: alerts, each with its time",
        headings=("After", "Device", "What was found", "Rule"),
        rows=tuple(
            (
                number(alerts["time_s"][row], _time(float(alerts["time_s"][row]))),
                *(words(str(alerts[name][row])) for name in ("entity", "actual", "rule")),
            )
            for row in range(min(MAX_ROWS, count))
        ),
        left_out=left_out(min(MAX_ROWS, count), count, "alert", "nic_alerts"),
    )


def _transfers(label: str, rates: Columns) -> Table:
    count = len(rates["axis"])
    return Table(
        caption=f"{label}: a job's transfers between hosts against what a NIC carries, medians",
        headings=("Axis", "Operation", "Size", "Requests", "Time", "Bus bandwidth", "Share of the NIC"),
        rows=tuple(
            (
                words(str(rates["axis"][row])),
                words(str(rates["operation"][row])),
                number(rates["num_bytes"][row], format_bytes(int(rates["num_bytes"][row]))),
                number(rates["num_requests"][row], f"{rates['num_requests'][row]:,}"),
                number(rates["time_ns"][row], _time(float(rates["time_ns"][row]) / 1e9)),
                number(rates["rate_bps"][row], format_rate(float(rates["rate_bps"][row]))),
                _known(float(rates["share_fraction"][row]), percent),
            )
            for row in range(min(MAX_ROWS, count))
        ),
        left_out=left_out(min(MAX_ROWS, count), count, "sort of request", "transfer_rates"),
    )


def _counts(table: Columns, row: int, names: Iterable[str]) -> Iterator[Cell]:
    for name in names:
        value = int(table[name][row])
        yield number(value, f"{value:,}", tone="bad" if value and name in ("out_of_sequence", "link_downs") else "")


def _known(value: float, show: Callable[[float], str]) -> Cell:
    return missing() if value < 0 else number(value, show(value))


def _time(seconds: float) -> str:
    return duration(round(seconds * PS_PER_S))
