"""An OpenMetrics endpoint of a monitor, for Prometheus and what reads its format.

Source: OpenMetrics 1.0 (text format, RFC draft); prometheus.io, "Metric and label naming".
"""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from fabrictune.rdma_bench.monitor.monitoring import Monitor

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def open_metrics(monitor: Monitor) -> str:
    """Return the counters' totals, rates and peaks of the last second, and what sampling costs."""
    sources, cost = monitor.sources.counters, monitor.cost
    labels = [
        f'{{device="{label_value(one.device)}",counter="{label_value(one.name)}",class="{one.meaning.counter_class.value}"}}'
        for one in sources
    ]
    _, mean_SC, peak_SC = monitor.history.seconds.rows(1)
    lines = ["# TYPE fabrictune_nic counter", "# HELP fabrictune_nic Total of a NIC's counter, in its unit."]
    for label, counter, value in zip(labels, sources, monitor.last, strict=True):
        if value >= 0:
            lines.append(f"fabrictune_nic_total{label} {value * counter.meaning.factor}")
    for name, rows, what in (("rate", mean_SC, "Mean"), ("peak", peak_SC, "Peak between two samples,")):
        lines += [
            f"# TYPE fabrictune_nic_{name}_per_second gauge",
            f"# HELP fabrictune_nic_{name}_per_second {what} of the last second.",
        ]
        if len(rows):
            lines += [
                f"fabrictune_nic_{name}_per_second{label} {value}"
                for label, value in zip(labels, rows[-1], strict=True)
            ]
    lines += [
        "# TYPE fabrictune_monitor_samples counter",
        f"fabrictune_monitor_samples_total {cost.num_samples}",
        "# TYPE fabrictune_monitor_missed_samples counter",
        f"fabrictune_monitor_missed_samples_total {cost.num_missed}",
        "# TYPE fabrictune_monitor_processor_ratio gauge",
        f"fabrictune_monitor_processor_ratio {cost.processor_fraction}",
        "# EOF",
    ]
    return "\n".join(lines) + "\n"


@contextmanager
def serving(monitor: Monitor, host: str, port: int) -> Iterator[tuple[str, int]]:
    """Serve `/metrics` in a thread for this block, and give its address; raises OSError."""

    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:  # the library's name
            is_here = self.path.split("?")[0] == "/metrics"
            content = open_metrics(monitor).encode() if is_here else b"see /metrics\n"
            self.send_response(200 if is_here else 404)
            self.send_header("Content-Type", CONTENT_TYPE if is_here else "text/plain")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer((host, port), Handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield str(server.server_address[0]), int(server.server_address[1])
        finally:
            server.shutdown()
            thread.join()


def label_value(text: str) -> str:
    """Return text as it stands between the quotation marks of a label."""
    return text.translate(_ESCAPES)
