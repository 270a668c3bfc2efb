"""Checks of a law's functions: each place where machine code would go on silently, or for ever."""

import pytest

from fabrictune.cc.checked_law import checked_law
from fabrictune.cc.compiler import compile_law
from fabrictune.cc.flow_state import new_flow
from fabrictune.cc.interface import Status
from fabrictune.cc.interpreter import HandCalledLaw, InterpretedLaw
from fabrictune.cc.laws import LAWS
from fabrictune.cc.places import Check, Place
from fabrictune.foundation.errors import LawError

STATE = "(('zero', 'i8'), ('small', 'i4'), ('large', 'i8'), ('share', 'f8'), ('slots', 'i4', (3,)))"
LOOPED = "looped more than 100,000 times in one call"
LOST = "made a whole number of one that is too large, infinite or no number"
OUTSIDE = "used an index outside its array"


def failure(module):
    """Return where both forms of a law fail in on_start; they must fail alike."""
    interpreted, compiled = InterpretedLaw(module), HandCalledLaw(compile_law(module))
    flow = new_flow(compiled.flow_dtype, line_rate_bps=1e9)
    assert compiled.call("on_start", flow, 5) == Status.RAISED
    with pytest.raises(LawError) as raised:
        interpreted.call("on_start", new_flow(compiled.flow_dtype, line_rate_bps=1e9), 5)
    place = compiled.failed_at
    assert place is not None
    assert str(raised.value) == f"law my_law, on_start: {place.found} ({place})"
    return place.found, place.line, place.function


@pytest.fixture
def law_of(write_law):
    """Return a law whose on_start has these lines, the first of them line 5 of its file."""

    def write(*lines, before=""):
        body = before + "def on_start(params, flow, now_ps):\n" + "".join(f"    {line}\n" for line in lines)
        return write_law(f"{body}    return Status.OK\n", state=STATE)

    return write


@pytest.mark.parametrize(
    ("lines", "found", "line"),
    [
        (("while flow.zero < 10: pass",), LOOPED, 5),
        (("flow.share = 1.0", "while flow.share >= 0:", "    flow.share = flow.share * 0.5"), LOOPED, 6),
        (("for step in range(10**9):", "    flow.share += step * 1.5"), LOOPED, 5),
        (("for i in range(1000):", "    for j in range(1000):", "        flow.share += i - j"), LOOPED, 6),
        (("flow.large = 7 // flow.zero",), "divided by zero", 5),
        (("flow.large = 7 % flow.zero",), "divided by zero", 5),
        (("flow.share = 1.5 % flow.zero",), "divided by zero", 5),
        (("flow.share = flow.share // 0.0",), "divided by zero", 5),
        (("flow.large += 7", "flow.large //= flow.zero"), "divided by zero", 6),
        (("rest = 7", "rest %= flow.zero", "flow.large = rest"), "divided by zero", 6),
        (("flow.large = divmod(7, flow.zero)[0]",), "divided by zero", 5),
        (("flow.large = flow.slots[flow.zero + 3]",), OUTSIDE, 5),
        (("flow.slots[now_ps] = 1",), OUTSIDE, 5),
        (("flow.slots[now_ps] += 1",), OUTSIDE, 5),
        (("slots = flow.slots", "flow.large = slots[flow.zero - 4]"), OUTSIDE, 6),
        (("flow.large = flow.rate_bps / flow.share",), LOST, 5),
        (("flow.large = flow.share / flow.share",), LOST, 5),
        (("flow.large += flow.cwnd_bytes * 10",), LOST, 5),
        (("flow.small = 1e10 + flow.share",), LOST, 5),
        (("flow.small = now_ps * 1_000_000_000",), LOST, 5),
        (("flow.slots[1] = now_ps * 1_000_000_000",), LOST, 5),
        (("slots = flow.slots", "slots[1] = 3e9 + flow.share"), LOST, 6),
        (("flow.small, flow.large = 1, flow.rate_bps / flow.share",), LOST, 5),
        (("flow.share = int(flow.rate_bps / flow.share)",), LOST, 5),
        (("flow.deadline_ps[0] = flow.rate_bps * 1e20",), LOST, 5),
    ],
)
def test_a_failed_check_names_its_line_in_both_forms(law_of, lines, found, line):
    """Without checks each went on with a wrong number, wrote elsewhere, or never returned."""
    timer = "def on_timer(params, flow, now_ps, timer): return Status.OK\n" if "deadline_ps" in lines[0] else ""
    assert failure(law_of(*lines, before=timer)) == (found, line + bool(timer), "on_start")


def test_a_loop_in_a_function_counts_with_its_caller_s(law_of):
    """400 calls of 300 steps each are 120,000, and no loop alone is long."""
    before = "def summed(n):\n    total = 0\n    while n > 0:\n        total += n\n        n -= 1\n    return total\n"
    module = law_of("for step in range(400):", "    flow.large = summed(300)", before=before)
    assert failure(module) == (LOOPED, 6, "summed")


def test_each_call_of_a_handler_counts_anew(law_of):
    """99,999 steps may be taken at every event."""
    module = law_of("for step in range(99_999):", "    flow.large += 1")
    for law in (HandCalledLaw(compile_law(module)), InterpretedLaw(module)):
        flow = new_flow(law.flow_dtype, line_rate_bps=1e9)
        assert [law.call("on_start", flow, 0) for _ in range(3)] == [Status.OK] * 3
        assert flow["large"][0] == 3 * 99_999


def test_what_is_right_goes_through(law_of):
    """Negative indexes, tuples, whole floats, slices, lambdas: -7 // 2 = -4, and -7 % 2 = 1."""
    module = law_of(
        "flow.small, flow.large = -7 // 2, -7 % (flow.zero + 2)",
        "flow.slots[-1] += 2",
        "flow.slots[flow.small + 4] -= WEIGHTS[1]",
        "flow.share = int(2.9) + half(9.0)",
        before="WEIGHTS = (1, 3)\nhalf = lambda x: x / 2\n",
    )
    for law in (HandCalledLaw(compile_law(module)), InterpretedLaw(module)):
        flow = new_flow(law.flow_dtype, line_rate_bps=1e9)
        assert law.call("on_start", flow, 0) == Status.OK
        found = [flow[name][0].tolist() for name in ("small", "large", "slots", "share")]
        assert found == [-4, 1, [-3, 0, 2], 6.5]


def test_a_raise_names_its_line_when_compiled(law_of, tmp_path):
    """Interpreted, the exception itself does."""
    compiled = HandCalledLaw(compile_law(law_of("if now_ps > 3:", "    raise ValueError('late')")))
    flow = new_flow(compiled.flow_dtype, line_rate_bps=1e9)
    assert compiled.call("on_start", flow, 5) == Status.RAISED
    assert compiled.failed_at == Place(check=Check.RAISE, path=str(tmp_path / "my_law.py"), line=6, function="on_start")
    assert compiled.call("on_start", flow, 3) == Status.OK
    assert compiled.failed_at is None


def test_an_assertion_names_its_line_when_compiled(law_of):
    """It is an exception like others."""
    compiled = HandCalledLaw(compile_law(law_of("assert now_ps < 3")))
    assert compiled.call("on_start", new_flow(compiled.flow_dtype, line_rate_bps=1e9), 5) == Status.RAISED
    assert compiled.failed_at is not None
    assert (compiled.failed_at.line, compiled.failed_at.found) == (5, "raised an exception")


def test_a_try_does_not_hide_a_loop_without_end(law_of):
    """The compiled form goes on to the next step of the loop around it, and ends there."""
    before = "def forever(flow):\n    while flow.zero == 0: pass\n"
    caught = ("    try:", "        forever(flow)", "    except Exception:", "        flow.large = 1")
    module = law_of("while flow.zero == 0:", *caught, before=before)
    compiled = HandCalledLaw(compile_law(module))
    flow = new_flow(compiled.flow_dtype, line_rate_bps=1e9)
    assert compiled.call("on_start", flow, 5) == Status.RAISED
    assert compiled.failed_at is not None
    assert (compiled.failed_at.found, compiled.failed_at.line) == (LOOPED, 7)
    with pytest.raises(LawError, match=r"my_law.py:5 in forever"):
        InterpretedLaw(module).call("on_start", flow, 5)


def test_only_functions_with_loops_take_a_counter(law_of):
    """A law without loops pays nothing for those of others."""
    before = "def summed(n):\n    for k in range(n): n += k\n    return n\n"
    assert checked_law(law_of("flow.large = summed(3)", before=before)).handlers["on_start"].counts_steps
    assert not checked_law(law_of("flow.large = 3")).handlers["on_start"].counts_steps
    assert not any(handler.counts_steps for handler in checked_law(LAWS["timely"]).handlers.values())


def test_a_function_with_a_loop_is_no_value(law_of, tmp_path):
    """A call through a variable could not be given the counter."""
    before = "def summed(n):\n    for k in range(n): n += k\n    return n\n"
    with pytest.raises(LawError) as raised:
        checked_law(law_of("f = summed", "flow.large = f(3)", before=before))
    where = f"{tmp_path / 'my_law.py'}:8: on_start"
    assert str(raised.value) == f"{where}: uses summed, a function with a loop, as a value\n  allowed: a call of it"


def test_a_file_that_changed_since_it_was_read_is_not_compiled(law_of, tmp_path):
    """What was read, and trusted, is what runs."""
    module = law_of("flow.large = 3")
    path = tmp_path / "my_law.py"
    path.write_text(path.read_text().replace("large = 3", "large = now_ps"))
    with pytest.raises(LawError, match=r"my_law.py:4: on_start: the file has another function there"):
        compile_law(module)
