"""Lines of a file of spans: a header, then a span a line, as JSON.

    {"format": "fabrictune spans", "version": 1, "rank": 3, "layout": {...}, "host": "node7", "pid": 812,
     "clock": {"offset_ns": 0, "error_ns": 0}, "segment": 0, "dropped": 0}
    [1,12,5000,800,0,2]                                        FORWARD of step 12: start, duration, micro-batch, chunk
    [0,12,4000,9000]                                           STEP: start, duration
    [4,12,6000,100,50,2,9,40,-1,4096,0,2,"stage0.gather"]      REQUEST: issue, wait's begin after it, wait's duration,
                                                               operation, group, sequence, peer, bytes, micro-batch,
                                                               chunk, tag; -1 for a wait that has not ended

Times are those of `Spans`. `offset_ns` is what was taken off the rank's own clock to move it onto rank 0's. Groups are
those of the layout (`ParallelLayout.axis_groups`), and a rank's host is the header's.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple, Self, cast

from fabrictune.foundation.layout import ParallelLayout, RankAxis
from fabrictune.foundation.spans import SpanKind
from fabrictune.foundation.traces import UNKNOWN, Operation

FORMAT: Final = "fabrictune spans"
VERSION: Final = 1
MAX_LINE_BYTES = 1024
MAX_TAG_CHARACTERS = 100
MAX_RANKS = 2**20
_MAX_TIME_NS = 2**62
_REQUEST: Final = int(SpanKind.REQUEST)
_LAST_KIND, _LAST_OPERATION = int(max(SpanKind)), int(max(Operation))
_PASSES = (SpanKind.FORWARD, SpanKind.BACKWARD, SpanKind.WEIGHT_GRADIENT)
_DEGREES = ("tp", "cp", "dp", "pp", "ep")


@dataclass(frozen=True, kw_only=True)
class SpanHeader:
    """The first line of a file: whose spans these are, and by which clock."""

    rank: int
    layout: ParallelLayout
    host: str
    pid: int
    clock_offset_ns: int  # of this rank's clock ahead of rank 0's, taken off all times
    clock_error_ns: int  # bound on what is left
    segment: int = 0  # files of this part that came before
    num_dropped: int = 0  # spans of these, and of steps that were thinned out
    stride: int = 1  # the file has only steps whose number it divides

    def line(self) -> bytes:
        """Return the header as a line."""
        content = {
            "format": FORMAT,
            "version": VERSION,
            "rank": self.rank,
            "layout": asdict(self.layout),
            "host": self.host,
            "pid": self.pid,
            "clock": {"offset_ns": self.clock_offset_ns, "error_ns": self.clock_error_ns},
            "segment": self.segment,
            "dropped": self.num_dropped,
            "stride": self.stride,
        }
        return json.dumps(content, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def parse(cls, line: bytes) -> Self:
        """Return the header of a line; raises ValueError, InputError for degrees that no layout has."""
        content = _loads(line)
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError("not a file of spans")
        if content.get("version") != VERSION:
            raise ValueError(f"spans of version {content.get('version')!r:.20}, where {VERSION} is read")
        clock, host = content.get("clock"), content.get("host")
        if not isinstance(clock, dict) or not isinstance(host, str):
            raise ValueError("a header without clock or host")
        layout = _layout(content.get("layout"))
        rank = _whole(content, "rank", layout.world_size)
        return cls(
            rank=rank,
            layout=layout,
            host=host,
            pid=_whole(content, "pid"),
            clock_offset_ns=_whole(clock, "offset_ns", least=-_MAX_TIME_NS),
            clock_error_ns=_whole(clock, "error_ns"),
            segment=_whole(content, "segment"),
            num_dropped=_whole(content, "dropped"),
            stride=_whole(content, "stride", least=1),
        )


class Span(NamedTuple):
    """A span of one rank, as `Spans` has it."""

    kind: int
    step: int
    issue_ns: int
    start_ns: int
    end_ns: int
    operation: int = UNKNOWN
    group: int = UNKNOWN
    sequence: int = UNKNOWN
    peer: int = UNKNOWN
    num_bytes: int = UNKNOWN
    micro_batch: int = UNKNOWN
    chunk: int = UNKNOWN
    tag: str = ""


def work_line(kind: int, step: int, start_ns: int, end_ns: int) -> str:
    """Return the line of work that is no pass and no request."""
    return f"[{kind:d},{step},{start_ns},{end_ns - start_ns}]\n"


def pass_line(kind: int, step: int, start_ns: int, end_ns: int, micro_batch: int, chunk: int) -> str:
    """Return the line of a pass."""
    return f"[{kind:d},{step},{start_ns},{end_ns - start_ns},{micro_batch},{chunk}]\n"


def request_line(span: Span) -> str:
    """Return the line of a request."""
    middle = f"{span.operation:d},{span.group},{span.sequence},{span.peer},{span.num_bytes}"
    end = tag_text(span.micro_batch, span.chunk, span.tag)
    return request_text(span.step, span.issue_ns, span.start_ns, span.end_ns, f"{middle},{end}")


def request_text(step: int, issue_ns: int, start_ns: int, end_ns: int, rest: str) -> str:
    """Return the line of a request whose fields behind the times are text already, from `tag_text` at its end."""
    after = start_ns - issue_ns if start_ns != UNKNOWN else UNKNOWN
    duration = end_ns - start_ns if end_ns != UNKNOWN else UNKNOWN
    return f"[{_REQUEST},{step},{issue_ns},{after},{duration},{rest}"


def tag_text(micro_batch: int, chunk: int, tag: str) -> str:
    """Return the end of a request's line."""
    return f"{micro_batch},{chunk},{json.dumps(tag[:MAX_TAG_CHARACTERS])}]\n"


def parse_span(values: object, num_groups: int) -> Span:
    """Return the span of a line's JSON; raises ValueError for what is none."""
    if not isinstance(values, list) or len(values) < 4:
        raise ValueError("not a span")
    numbers = values[:12]
    if set(map(type, numbers)) != {int} or max(numbers) >= _MAX_TIME_NS or min(numbers) <= -_MAX_TIME_NS:
        raise ValueError("a span with what is no number, or one that no span has")
    kind, step, begin, *rest = numbers
    if kind == _REQUEST:
        if len(values) != 13 or not isinstance(values[12], str) or len(values[12]) > MAX_TAG_CHARACTERS:
            raise ValueError("a request with other fields")
        after, duration, operation, group, sequence, peer, num_bytes, micro_batch, chunk = rest
        if not 0 <= group < num_groups or not 0 <= operation <= _LAST_OPERATION:
            raise ValueError("a request of no group or operation of the job")
        start = UNKNOWN if after < 0 else begin + after
        end = UNKNOWN if after < 0 or duration < 0 else start + duration
        return Span(
            kind, step, begin, start, end, operation, group, sequence, peer, num_bytes, micro_batch, chunk, values[12]
        )
    if not 0 <= kind <= _LAST_KIND or rest[0] < 0:
        raise ValueError("a span of no kind, or that ends before it starts")
    if kind in _PASSES:
        if len(values) != 6:
            raise ValueError("a pass with other fields")
        return Span(kind, step, begin, begin, begin + rest[0], micro_batch=rest[1], chunk=rest[2])
    if len(values) != 4:
        raise ValueError("a span with other fields")
    return Span(kind, step, begin, begin, begin + rest[0])


def _layout(content: object) -> ParallelLayout:
    if not isinstance(content, dict):
        raise ValueError("a header without a layout")
    degrees = {axis: _whole(content, axis, MAX_RANKS + 1, least=1) for axis in _DEGREES}
    order = content.get("order")
    if not isinstance(order, list) or not all(isinstance(axis, str) for axis in order):
        raise ValueError("a layout without an order")
    layout = ParallelLayout(**degrees, order=cast("tuple[RankAxis, ...]", tuple(order)))
    if layout.world_size > MAX_RANKS:
        raise ValueError(f"{layout.world_size} ranks, where at most {MAX_RANKS} are read")
    return layout


def _whole(content: Mapping[str, Any], name: str, limit: int = _MAX_TIME_NS, *, least: int = 0) -> int:
    value = content.get(name)
    if type(value) is not int or not least <= value < limit:
        raise ValueError(f"no {name} that a rank has")
    return value


def _loads(line: bytes) -> Any:
    """Return the JSON of a line; raises ValueError for what is none."""
    try:
        return json.loads(line)
    except RecursionError:
        raise ValueError("nested too deep") from None
