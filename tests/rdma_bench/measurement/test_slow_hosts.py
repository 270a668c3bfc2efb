"""Slow hosts of a matrix: found by their own figures, and not where nothing can tell."""

import numpy as np
import pytest

from fabrictune.foundation.checks import Result
from fabrictune.rdma_bench.measurement.slow_hosts import check_hosts
from fabrictune.rdma_bench.measurement.transfers import MeasuredTransfer

GBPS = 1e9


def matrix(
    num_hosts: int, slow: dict[str, float], *, noise: float = 0.01, is_latency: bool = False
) -> list[MeasuredTransfer]:
    """Return a matrix at 390 Gbps (or 5 us) whose slow hosts have a share of that in both directions."""
    random = np.random.default_rng(1)
    hosts = [f"gpu{number:02}" for number in range(num_hosts)]
    rows = []
    for sender in hosts:
        for receiver in hosts:
            if sender == receiver:
                continue
            factor = min(slow.get(sender, 1.0), slow.get(receiver, 1.0)) * (1 + noise * random.standard_normal())
            rows.append(
                MeasuredTransfer(
                    sender=sender,
                    receiver=receiver,
                    num_queue_pairs=1,
                    size_bytes=65536,
                    num_directions=1,
                    bandwidth_bps=0.0 if is_latency else 390 * GBPS * factor,
                    median_ns=5000 / factor if is_latency else 0.0,
                    p99_ns=6000 / factor if is_latency else 0.0,
                )
            )
    return rows


def test_a_host_16_percent_slower_is_found_in_both_directions() -> None:
    """328 of 390 Gbps with every peer; the others' one slow peer of 15 moves none of their medians."""
    report = check_hosts(matrix(16, {"gpu03": 0.84}), is_latency=False)
    assert [finding.entity for finding in report.findings] == ["gpu03", "gpu03"]
    sends, receives = report.findings
    assert sends.actual.startswith("sends at 32")
    assert "16% less (" in sends.actual
    assert receives.actual.startswith("receives at 32")
    assert sends.expected.endswith("the median of 16 hosts")
    assert report.checks[0].num_found == 2


def test_latency_is_slow_when_it_is_longer() -> None:
    """5 us over 0.7 is 43 % more."""
    report = check_hosts(matrix(8, {"gpu05": 0.7}, is_latency=True), is_latency=True)
    assert {finding.entity for finding in report.findings} == {"gpu05"}
    assert "more (" in report.findings[0].actual


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.05])
def test_hosts_that_are_alike_have_no_finding(noise: float) -> None:
    """Nor do hosts that vary."""
    (check,) = check_hosts(matrix(16, {}, noise=noise), is_latency=False).checks
    assert check.result == Result.PASSED


def test_without_any_noise_a_slow_host_is_found_too() -> None:
    """A deviation of 0 divides nothing."""
    report = check_hosts(matrix(6, {"gpu01": 0.9}, noise=0.0), is_latency=False)
    assert {finding.entity for finding in report.findings} == {"gpu01"}
    assert "the others do not differ" in report.findings[0].actual


def test_four_hosts_are_too_few_to_tell() -> None:
    """The check did not run: it has not passed."""
    (check,) = check_hosts(matrix(4, {"gpu01": 0.5}), is_latency=False).checks
    assert check.result == Result.NOT_RUN
    assert check.reason == "it takes 5 hosts to tell whose fault a slow pair is"


def test_pairs_that_were_not_measured_do_not_count() -> None:
    """A bandwidth of 0 is none."""
    rows = [row for row in matrix(8, {}) if row.sender != "gpu02"]
    rows += [row for row in matrix(8, {"gpu02": 0.0}, noise=0.0) if row.sender == "gpu02"]
    assert not check_hosts(rows, is_latency=False).findings
