"""The NICs of a page: rates, congestion, flaps as bands, phases against the link, alerts."""

from pathlib import Path

import numpy as np
import pytest

from fabrictune.foundation.records import Columns, RunRecord
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.rdma_bench.monitor.monitoring import Monitor
from fabrictune.rdma_bench.monitor.record import make_monitor_record
from fabrictune.rdma_bench.monitor.sources import NicSources
from fabrictune.reports.nics import nics_section
from fabrictune.reports.page import build_page, open_runs


@pytest.fixture
def record(tmp_path: Path) -> RunRecord:
    """Return what a monitor sees of a link of 100 Mbps that sends in bursts, is marked, and goes down once."""
    files = {
        "net/eth0/statistics/tx_bytes": "0",
        "net/eth0/carrier_down_count": "0",
        "net/eth0/speed": "100",
        "infiniband/mlx5_0/ports/1/hw_counters/np_ecn_marked_roce_packets": "0",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    monitor = Monitor(sources=NicSources(root=tmp_path), interval_s=0.002)
    for number in range(1, 4):
        (tmp_path / "net/eth0/statistics/tx_bytes").write_text(f"{10_000_000 * number}")
        (tmp_path / "net/eth0/carrier_down_count").write_text(f"{number // 2}")
        (tmp_path / "infiniband/mlx5_0/ports/1/hw_counters/np_ecn_marked_roce_packets").write_text(f"{7 * number}")
        monitor.run(0.01)
    return make_monitor_record(monitor, started=0.0)


def test_a_monitors_record_has_its_phases_and_alerts(record: RunRecord) -> None:
    """Three times ten megabytes: more than the link carries, so that each is busy."""
    phases, alerts = record.tables["nic_phases"], record.tables["nic_alerts"]
    assert set(phases["device"]) == {"eth0"}
    assert sum(phases["num_bytes"]) == 30_000_000
    assert "counters.link-downs" in set(alerts["rule"])
    devices = {device: row for row, device in enumerate(record.tables["nic_devices"]["device"])}
    assert record.tables["nic_devices"]["link_downs"][devices["eth0"]] == 1
    assert record.tables["nic_devices"]["ecn_marked"][devices["mlx5_0/1"]] == 21


def test_its_page_draws_the_nics_and_leaves_no_table_over(record: RunRecord) -> None:
    page = build_page([record], title="a monitor")
    assert 'id="nics"' in page
    assert "eth0 by the second" in page
    assert "transfer phases against their link" in page
    assert "link downs" in page.lower()
    assert "Other tables" not in page


def test_a_flap_is_a_band_over_its_second() -> None:
    """A link that went down in the third of five seconds, beside bytes that stop."""
    seconds: Columns = to_columns(
        "nic_seconds",
        [
            {
                "time_s": float(second),
                "device": "eth0",
                "counter": name,
                "class": kind,
                "mean_rate": rate,
                "peak_rate": rate,
            }
            for second in range(1, 6)
            for name, kind, rate in (
                ("tx_bytes", "bytes sent", 0.0 if second == 3 else 1e6),
                ("carrier_down_count", "link downs", float(second == 3)),
            )
        ],
    )
    record = RunRecord(kind="rdma monitor", run={}, tables={"nic_seconds": seconds})
    section = nics_section(open_runs([record], (), ()))
    assert section is not None
    (figure,) = section.blocks
    assert str(figure.drawing).count(">link down<") == 1  # type: ignore[union-attr]
    assert "Shaded: 1 flap." in figure.caption


def test_transfers_of_a_job_are_set_against_its_nic() -> None:
    rates = {
        "axis": np.array(["dp"], object),
        "operation": np.array(["all-gather"], object),
        "num_bytes": np.array([1_000_000]),
        "num_requests": np.array([12]),
        "time_ns": np.array([40_000]),
        "rate_bps": np.array([200e9]),
        "share_fraction": np.array([0.5]),
    }
    record = RunRecord(kind="train stragglers", run={}, tables={"transfer_rates": rates})
    section = nics_section(open_runs([record], (), ()))
    assert section is not None
    assert [cell.text for cell in section.blocks[0].rows[0]][-1] == "50 %"  # type: ignore[union-attr]
