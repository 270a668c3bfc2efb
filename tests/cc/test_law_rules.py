"""Each rule of the law interface, broken once."""

import pytest

from fabrictune.cc.law_rules import reads_marks
from fabrictune.cc.laws import LAWS
from fabrictune.foundation.errors import LawError

START = "def on_start(params, flow, now_ps): return Status.OK\n"


def refusal(write_law, body=START, **surface):
    with pytest.raises(LawError) as raised:
        write_law(body, **surface)
    return str(raised.value)


def test_an_event_misspelt_is_met_with_the_nearest(write_law, tmp_path):
    """A handler that no engine would ever call is a mistake, not a spare function."""
    message = refusal(write_law, f"{START}def on_cnps(params, flow, now_ps): return Status.OK\n")
    assert message == (
        f"{tmp_path / 'my_law.py'}:5: on_cnps: no event of this name\n  did you mean 'on_cnp'?\n"
        "  allowed: on_start, on_ack, on_cnp, on_timer, on_nack, on_timeout, on_send, on_trim"
    )


def test_arguments_are_named_as_the_interface_names_them(write_law, tmp_path):
    """Two swapped names would compile and be wrong."""
    message = refusal(write_law, f"{START}def on_timer(params, flow, timer, now_ps): return Status.OK\n")
    assert message == (
        f"{tmp_path / 'my_law.py'}:5: on_timer: arguments (params, flow, timer, now_ps)\n"
        "  allowed: (params, flow, now_ps, timer)"
    )


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        ("[]", "STATE: []"),
        ("(('rate_bps', 'f8'),)", "STATE: ('rate_bps', 'f8')"),  # the engine's own
        ("(('alpha', 'f8'), ('alpha', 'i8'))", "STATE: ('alpha', 'i8')"),
        ("(('alpha', 'float'),)", "STATE: ('alpha', 'float')"),
        ("(('a b', 'f8'),)", "STATE: ('a b', 'f8')"),
        ("(('queue', 'f8', (0,)),)", "STATE: ('queue', 'f8', (0,))"),
        ("(('queue', ['f8'], (2,)),)", "STATE: ('queue', ['f8'], (2,))"),
        ("('alpha',)", "STATE: 'alpha'"),
    ],
)
def test_state_entries_are_names_and_types(write_law, state, shown):
    """Each entry becomes a member of a C struct after the engine's header."""
    assert refusal(write_law, state=state).startswith(f"law my_law: {shown}\n")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("(1,)", "law my_law: PARAMETERS: (1,)\n  allowed: a tuple of fabrictune.cc.interface.Parameter; () for none"),
        (
            "(Parameter(name='gain', default=2.0, low=0.0, high=1.0, meaning=''),)",
            "law my_law: PARAMETERS: gain: default 2.0\n  allowed: from low to high, 0.0 to 1.0",
        ),
        (
            "(Parameter(name='gain', default=0, low=0, high=1, meaning='', dtype='i4'),)",
            "law my_law: PARAMETERS: gain: dtype 'i4'\n  allowed: f8 or i8",
        ),
        (
            "(Parameter(name='a gain', default=0, low=0, high=1, meaning=''),)",
            "law my_law: PARAMETERS: name 'a gain'\n  allowed: names that differ and are identifiers",
        ),
    ],
)
def test_parameters_are_whole(write_law, parameters, message):
    """A default outside its own range would refuse the law's own use."""
    assert refusal(write_law, parameters=parameters) == message


def test_a_deadline_needs_a_handler(write_law, tmp_path):
    """Otherwise it would pass, and the law would wait for ever."""
    message = refusal(
        write_law,
        "def on_start(params, flow, now_ps): return later(flow, now_ps)\n"
        "def later(flow, now_ps):\n"
        "    flow.deadline_ps[0] = now_ps + 1_000\n"
        "    return Status.OK\n",
    )
    assert message == (
        f"{tmp_path / 'my_law.py'}:5: later: uses deadline_ps in a law without on_timer\n"
        "  next: define on_timer(params, flow, now_ps, timer)"
    )


def test_telemetry_must_be_asked_for(write_law, tmp_path):
    """Without it the array is empty, and compiled code would read what lies behind it."""
    arguments = "params, flow, now_ps, acked_bytes, rtt_ps, endpoint_delay_ps, num_hops, is_ecn_marked, telemetry"
    reading = f"{START}def on_ack({arguments}):\n    flow.cwnd_bytes = telemetry[0].queue_bytes\n    return Status.OK\n"
    assert refusal(write_law, reading) == (
        f"{tmp_path / 'my_law.py'}:5: on_ack: reads telemetry, which is collected only for a law that asks for it\n"
        "  next: write USES_TELEMETRY = True next to PARAMETERS and STATE"
    )
    write_law(f"USES_TELEMETRY = True\n{reading}")


@pytest.mark.parametrize(("length", "shown"), [(78, f"'{'a' * 78}'"), (79, f"'{'a' * 76}...")])
def test_a_long_value_is_cut_at_80_characters(write_law, length, shown):
    """With its quotation marks."""
    assert refusal(write_law, state=repr("a" * length)).startswith(f"law my_law: STATE: {shown}\n")


def test_all_mistakes_of_a_law_are_told_at_once(write_law):
    """Nobody should mend a file mistake by mistake."""
    message = refusal(write_law, "def on_ack(): pass\n", state="[]")
    assert "no function on_start" in message
    assert "on_ack: arguments ()" in message
    assert "STATE: []" in message


ACK_ARGUMENTS = "params, flow, now_ps, acked_bytes, rtt_ps, endpoint_delay_ps, num_hops, is_ecn_marked, telemetry"


@pytest.mark.parametrize(
    ("body", "reads"),
    [
        ("", False),
        ("    return Status.OK", False),
        ("    if is_ecn_marked:\n        flow.rate_bps = 1e9\n    return Status.OK", True),
        (
            "    flow.rate_bps = 1e9 + marks(is_ecn_marked)\n    return Status.OK\n\ndef marks(n):\n    return n",
            True,
        ),
    ],
)
def test_reading_marks_follows_from_the_handler(write_law, body: str, reads: bool) -> None:
    """A law need not say it, and cannot say it wrongly; one that hears of notifications reads marks."""
    start = "def on_start(params, flow, now_ps):\n    return Status.OK\n"
    ack = f"def on_ack({ACK_ARGUMENTS}):\n{body}\n" if body else ""
    assert reads_marks(write_law(start + ack)) == reads
    assert reads_marks(write_law(start + ack + "def on_cnp(params, flow, now_ps):\n    return Status.OK\n"))


def test_a_handler_behind_a_wrapper_may_read_marks(write_law) -> None:
    """What the wrapper passes on cannot be seen in its code."""
    body = f"""
import functools

def on_start(params, flow, now_ps):
    return Status.OK

def logged(handler):
    @functools.wraps(handler)
    def call(*arguments):
        return handler(*arguments)
    return call

@logged
def on_ack({ACK_ARGUMENTS}):
    return Status.OK
"""
    assert reads_marks(write_law(body))


def test_bundled_laws_that_ignore_marks() -> None:
    """Their draws may be repeated while what they do is skipped."""
    assert {name for name, law in LAWS.items() if not reads_marks(law)} == {"none", "swift", "timely", "hpcc"}
