"""A Grafana dashboard of NICs' counters: of what `rdma monitor` serves, and of what `fleet counters snap` prints.

A panel a group of classes, a line a counter: a NIC may count one thing under several names, so nothing is summed.

Source: Grafana, "JSON model" of dashboards (schema version 39); Prometheus, "Querying basics".
"""

from collections.abc import Iterator, Sequence
from typing import Any

from fabrictune.fleet.counters.open_metrics import family_name
from fabrictune.rdma_bench.counters.catalog import CounterClass

TITLE, UID, SCHEMA_VERSION = "NICs by fabrictune", "fabrictune-nics", 39
WIDTH, HEIGHT = 12, 8  # of a panel, in Grafana's grid of 24 columns
WINDOW = "$__rate_interval"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
PANELS: tuple[tuple[str, str, tuple[CounterClass, ...]], ...] = (
    ("Traffic", "Bps", (CounterClass.BYTES_SENT, CounterClass.BYTES_RECEIVED)),
    (
        "Packets",
        "pps",
        (CounterClass.PACKETS_SENT, CounterClass.PACKETS_RECEIVED, CounterClass.REQUESTS),
    ),
    (
        "Congestion: ECN and CNPs",
        "cps",
        (CounterClass.ECN_MARKED, CounterClass.CNP_SENT, CounterClass.CNP_HANDLED, CounterClass.CNP_IGNORED),
    ),
    ("Pauses", "cps", (CounterClass.PAUSE_RECEIVED, CounterClass.PAUSE_SENT, CounterClass.PAUSE_STORM)),
    ("Time paused, by second", "s", (CounterClass.TIME_PAUSED, CounterClass.TIME_PAUSING)),
    (
        "Losses and retransmissions",
        "cps",
        (
            CounterClass.SEQUENCE_ERROR,
            CounterClass.TIMEOUT_RETRANSMISSION,
            CounterClass.ADAPTIVE_RETRANSMISSION,
            CounterClass.SLOW_RESTART,
            CounterClass.DUPLICATE,
            CounterClass.DISCARD,
        ),
    ),
    (
        "Receivers",
        "cps",
        (CounterClass.RECEIVER_NOT_READY, CounterClass.OUT_OF_BUFFER, CounterClass.PCI_STALL, CounterClass.WAIT),
    ),
    (
        "Failures of queue pairs",
        "cps",
        (CounterClass.RETRY_EXCEEDED, CounterClass.COMPLETION_ERROR, CounterClass.FLUSH),
    ),
    ("Links", "cps", (CounterClass.LINK_DOWN, CounterClass.PHYSICAL_ERROR, CounterClass.CORRECTED)),
)


def dashboard() -> dict[str, Any]:
    """Return the dashboard's JSON model; Grafana asks for the Prometheus data source when it is imported."""
    return {
        "title": TITLE,
        "uid": UID,
        "schemaVersion": SCHEMA_VERSION,
        "tags": ["fabrictune", "rdma"],
        "time": {"from": "now-1h", "to": "now"},
        "refresh": "10s",
        "editable": True,
        "templating": {"list": [_source(), *map(_variable, ("node", "device"))]},
        "panels": list(_panels()),
    }


def _panels() -> Iterator[dict[str, Any]]:
    number, top = 0, 0
    for heading, targets_of in (
        ("A host at a second: rdma monitor", _monitored),
        ("All hosts: fleet counters", _fleet),
    ):
        yield {"type": "row", "id": number, "title": heading, "gridPos": _place(0, top, 2 * WIDTH, 1), "panels": []}
        number, top = number + 1, top + 1
        for place, (title, unit, classes) in enumerate(PANELS):
            column, row = place % 2, place // 2
            yield {
                "type": "timeseries",
                "id": number,
                "title": title,
                "datasource": SOURCE,
                "gridPos": _place(column * WIDTH, top + row * HEIGHT, WIDTH, HEIGHT),
                "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
                "options": {"legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"]}},
                "targets": targets_of(classes),
            }
            number += 1
        top += (len(PANELS) + 1) // 2 * HEIGHT


def _monitored(classes: Sequence[CounterClass]) -> list[dict[str, Any]]:
    """Return the queries of a panel to what a monitor serves: the mean of the last second, and its peak."""
    names = "|".join(one.value for one in classes)
    chosen = f'{{class=~"{names}",device=~"$device"}}'
    return [
        _target("A", f"fabrictune_nic_rate_per_second{chosen}", "{{instance}} {{device}} {{counter}}"),
        _target("B", f"fabrictune_nic_peak_per_second{chosen}", "{{instance}} {{device}} {{counter}}, peak"),
    ]


def _fleet(classes: Sequence[CounterClass]) -> list[dict[str, Any]]:
    """Return the queries of a panel to the text that `fleet counters snap` prints: a family a class."""
    chosen = '{node=~"$node",device=~"$device"}'
    return [
        _target(
            chr(ord("A") + number),
            f"rate({family_name(one)}_total{chosen}[{WINDOW}])",
            "{{node}} {{device}} {{counter}}, rail {{rail}}",
        )
        for number, one in enumerate(classes)
    ]


def _target(name: str, query: str, legend: str) -> dict[str, Any]:
    return {"refId": name, "datasource": SOURCE, "expr": query, "legendFormat": legend}


def _place(x: int, y: int, width: int, height: int) -> dict[str, int]:
    return {"x": x, "y": y, "w": width, "h": height}


def _source() -> dict[str, Any]:
    return {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}


def _variable(label: str) -> dict[str, Any]:
    """Return a choice among the values of a label, all of them at first."""
    return {
        "name": label,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": f'label_values({{__name__=~"fabrictune_nic.*"}}, {label})', "refId": label},
        "includeAll": True,
        "allValue": ".*",
        "multi": True,
        "current": {"text": "All", "value": "$__all"},
        "refresh": 2,
    }
