"""The monitor of a host's NICs: rates, alerts, bounds, and what it serves."""

from pathlib import Path
from urllib.request import urlopen

import numpy as np
import pytest

from fabrictune.foundation.findings import Finding
from fabrictune.rdma_bench.monitor.endpoint import open_metrics, serving
from fabrictune.rdma_bench.monitor.history import History, rates
from fabrictune.rdma_bench.monitor.monitoring import Monitor
from fabrictune.rdma_bench.monitor.record import make_monitor_record
from fabrictune.rdma_bench.monitor.sources import NicSources


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """Return the folder of a host with an interface and an adapter, as its kernel would have them."""
    files = {
        "net/eth0/statistics/rx_bytes": "1000",
        "net/eth0/statistics/rx_dropped": "0",
        "net/eth0/carrier_down_count": "0",
        "net/eth0/mtu": "9000",
        "net/eth0/speed": "400000",
        "net/lo/statistics/rx_bytes": "5",
        "infiniband/mlx5_0/ports/1/counters/port_rcv_data": "100",
        "infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence": "0",
        "infiniband/mlx5_0/ports/1/hw_counters/np_ecn_marked_roce_packets": "0",
        "infiniband/mlx5_0/ports/1/hw_counters/np_cnp_sent": "0",
        "infiniband/mlx5_0/ports/1/rate": "400 Gb/sec (4X NDR)",
        "infiniband/mlx5_0/ports/1/hw_counters/lifespan": "12",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    return tmp_path


def test_counters_of_known_meaning_are_read_and_the_loopback_device_is_not(host: Path) -> None:
    sources = NicSources(root=host)
    assert {(one.device, one.name) for one in sources.counters} == {
        ("eth0", "rx_bytes"),
        ("eth0", "rx_dropped"),
        ("eth0", "carrier_down_count"),
        ("mlx5_0/1", "port_rcv_data"),
        ("mlx5_0/1", "out_of_sequence"),
        ("mlx5_0/1", "np_ecn_marked_roce_packets"),
        ("mlx5_0/1", "np_cnp_sent"),
    }
    assert [one.device for one in NicSources(["eth0"], root=host).counters] == ["eth0"] * 3
    sources.close()


def test_what_rises_is_alerted_once_and_settings_that_change(host: Path) -> None:
    """Packets out of sequence and a link that went down, in two seconds; then another MTU."""
    alerts: list[Finding] = []
    monitor = Monitor(sources=NicSources(root=host), interval_s=0.002, on_alert=alerts.append)
    for value in ("3", "9"):
        (host / "infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence").write_text(value)
        (host / "net/eth0/carrier_down_count").write_text(value)
        monitor.run(0.01)
    (host / "net/eth0/mtu").write_text("1500")
    monitor.run(0.01)
    assert sorted(alert.id for alert in alerts) == [
        "counters.link-downs",
        "counters.sequence-errors",
        "counters.setting-changed",
    ]
    record = make_monitor_record(monitor, started=0.0)
    assert {finding.id for finding in record.findings} == {alert.id for alert in alerts}
    change = next(alert for alert in alerts if alert.id == "counters.setting-changed")
    assert (change.entity, change.actual, change.expected) == ("eth0", "mtu: 1500", "9000, as before")


def test_a_quiet_host_has_no_finding(host: Path) -> None:
    monitor = Monitor(sources=NicSources(root=host), interval_s=0.002)
    monitor.run(0.02)
    record = make_monitor_record(monitor, started=0.0)
    assert record.findings == ()
    assert monitor.cost.num_samples + monitor.cost.num_missed >= 9


def test_rates_and_peaks_are_of_known_steps_in_the_counters_unit() -> None:
    """Words of four bytes: 40 in 2 ms are 80,000 B/s, of which 30 in 1 ms are the peak; a reset is 0."""
    values = np.array([[100, 50], [110, 60], [140, 5]], np.int64)
    mean_C, peak_C = rates([0.0, 0.001, 0.002], values, np.array([4, 1]))
    assert mean_C.tolist() == pytest.approx([80_000.0, 5_000.0])
    assert peak_C.tolist() == pytest.approx([120_000.0, 10_000.0])


def test_a_week_takes_no_more_memory_than_the_first_second() -> None:
    """604,800 seconds go into rings of an hour and of four weeks of minutes; the peak is among 10,080 minutes."""
    history = History(2)
    before = history.num_bytes
    mean_C, peak_C = np.array([1.0, 2.0]), np.array([1.0, 7.0])
    for second in range(7 * 24 * 3600):
        history.add_second(float(second), mean_C, peak_C if second == 600 else mean_C)
    assert history.num_bytes == before < 3e6
    assert len(history.seconds) == 3600
    assert len(history.minutes) == 7 * 24 * 60
    assert history.minutes.rows(10**9)[2][:, 1].max() == 7.0


def test_a_parser_of_openmetrics_reads_what_is_served(host: Path) -> None:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    monitor = Monitor(sources=NicSources(root=host), interval_s=0.002)
    monitor.run(0.005)
    with serving(monitor, "127.0.0.1", 0) as (address, port), urlopen(f"http://{address}:{port}/metrics") as answer:
        text = answer.read().decode()
    families = {family.name: family for family in parser.text_string_to_metric_families(text)}
    totals = {sample.labels["counter"]: sample.value for sample in families["fabrictune_nic"].samples}
    assert totals["rx_bytes"] == 1000
    assert totals["port_rcv_data"] == 400  # in bytes
    assert families["fabrictune_monitor_samples"].samples[0].value == monitor.cost.num_samples


def test_the_endpoint_serves_metrics_that_end_as_the_format_asks(host: Path) -> None:
    text = open_metrics(Monitor(sources=NicSources(root=host), interval_s=0.01))
    assert text.endswith("# EOF\n")
    assert 'fabrictune_nic_total{device="eth0",counter="rx_bytes",class="bytes received"} 1000' in text
