"""Schedules in GOAL: lines become messages and work, tags meet, and damage is named. The grammar is txt2bin.re's."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fabrictune.collectives.request_matching import match_requests
from fabrictune.collectives.traces.formats import read_trace
from fabrictune.collectives.traces.goal import is_goal
from fabrictune.foundation.errors import InputError, TraceError
from fabrictune.foundation.traces import CommTrace, Operation

PING_PONG = """\
// two ranks
num_ranks 2

rank 0 {
    l1: calc 100 cpu 0
    l2: send 10b to 1 tag 7 cpu 1 nic 0
    l3: recv 20b from 1 /* and
    back */ tag 8
    l2 requires l1
    l3 requires l2
}
rank 1 {
l1: recv 10b from 0 tag 7
l2: calc 50
l3: send 20b to 0 tag 8
l2 requires l1
l3 requires l2
}
"""


def read(folder: Path, text: str) -> CommTrace:
    path = folder / "schedule.goal"
    path.write_text(text)
    assert is_goal(path)
    return read_trace([path])


def test_lines_become_messages(tmp_path: Path) -> None:
    """100 ns before the send, and 50 ns between what rank 1 receives and sends; a comment may span lines."""
    trace = read(tmp_path, PING_PONG.replace("/* and\n    back */", "/* and back */"))
    assert trace.rank_N.tolist() == [0, 0, 1, 1]
    assert trace.operation_N.tolist() == [Operation.SEND, Operation.RECEIVE, Operation.RECEIVE, Operation.SEND]
    assert trace.bytes_N.tolist() == [10, 20, 10, 20]
    assert trace.compute_before_ps_N.tolist() == [100_000, 0, 0, 50_000]
    assert [trace.dependencies.of(row).tolist() for row in range(4)] == [[], [0], [], [2]]
    assert list(trace.tag_N) == ["tag 7", "tag 8"] * 2
    assert trace.notes == ("lines whose core or NIC is left out: 2",)
    assert len(match_requests(trace)[0].bytes_C) == 2


def test_a_beginning_that_is_waited_for(tmp_path: Path) -> None:
    """The send begins with the receive, after 5 ns of work, and not with its end."""
    text = """num_ranks 2
rank 0 {
w: calc 5
r: recv 1b from 1
r requires w
s: send 1b to 1
s irequires r
}
rank 1 {
send 1b to 0
recv 1b from 0
}
"""
    trace = read(tmp_path, text)
    assert trace.compute_before_ps_N[:2].tolist() == [5_000, 5_000]
    assert not len(trace.dependencies.row_D)


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_tags_meet_in_any_order(order: str, tmp_path: Path) -> None:
    """Messages of 1 and 2 B with tags 0 and 5 are received the other way round: each tag has a group of its own."""
    receives = {"a": "recv 1b from 0", "b": "recv 2b from 0 tag 5"}
    text = "num_ranks 2\nrank 0 {\nsend 1b to 1\nsend 2b to 1 tag 5\n}\nrank 1 {\n"
    trace = read(tmp_path, text + "\n".join(receives[name] for name in order) + "\n}\n")
    (messages,) = match_requests(trace)
    assert sorted(messages.bytes_C.tolist()) == [1, 2]
    assert trace.groups == ((0, 1),) * (1 if order == "ab" else 2)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "send 10b to 1",
            "send 10 to 1",
            r"schedule.goal:6: 'l2: send 10 to 1 tag 7 cpu 1 nic 0'\n  allowed: send SIZEb",
        ),
        ("send 10b to 1", "send 10b to 2", "schedule.goal:6: rank 2\n  allowed: 0 to 1, of num_ranks"),
        ("send 10b to 1", "send 10b to 0", "schedule.goal:6: a message of rank 0 to itself"),
        ("from 0 tag 7", "from -1", "schedule.goal:12: a receive from any rank, or of any tag"),
        ("l3 requires l2", "l3 requires l9", "the label 'l9', which no line before has"),
        ("l2 requires l1", "l2 requires l1\nl1 requires l2", "schedule.goal:5: a node that waits for itself"),
        ("\nrank 1 {", "\nrank 0 {\nsend 1b to 1\n}\nrank 1 {", "a second schedule of rank 0"),
        ("}\nrank 1", "rank 1", "schedule.goal:10: 'rank 1 {'"),
        ("l3 requires l2\n}\n", "l3 requires l2\n", "schedule.goal:1[0-9]: ('rank 1 {'|no end of rank 1)"),
        ("num_ranks 2", "num_ranks 0", "rank 0\n  allowed: 0 to -1"),
    ],
)
def test_mistakes_are_named(old: str, new: str, message: str, tmp_path: Path) -> None:
    """With file and line."""
    text = PING_PONG.replace("/* and\n    back */", "/* and back */").replace(old, new)
    with pytest.raises(TraceError, match=message):
        read(tmp_path, text)


def test_a_binomial_tree_reaches_every_rank_once(tmp_path: Path) -> None:
    """As Schedgen writes a broadcast to 32: rank r hears from r less its highest bit, then sends on."""
    text = "num_ranks 32\n"
    for rank in range(32):
        lines = [f"l1: recv 1b from {rank - 2 ** (rank.bit_length() - 1)} tag 0"] if rank else []
        for bit in range(rank.bit_length(), 5):
            label = f"l{len(lines) + 1}"
            lines.append(f"{label}: send 1b to {rank + 2**bit} tag 0" + (f"\n{label} requires l1" if rank else ""))
        text += f"\nrank {rank} {{\n" + "\n".join(lines) + "\n}\n"
    (messages,) = match_requests(read(tmp_path, text))
    assert len(messages.bytes_C) == 31


def test_a_line_that_goes_on_in_a_comment_is_named(tmp_path: Path) -> None:
    """A comment may span lines, a statement may not, as in LogGOPSim."""
    with pytest.raises(TraceError, match=r"schedule\.goal:8: 'tag 8'"):
        read(tmp_path, PING_PONG)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_is_a_trace_or_a_named_error(data: st.DataObject, tmp_path: Path) -> None:
    """Bytes changed, cut away or put in."""
    whole = bytearray(PING_PONG.encode())
    for _ in range(data.draw(st.integers(1, 5))):
        place = data.draw(st.integers(0, max(len(whole) - 1, 0)))
        put_in = data.draw(
            st.binary(max_size=3) | st.sampled_from([b"/*", b"*/", b"\n", b"0", b"-1", b"}", b"irequires"])
        )
        whole[place : place + data.draw(st.integers(0, 6))] = put_in
    path = tmp_path / "schedule.goal"
    path.write_bytes(bytes(whole))
    with suppress(TraceError, InputError):
        read_trace([path])
