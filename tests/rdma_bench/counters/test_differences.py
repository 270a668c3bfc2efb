"""What rose is told from what wrapped and from what was reset, and is judged by its class."""

from dataclasses import replace
from pathlib import Path

import pytest

from fabrictune.foundation.findings import Severity
from fabrictune.rdma_bench.counters.catalog import meaning_of
from fabrictune.rdma_bench.counters.checks import check_counters
from fabrictune.rdma_bench.counters.differences import Comparison, compare_snapshots
from fabrictune.rdma_bench.counters.snapshots import Counter, Snapshot, read_snapshot

GOLDEN = Path(__file__).parents[2] / "golden" / "counters"


def snapshot(**values: int) -> Snapshot:
    """Return counters of one device."""
    return Snapshot(
        counters={
            ("mlx5_0/1", name): Counter(
                device="mlx5_0/1", name=name, value=value, meaning=meaning_of(name), where=f"x:{row}"
            )
            for row, (name, value) in enumerate(values.items())
        }
    )


@pytest.fixture
def compared() -> Comparison:
    """Return the golden snapshots compared."""
    return compare_snapshots(read_snapshot(GOLDEN / "before.txt"), read_snapshot(GOLDEN / "after.txt"))


def amounts(comparison: Comparison) -> dict[str, int | None]:
    """Return the rise of each counter."""
    return {f"{one.after.device} {one.after.name}": one.amount for one in comparison.differences}


def test_a_queue_counter_wraps_at_32_bits(compared: Comparison) -> None:
    """4 - 4294967290 = 10 modulo 2^32."""
    assert amounts(compared)["mlx5_0/1 out_of_buffer"] == 10
    assert [one.after.name for one in compared.differences if one.has_wrapped] == ["out_of_buffer"]


def test_data_are_words_of_four_bytes(compared: Comparison) -> None:
    """(30 - 10) words are 80 bytes; a counter at its largest value rose by 5 words at least, and says so."""
    assert amounts(compared)["lid134/1 PortRcvData"] == 80
    assert amounts(compared)["lid134/1 PortXmitData"] == 20
    saturated = [one.after.name for one in compared.differences if one.is_saturated]
    assert saturated == ["SymbolErrorCounter", "PortXmitData"]


def test_a_fall_to_nothing_is_a_reset_and_makes_all_rises_of_the_device_unknown(compared: Comparison) -> None:
    """131 -> 0 modulo 2^32 would be four billion retransmissions."""
    assert compared.reset_devices == ("mlx5_1/1",)
    assert {amount for name, amount in amounts(compared).items() if name.startswith("mlx5_1/1")} == {None}
    assert amounts(compare_snapshots(snapshot(np_cnp_sent=5), snapshot(np_cnp_sent=4))) == {
        "mlx5_0/1 np_cnp_sent": None
    }


def test_one_reset_counter_tells_that_a_wrap_beside_it_is_none() -> None:
    """A driver that is loaded again begins all at zero."""
    before = snapshot(out_of_buffer=2**32 - 1, np_cnp_sent=7)
    assert set(amounts(compare_snapshots(before, snapshot(out_of_buffer=1, np_cnp_sent=0))).values()) == {None}


def test_findings_say_class_amount_and_evidence(compared: Comparison) -> None:
    """By device; 2 GB were sent on eth2, so that one link down is 0.5 per GB; 0.2 s of 10 s is 2 %."""
    report = check_counters(compared, interval_ps=10 * 10**12)
    assert [(one.id, one.severity, one.entity, one.actual) for one in report.findings] == [
        (
            "counters.reset",
            Severity.WARNING,
            "mlx5_1/1",
            "counters fell; nothing is known of their rise",
        ),
        ("counters.link-downs", Severity.ERROR, "eth2", "link downs: 1"),
        ("counters.timeout-retransmissions", Severity.WARNING, "mlx5_0/1", "retransmissions after a timeout: 4"),
        ("counters.receiver-not-ready", Severity.WARNING, "mlx5_0/1", "packets without a receive buffer: 10"),
        (
            "counters.pauses",
            Severity.WARNING,
            "eth2",
            "time paused by the network: 200 ms, pauses received: 30, 2 % of the interval",
        ),
        (
            "counters.cnp-not-sent",
            Severity.WARNING,
            "mlx5_0/1",
            "packets marked by ECN: 20, CNPs sent: 0",
        ),
    ]
    where = f"{GOLDEN}/after.txt"
    assert report.findings[1].evidence == (f"link_down_events_phy: 1 -> 2, 0.5 per GB sent ({where}:13)",)
    assert report.findings[3].evidence == (f"out_of_buffer: 4,294,967,290 -> 4 (wrapped) ({where}:24)",)


def test_without_an_interval_a_pause_is_information(compared: Comparison) -> None:
    """Its share of time is unknown."""
    pauses = next(one for one in check_counters(compared).findings if one.id == "counters.pauses")
    assert pauses.severity == Severity.INFO
    assert pauses.actual == "time paused by the network: 200 ms, pauses received: 30"


def test_a_class_without_counters_is_not_checked(compared: Comparison) -> None:
    """Nothing that was not read passes."""
    checks = {check.rule: check.reason for check in check_counters(compared).checks}
    assert checks["counters.cnp-ignored"] == "no counter of CNPs ignored, or all were reset"
    assert checks["counters.discards"] == ""


def test_one_snapshot_is_not_judged() -> None:
    """Its totals count since an unknown time."""
    assert check_counters(None).checks == ()


def test_counters_and_settings_of_one_side_are_noted() -> None:
    """Neither is a rise; a setting that changed explains one."""
    before, after = snapshot(np_cnp_sent=1), snapshot(rp_cnp_handled=2)
    before = replace(before, settings={("mlx5_0", "fw_ver"): "1", ("mlx5_0", "rate"): "100"})
    after = replace(after, settings={("mlx5_0", "fw_ver"): "2", ("mlx5_0", "rate"): "100"})
    assert compare_snapshots(before, after).notes == (
        "counters in the first snapshot only, not compared: 1 (mlx5_0/1/np_cnp_sent)",
        "counters in the second snapshot only, not compared: 1 (mlx5_0/1/rp_cnp_handled)",
        "mlx5_0: fw_ver changed between the snapshots: 1 -> 2",
    )
