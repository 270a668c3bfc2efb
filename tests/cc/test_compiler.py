"""Compiled laws: C pointers, statuses, and messages for what does not compile."""

import sys

import numpy as np
import pytest

from fabrictune.cc import dcqcn, none
from fabrictune.cc.compiler import compile_law
from fabrictune.cc.flow_state import new_flow
from fabrictune.cc.interface import TELEMETRY_DTYPE, Status
from fabrictune.cc.interpreter import HandCalledLaw, InterpretedLaw
from fabrictune.foundation.errors import LawError

ACK_ARGUMENTS = "params, flow, now_ps, acked_bytes, rtt_ps, endpoint_delay_ps, num_hops, is_ecn_marked, telemetry"


def start_law(write_law, *lines, **surface):
    """Return a law whose on_start has these lines, the first of them line 5 of its file."""
    body = "def on_start(params, flow, now_ps):\n" + "".join(f"    {line}\n" for line in lines)
    return write_law(body, **surface)


def refusal(module):
    with pytest.raises(LawError) as raised:
        compile_law(module)
    return str(raised.value)


def test_only_handlers_a_law_defines_get_an_address():
    """An engine calls nothing else; DCQCN spares the call on every acknowledgement."""
    assert set(compile_law(none).handler_address) == {"on_start"}
    assert set(compile_law(dcqcn).handler_address) == {"on_start", "on_cnp", "on_timer", "on_send"}


def test_a_compiled_law_carries_its_text_and_parameters():
    """A run record must be able to say what ran."""
    law = compile_law(dcqcn, {"alpha_gain": 0.125})
    assert law.name == "dcqcn"
    assert law.source.startswith('"""DCQCN')
    assert law.params["alpha_gain"][0] == 0.125
    assert law.flow_dtype == InterpretedLaw(dcqcn).flow_dtype


def test_an_exception_becomes_a_status(write_law):
    """Numba's own entry would print the exception and return nothing to go by."""
    module = start_law(
        write_law,
        "if now_ps < 0:",
        "    raise ValueError('time runs backwards')",
        "if now_ps == 0:",
        "    return Status.REFUSED",
        "return Status.OK",
    )
    law = HandCalledLaw(compile_law(module))
    flow = new_flow(law.flow_dtype, line_rate_bps=1e9)
    assert [law.call("on_start", flow, now_ps) for now_ps in (-1, 0, 1)] == [Status.RAISED, Status.REFUSED, Status.OK]


def test_telemetry_comes_as_an_array_of_hops(write_law):
    """An HPCC-like law reads every hop; the engine gives a pointer and a count."""
    body = (
        "USES_TELEMETRY = True\n"
        "def on_start(params, flow, now_ps): return Status.OK\n"
        f"def on_ack({ACK_ARGUMENTS}):\n"
        "    for hop in range(num_hops):\n"
        "        flow.queue_bytes[hop] = telemetry[hop].queue_bytes\n"
        "        flow.most_bytes = max(flow.most_bytes, telemetry[hop].queue_bytes)\n"
        "    flow.num_seen = len(telemetry)\n"
        "    return Status.OK\n"
    )
    state = "(('queue_bytes', 'i8', (16,)), ('most_bytes', 'i8'), ('num_seen', 'i4'))"
    module = write_law(body, state=state)
    compiled = compile_law(module)
    assert compiled.uses_telemetry
    telemetry = np.zeros(3, TELEMETRY_DTYPE)
    telemetry["queue_bytes"] = [5, 9, 7]
    for law in (HandCalledLaw(compiled), InterpretedLaw(module)):
        flow = new_flow(law.flow_dtype, line_rate_bps=1e9)
        assert law.call("on_ack", flow, 0, 4096, 8_000_000, 0, 3, 0, telemetry) == Status.OK
        assert flow["queue_bytes"][0].tolist() == [5, 9, 7] + 13 * [0]
        assert (flow["most_bytes"][0], flow["num_seen"][0]) == (9, 3)


def test_a_law_without_telemetry_may_be_given_none(write_law):
    """The engine passes a null pointer then."""
    module = write_law(
        "def on_start(params, flow, now_ps): return Status.OK\n"
        f"def on_ack({ACK_ARGUMENTS}):\n    flow.rate_bps = acked_bytes\n    return Status.OK\n"
    )
    law = HandCalledLaw(compile_law(module))
    flow = new_flow(law.flow_dtype, line_rate_bps=1e9)
    assert law.call("on_ack", flow, 0, 4096, 8_000_000, 0, 0, 0, None) == Status.OK
    assert flow["rate_bps"][0] == 4096


def test_functions_that_call_in_a_circle_are_refused(write_law, tmp_path):
    """Numba links such functions only after the entry that calls them; a loop does as well."""
    module = write_law(
        "def is_even(n): return True if n == 0 else is_odd(n - 1)\n"
        "def is_odd(n): return False if n == 0 else is_even(n - 1)\n"
        "def on_start(params, flow, now_ps):\n"
        "    flow.rate_bps = 2.0 if is_even(now_ps) else 1.0\n"
        "    return Status.OK\n"
    )
    assert refusal(module).startswith(
        f"{tmp_path / 'my_law.py'}:4: is_even: calls itself, directly or through others\n"
    )


def test_a_function_used_twice_is_no_circle(write_law):
    """Both handlers and another function use `halved`: 8 / 2 / 2 = 2."""
    module = write_law(
        "def halved(x): return x / 2\n"
        "def quartered(x): return halved(halved(x))\n"
        "def on_start(params, flow, now_ps):\n    flow.rate_bps = quartered(8.0)\n    return Status.OK\n"
        "def on_cnp(params, flow, now_ps):\n    flow.rate_bps = halved(flow.rate_bps)\n    return Status.OK\n"
    )
    law = HandCalledLaw(compile_law(module))
    flow = new_flow(law.flow_dtype, line_rate_bps=1e9)
    assert law.call("on_start", flow, 0) == law.call("on_cnp", flow, 0) == Status.OK
    assert flow["rate_bps"][0] == 1.0


def test_compiling_leaves_the_module_as_it_was():
    """The same functions go on running interpreted."""
    before = dict(vars(dcqcn))
    compile_law(dcqcn)
    assert vars(dcqcn) == before


@pytest.mark.parametrize(
    ("line", "where", "message"),
    [
        (
            "flow.rate_bsp = 1.0",
            5,
            "no field 'rate_bsp' in params, flow or telemetry\n  did you mean 'rate_bps'?",
        ),
        ("missing(flow)", 5, "cannot be compiled (NameError: name 'missing' is not defined)"),
        ("with open('log') as log: log.write('x')", 4, "cannot be compiled (The 'with (context manager) as (variable"),
        ("import os", 5, "cannot be compiled (Use of unsupported opcode (IMPORT_NAME) found"),
        ("Parameter()", 5, "cannot be compiled (Untyped global name 'Parameter': Cannot determine Numba type"),
        ("flow.rate_bps = 'fast'", 5, "cannot be compiled (Cannot cast"),
        ("del flow.rate_bps", 5, "cannot be compiled (Unsupported constraint encountered: del"),
    ],
)
def test_python_that_does_not_compile_is_met_with_its_line(write_law, tmp_path, line, where, message):
    """The law's author sees their line and what is wrong there, not the compiler's inside."""
    found = refusal(start_law(write_law, line, "return Status.OK"))
    assert found.startswith(f"{tmp_path / 'my_law.py'}:{where}: on_start: {message}")
    assert "allowed: " in found
    assert "site-packages" not in found


@pytest.mark.parametrize(
    "line", ["pass", "return", "return 0.5", "return 'OK'", "if now_ps > 0: return Status.OK", "yield Status.OK"]
)
def test_a_handler_returns_a_status_on_every_path(write_law, tmp_path, line):
    """An engine that reads a status must find one."""
    assert refusal(start_law(write_law, line)) == (
        f"{tmp_path / 'my_law.py'}:4: on_start: does not return a status on every path\n"
        "  allowed: Status.OK, Status.REFUSED\n  next: end the handler with `return Status.OK`"
    )


def test_a_mistake_in_a_helper_is_found_there(write_law, tmp_path):
    """Line 5 is the helper's, not the handler's."""
    module = write_law(
        "def gain(flow):\n    return flow.gian\n"
        "def on_start(params, flow, now_ps):\n    flow.gain = gain(flow)\n    return Status.OK\n",
        state="(('gain', 'f8'),)",
    )
    assert refusal(module).startswith(f"{tmp_path / 'my_law.py'}:5: on_start: no field 'gian'")


def test_a_module_that_is_no_law_is_refused():
    """compile_law takes any module, and looks at it first."""
    assert refusal(sys).startswith("law sys: no function on_start")


def test_division_by_zero_is_infinite_as_in_c(write_law):
    """Python would raise; records hold NumPy numbers, which do not, in either form."""
    module = start_law(
        write_law, "flow.cwnd_bytes = flow.rate_bps / flow.gain", "return Status.OK", state="(('gain', 'f8'),)"
    )
    for law in (HandCalledLaw(compile_law(module)), InterpretedLaw(module)):
        flow = new_flow(law.flow_dtype, line_rate_bps=1e9)
        law.call("on_start", flow, 0)
        assert flow["cwnd_bytes"][0] == np.inf


def test_parameters_reach_the_handlers(write_law):
    """Settings are read from the record at every call, not compiled in."""
    module = start_law(
        write_law,
        "flow.rate_bps = params.first_rate_bps",
        "return Status.OK",
        parameters="(Parameter(name='first_rate_bps', default=1e9, low=1.0, high=1e12, meaning='first rate'),)",
    )
    compiled = compile_law(module, {"first_rate_bps": 5e9})
    law = HandCalledLaw(compiled)
    flow = new_flow(law.flow_dtype, line_rate_bps=1e11)
    law.call("on_start", flow, 0)
    assert flow["rate_bps"][0] == 5e9
    compiled.params["first_rate_bps"] = 6e9
    law.call("on_start", flow, 0)
    assert flow["rate_bps"][0] == 6e9


def test_an_interpreted_law_shows_its_own_exception(write_law):
    """That is what it is for: the traceback leads to the line."""
    law = InterpretedLaw(start_law(write_law, "raise ValueError('no')", "return Status.OK"))
    with pytest.raises(ValueError, match="no"):
        law.call("on_start", new_flow(law.flow_dtype, line_rate_bps=1e9), 0)
