"""Interpreted and compiled laws agree bit for bit, and the comparison can tell when they do not."""

import pytest

from fabrictune.cc.differential import count_mismatches
from fabrictune.cc.laws import LAWS


@pytest.mark.parametrize("name", LAWS)
def test_every_law_agrees_with_itself_compiled(name):
    """Over 2,000 random events, each of which works on what the last one left; conformance has another seed."""
    assert count_mismatches(LAWS[name], num_events=2000, seed=2) == 0


def test_a_power_does_not_agree(write_law):
    """`**` goes to different libraries; were this 0, the comparison would not see the last bit."""
    module = write_law(
        "def on_start(params, flow, now_ps): return Status.OK\n"
        "def on_send(params, flow, now_ps, sent_bytes):\n"
        "    flow.decay = (255 / 256) ** (sent_bytes % 200)\n"
        "    return Status.OK\n",
        state="(('decay', 'f8'),)",
    )
    assert count_mismatches(module, num_events=2000, seed=1) > 0


def test_arrays_and_telemetry_agree(write_law):
    """A law of HPCC's kind: state per hop, telemetry in, integers and floats mixed."""
    arguments = "params, flow, now_ps, acked_bytes, rtt_ps, endpoint_delay_ps, num_hops, is_ecn_marked, telemetry"
    module = write_law(
        "import math\n"
        "from fabrictune.cc.arithmetic import integer_power\n"
        "USES_TELEMETRY = True\n"
        "def utilization(flow, hop, now):\n"
        "    elapsed = now.time_ps - flow.last_time_ps[hop]\n"
        "    sent = (now.tx_bytes - flow.last_tx_bytes[hop]) * 8e12 / max(elapsed, 1)\n"
        "    return sent / now.rate_bps + now.queue_bytes * 8e12 / (now.rate_bps * flow.base_rtt_ps)\n"
        "def on_start(params, flow, now_ps): return Status.OK\n"
        f"def on_ack({arguments}):\n"
        "    highest = 0.0\n"
        "    for hop in range(num_hops):\n"
        "        highest = max(highest, utilization(flow, hop, telemetry[hop]))\n"
        "        flow.last_time_ps[hop] = telemetry[hop].time_ps\n"
        "        flow.last_tx_bytes[hop] = telemetry[hop].tx_bytes\n"
        "    flow.cwnd_bytes = math.sqrt(abs(highest)) + integer_power(0.99, rtt_ps // 1_000_000 % 50)\n"
        "    flow.deadline_ps[is_ecn_marked] = now_ps + rtt_ps - endpoint_delay_ps\n"
        "    return Status.OK\n"
        "def on_timer(params, flow, now_ps, timer): return Status.OK\n",
        state="(('last_time_ps', 'i8', (16,)), ('last_tx_bytes', 'i8', (16,)))",
    )
    assert count_mismatches(module, num_events=2000, seed=1) == 0
