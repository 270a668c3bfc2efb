"""Rates over time: throughput of sampled ports, and rate, window and round trip of sampled queue pairs."""

from collections.abc import Sequence

from fabrictune.reports.blocks import Section
from fabrictune.reports.flows import FLOW_SAMPLES, FlowTimeline, flow_blocks
from fabrictune.reports.record_view import Run
from fabrictune.reports.throughput import SENT, PortThroughput, throughput_figures


def rates_section(runs: Sequence[Run]) -> Section | None:
    """Return what ports carried and what congestion control allowed over time, or None where nothing was sampled."""
    throughputs = [
        (run, throughput)
        for run in runs
        if (sent := run.rows(SENT)) is not None and (throughput := PortThroughput.of(sent)) is not None
    ]
    timelines = [
        timeline
        for run in runs
        if (samples := run.rows(FLOW_SAMPLES)) is not None and (timeline := FlowTimeline.of(run, samples)) is not None
    ]
    blocks = (*throughput_figures(throughputs), *flow_blocks(timelines))
    if not blocks:
        return None
    lead = (
        "Flows that share a bottleneck settle at the same rate; one that keeps swinging, or a round trip that grows "
        "while the throughput does not, is waiting in a queue."
    )
    return Section(anchor="rates", title="Rates over time", lead=lead, blocks=blocks)
