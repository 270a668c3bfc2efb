"""Rates of transfers between hosts, against the times that a simulated job gives its links."""

from dataclasses import replace

import pytest

from benchmarks.studies.planted_stragglers.jobs import GRADIENT_BYTES, GRADIENTS_NS, MESSAGE_BYTES, MESSAGE_NS
from fabrictune.foundation.spans import Spans
from fabrictune.foundation.traces import UNKNOWN
from fabrictune.observability.stragglers.requests import join_requests
from fabrictune.observability.stragglers.transfer_rates import TransferRate, transfer_rates
from tests.observability.span_folders import slow_job

NIC_BPS = 400_000_000_000


def rates_of(spans: Spans, nic_rate_bps: int | None = NIC_BPS) -> tuple[dict[str, TransferRate], int]:
    rates, num_left_out = transfer_rates(spans, join_requests(spans), nic_rate_bps=nic_rate_bps)
    return {rate.axis: rate for rate in rates if rate.num_bytes in (MESSAGE_BYTES, GRADIENT_BYTES)}, num_left_out


def test_rates_are_sizes_over_the_times_of_links() -> None:
    """6.29 MB in 0.4 ms are 126 Gbps, a third of the NIC; transfers vary by a tenth."""
    rates, _ = rates_of(slow_job())
    message = rates["pp"]
    assert (message.operation, message.num_bytes) == ("send", MESSAGE_BYTES)
    assert message.rate_bps == pytest.approx(MESSAGE_BYTES * 8 / (MESSAGE_NS * 1e-9), rel=0.1)
    assert message.share_fraction == pytest.approx(message.rate_bps / NIC_BPS)


def test_a_collective_has_its_bus_bandwidth() -> None:
    """A scattering or a gathering among 8 replicas sends 7/8 of its size."""
    rate = rates_of(slow_job())[0]["dp"]
    assert rate.operation in ("reduce-scatter", "all-gather")
    assert rate.rate_bps == pytest.approx(7 / 8 * GRADIENT_BYTES * 8 / (GRADIENTS_NS * 1e-9), rel=0.1)


def test_requests_inside_a_host_are_left_out_and_counted() -> None:
    spans = slow_job()
    inside = replace(spans, host_R=("node0",) * len(spans.host_R))
    assert rates_of(inside) == ({}, join_requests(spans).num_requests)


def test_without_a_nic_there_is_no_share() -> None:
    rates, _ = rates_of(slow_job(), None)
    assert {rate.share_fraction for rate in rates.values()} == {float(UNKNOWN)}
