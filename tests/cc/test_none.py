"""The law without control."""

from fabrictune.cc import none
from fabrictune.cc.flow_state import new_flow
from fabrictune.cc.interface import NEVER, UNLIMITED_CWND_BYTES, Status
from fabrictune.cc.interpreter import InterpretedLaw


def test_a_flow_sends_at_line_rate_without_window_or_timer():
    """Nothing may hold back a flow."""
    law = InterpretedLaw(none)
    flow = new_flow(law.flow_dtype, line_rate_bps=400e9)
    flow["rate_bps"], flow["cwnd_bytes"] = 1, 1
    assert law.call("on_start", flow, 0) == Status.OK
    assert flow["rate_bps"][0] == 400e9
    assert flow["cwnd_bytes"][0] == UNLIMITED_CWND_BYTES
    assert (flow["deadline_ps"] == NEVER).all()


def test_no_event_but_the_start_is_handled():
    """An engine calls nothing for it, so it costs nothing."""
    law = InterpretedLaw(none)
    flow = new_flow(law.flow_dtype, line_rate_bps=400e9)
    before = flow.tobytes()
    assert law.call("on_cnp", flow, 5) == Status.OK
    assert flow.tobytes() == before
