"""Connection matrices of htsim (`*.cm`): flows between numbered hosts, with sizes, start times and triggers.

    Nodes 16
    Connections 2
    Triggers 1
    0->15 id 1 start 0 size 2000000 send_done_trigger 1
    1->15 id 2 trigger 1 size 2000000
    trigger id 1 oneshot

Start times are picoseconds. A flow that waits for a trigger starts when the flows that fire it have ended: one for a
oneshot, as many as it counts for a barrier. A multishot starts one more flow each time it fires: here the flow of the
same place among those it starts as the ended one has among those that fire it, which is noted.

Source: csg-htsim, sim/datacenter/connection_matrix.cpp (load) and sim/trigger.cpp.
Left out, each with a note: failures, the priorities of htsim's queues, and whether a trigger fires when the sender or
the receiver is done.
"""

import io
import re
from dataclasses import dataclass, field
from pathlib import Path

from fabrictune.foundation.documents import read_text
from fabrictune.foundation.errors import TraceError, quote
from fabrictune.foundation.foreign_files import read_head
from fabrictune.netsim.workloads.flow_lists import (
    MAX_FILE_BYTES,
    MAX_FLOWS,
    MAX_SIZE_BYTES,
    MAX_START_PS,
    FlowList,
    whole_number,
)

TYPES = ("oneshot", "multishot", "barrier")
_HEAD = re.compile(rb"\A(?:\s*#[^\n]*\n|\s)*Nodes\s+\d+\s+Connections\s")
_PAIR = re.compile(r"(\d{1,9})->(\d{1,9})")
_START = re.compile(r"(\d{1,18})(?:\.\d*)?")
_DONE = ("send_done_trigger", "recv_done_trigger")


def is_connection_matrix(path: Path) -> bool:
    """Return whether the file begins as a connection matrix."""
    return _HEAD.match(read_head(path, 4096)) is not None


def read_connection_matrix(path: Path) -> FlowList:
    """Return the flows of a file; raises TraceError or InputError."""
    reader = _Reader(path)
    for row, line in enumerate(io.StringIO(read_text(path, max_bytes=MAX_FILE_BYTES)), start=1):
        words = line.split()
        if words and not words[0].startswith("#"):
            reader.read(words, f"{path}:{row}")
    return reader.finish()


@dataclass(kw_only=True)
class _Trigger:
    """Flows that fire a trigger, and flows that it starts."""

    type: str = ""
    count: int = 1
    fired_by: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    where: str = ""


class _Reader:
    """Reads lines into flows and triggers."""

    def __init__(self, path: Path) -> None:
        self.flows = FlowList(path=path)
        self.counts = {"Nodes": 0, "Connections": 0, "Triggers": 0, "Failures": 0}
        self.triggers: dict[int, _Trigger] = {}
        self.num_triggers = 0
        self.num_failures = 0
        self.num_prioritised = 0
        self.num_by_receiver = 0

    def read(self, words: list[str], where: str) -> None:
        """Read one line."""
        if words[0] in self.counts:
            self.counts[words[0]] = self._number(words[1:2], 10**7, where)
        elif pair := _PAIR.fullmatch(words[0]):
            self._read_flow(int(pair[1]), int(pair[2]), words[1:], where)
        elif words[0] == "trigger":
            self._read_trigger(words[1:], where)
        elif words[0] == "failure":
            self.num_failures += 1
        else:
            raise self._error(where, quote(" ".join(words)), "a flow as 0->1, a trigger or a failure")

    def finish(self) -> FlowList:
        """Return the flows; raises TraceError where the file does not hold what its head says."""
        head = f"{self.flows.path}:1"
        num_flows = len(self.flows.source)
        for name, found in (
            ("Connections", num_flows),
            ("Triggers", self.num_triggers),
            ("Failures", self.num_failures),
        ):
            if found != self.counts[name]:
                raise self._error(head, f"{name} {self.counts[name]}, and {found} in the file", "the same number")
        if not num_flows:
            raise self._error(head, "no connection", "one or more")
        for number, trigger in self.triggers.items():
            self._connect(number, trigger)
        self._add_notes()
        return self.flows

    def _read_flow(self, source: int, destination: int, words: list[str], where: str) -> None:
        flow, values = len(self.flows.source), self._pairs(words, where)
        if max(source, destination) >= self.counts["Nodes"]:
            found = f"a flow from {source} to {destination}"
            raise self._error(where, found, f"nodes from 0 to {self.counts['Nodes'] - 1}")
        if source == destination:
            raise self._error(where, f"a flow from {source} to itself", "two different nodes")
        if flow >= MAX_FLOWS:
            raise self._error(where, f"more than {MAX_FLOWS:,} flows", "fewer flows")
        size = self._number([values.get("size", "0")], MAX_SIZE_BYTES, where)
        if not size:
            raise self._error(where, "a flow of size 0, which never ends", "a size in bytes")
        if ("start" in values) == ("trigger" in values):
            raise self._error(
                where, f"a flow with {'both' if 'start' in values else 'neither'}", "a start or a trigger"
            )
        start = _START.fullmatch(values.get("start", "0"))
        if not start or int(start[1]) > MAX_START_PS:
            raise self._error(where, f"start {quote(values['start'])}", f"picoseconds, up to {MAX_START_PS}")
        columns = (self.flows.source, self.flows.destination, self.flows.num_bytes, self.flows.start_ps)
        for column, value in zip(columns, (source, destination, size, int(start[1])), strict=True):
            column.append(value)
        self.num_prioritised += "prio" in values
        self.num_by_receiver += _DONE[1] in values
        if "trigger" in values:
            self._trigger(values["trigger"], where).starts.append(flow)
        for name in _DONE:
            if name in values:
                self._trigger(values[name], where).fired_by.append(flow)

    def _pairs(self, words: list[str], where: str) -> dict[str, str]:
        """Return names and values of a flow's line."""
        known = ("id", "start", "size", "trigger", *_DONE, "prio")
        values = {}
        words = [word for word in words if word != "addon"]
        for name, value in zip(words[::2], [*words[1::2], ""], strict=False):
            if name not in known or not value or name in values:
                raise self._error(
                    where, quote(f"{name} {value}".strip()), f"{', '.join(known)}, each with a value, once"
                )
            values[name] = value
        return values

    def _trigger(self, text: str, where: str) -> _Trigger:
        trigger = self.triggers.setdefault(self._number([text], 10**9, where), _Trigger())
        trigger.where = trigger.where or where
        return trigger

    def _read_trigger(self, words: list[str], where: str) -> None:
        values = dict(zip(words[::2], words[1::2], strict=False)) if words[:1] == ["id"] else {}
        types = [word for word in words if word in TYPES]
        if "id" not in values or len(types) != 1:
            raise self._error(where, quote(" ".join(words)), f"id NUMBER and one of {', '.join(TYPES)}")
        trigger = self._trigger(values["id"], where)
        if trigger.type:
            raise self._error(where, f"trigger {values['id']} a second time", "each once")
        trigger.type = types[0]
        if "count" in words:
            trigger.count = self._number(words[words.index("count") + 1 :][:1], MAX_FLOWS, where)
        self.num_triggers += 1

    def _connect(self, number: int, trigger: _Trigger) -> None:
        """Let the flows that a trigger starts wait for those that fire it."""
        fired_by, starts, where = trigger.fired_by, trigger.starts, trigger.where
        needed = {"oneshot": 1, "barrier": trigger.count}.get(trigger.type)
        if not trigger.type:
            raise self._error(where, f"trigger {number}, which has no line of its own", f"one of {', '.join(TYPES)}")
        if starts and needed is not None and len(fired_by) != needed:
            found = f"trigger {number}, a {trigger.type} that {len(fired_by)} flows fire"
            raise self._error(where, found, f"{needed}")
        if needed is None and len(starts) > len(fired_by):
            found = f"trigger {number}, a multishot that {len(fired_by)} flows fire and {len(starts)} wait for"
            raise self._error(where, found, "as many that fire it as wait for it")
        for place, flow in enumerate(starts):
            waits = self.flows.waits_for.setdefault(flow, [])
            waits += fired_by if needed is not None else [fired_by[place]]

    def _add_notes(self) -> None:
        multishots = sum(len(one.starts) for one in self.triggers.values() if one.type == "multishot")
        rows = (
            (multishots, "flows that a multishot trigger starts, taken as started by the flow of the same place"),
            (self.num_by_receiver, "triggers fired by the receiver, taken as fired when the flow has ended"),
            (self.num_prioritised, "flows with a priority of htsim's queues, which is left out"),
            (self.num_failures, "failures of switches and links, left out"),
        )
        self.flows.notes += [f"{self.flows.path}: {what}: {count}" for count, what in rows if count]

    def _number(self, words: list[str], limit: int, where: str) -> int:
        value = whole_number(words[0], limit) if words else None
        if value is None:
            raise self._error(where, quote(words[0]) if words else "no number", f"a whole number up to {limit}")
        return value

    def _error(self, where: str, found: str, allowed: str) -> TraceError:
        return self.flows.refuse(where, found, allowed)
