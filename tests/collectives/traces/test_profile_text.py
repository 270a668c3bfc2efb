"""What is left of a profile's text is JSON with every request; the rest of its events are left out."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.collectives.traces import profile_text
from fabrictune.collectives.traces.profile_text import EventFilter
from tests.profile_events import ALL_REDUCE_OF_TWO

NAMES = st.sampled_from(["aten::mul", "ncclDevKernel", "record_param_comms", 'a "quoted" {name}', "},{", "größe", "]"])
NESTED: Any = st.sampled_from([{}, {"Dims": [[1, 2], []]}, {"parts": [{"ph": "X"}, {"ph": "Y"}]}, ALL_REDUCE_OF_TWO])
EVENTS = st.fixed_dictionaries({"ph": st.just("X"), "name": NAMES, "args": NESTED})


def filtered(text: str) -> Any:
    reader = EventFilter(io.BytesIO(text.encode()))
    return json.loads(b"".join(iter(lambda: reader.read(7), b"")))


def names_a_collective(event: Any) -> bool:
    return "Collective name" in event["args"] or any(word in event["name"] for word in ("nccl", "record_param_comms"))


@pytest.mark.parametrize("block", [16, 100, 2**20])
@given(events=st.lists(EVENTS, max_size=30), indent=st.sampled_from([None, 1, 0]), is_ascii=st.booleans())
def test_every_request_is_left_in_its_order(block: int, events: list[Any], indent: int | None, is_ascii: bool) -> None:
    """Whatever the blocks that are read, and whatever stands between and inside the events."""
    head, tail = {"schemaVersion": 1, "distributedInfo": {"rank": 3}}, {"traceName": "x"}
    text = json.dumps({**head, "traceEvents": events, **tail}, indent=indent, ensure_ascii=is_ascii)
    if indent == 0:  # an event a line
        lines = ",\n".join(json.dumps(event, ensure_ascii=is_ascii) for event in events)
        text = json.dumps({**head, "traceEvents": [], **tail}).replace(
            '"traceEvents": []', f'"traceEvents": [\n{lines}]'
        )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(profile_text, "BLOCK_BYTES", block)
        left = filtered(text)
    assert {**left, "traceEvents": []} == {**head, "traceEvents": [], **tail}
    requests = [event for event in events if names_a_collective(event)]
    assert [event for event in left["traceEvents"] if names_a_collective(event)] == requests
    assert all(event["ph"] == "X" for event in left["traceEvents"])


def test_other_events_are_left_out() -> None:
    """Of ten thousand operators and one collective a few events are left."""
    operators = [{"ph": "X", "name": "aten::mul", "args": {"id": n}} for n in range(5000)]
    kernel = {"ph": "X", "cat": "kernel", "name": "ncclDevKernel", "args": ALL_REDUCE_OF_TWO}
    left = filtered(json.dumps({"traceEvents": [*operators, kernel, *operators]}, indent=1))["traceEvents"]
    assert kernel in left
    assert len(left) < 5


def test_an_escape_hides_no_word() -> None:
    """A name may be written with `\\u`; such an event is kept."""
    events = ['{"ph": "X", "name": "aten::mul"}'] * 5
    events[2] = '{"ph": "X", "name": "record\\u005fparam_comms"}'
    left = filtered('{"traceEvents": [' + ",\n".join(events) + "]}")["traceEvents"]
    assert {"ph": "X", "name": "record_param_comms"} in left


def test_events_of_another_form_are_all_left() -> None:
    """Where events do not begin with `ph`, or all are on one line, nothing is left out."""
    for event, indent in (({"name": "aten::mul", "ph": "X"}, 1), ({"ph": "X", "name": "aten::mul"}, None)):
        text = json.dumps({"traceEvents": [event] * 100}, indent=indent)
        assert len(filtered(text)["traceEvents"]) == 100
