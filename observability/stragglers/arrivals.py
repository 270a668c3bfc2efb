"""Who arrives last in each group's requests, how often, and whether it is the same one.

A member is late where it issues a request later than the group's median member by more than clocks are uncertain and
than steps vary. Of a group whose requests have someone late: the *same* rank in more than half of them; *passing*, if
they lie within a tenth of the steps; else *rotating*.

Shapes: G groups, J joined requests, M members.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fabrictune.foundation.spans import Spans
from fabrictune.foundation.traces import UNKNOWN, Operation
from fabrictune.observability.stragglers.requests import JoinedRequests

Pattern = Literal["none", "same", "rotating", "passing"]
MIN_LATE_SHARE = 0.1  # of a group's requests that have someone late
MIN_LATE = 3  # requests, of one that passes
SAME_SHARE = 0.5
PASSING_STEPS = 0.1  # of all steps
LATE_FRACTION = 0.02  # of a step


@dataclass(frozen=True, kw_only=True)
class Arrivals:
    """The order in which a group's members come to its requests."""

    group: int
    axis: str
    num_requests: int
    num_late: int  # of these, with someone late
    last_rank: int  # most often among those late; UNKNOWN for none
    last_share: float  # of the requests with someone late
    late_ns: float  # median lateness of that rank in them
    pattern: Pattern


def arrivals_of(spans: Spans, joined: JoinedRequests, *, step_ns: float) -> tuple[Arrivals, ...]:
    """Return the arrivals of every group of three and more members that has requests together."""
    is_joint_J = (joined.size_J > 2) & (joined.operation_J != Operation.SEND)
    error_ns = 2 * max(0, int(spans.clock_error_ns_R.max()))
    least_ns = max(LATE_FRACTION * step_ns, error_ns)
    num_steps = len(np.unique(joined.step_J))
    result = []
    for group in np.unique(joined.group_J[is_joint_J]).tolist():
        requests = np.flatnonzero(is_joint_J & (joined.group_J == group))
        result.append(_arrivals(joined, requests, group, least_ns, num_steps))
    return tuple(result)


def _arrivals(
    joined: JoinedRequests,
    requests: "np.ndarray[tuple[int], np.dtype[np.int64]]",
    group: int,
    least_ns: float,
    steps: int,
) -> Arrivals:
    size = int(joined.size_J[requests[0]])
    rows = joined.first_J[requests][:, np.newaxis] + np.arange(size)
    issue = joined.issue_ns_M[rows]
    late_ns = issue.max(axis=1) - np.median(issue, axis=1)
    last = joined.rank_M[rows][np.arange(len(requests)), issue.argmax(axis=1)]
    is_late = late_ns > least_ns
    counts = Counter(last[is_late].tolist())
    rank, count = counts.most_common(1)[0] if counts else (UNKNOWN, 0)
    num_late = int(is_late.sum())
    pattern: Pattern = "none"
    if num_late > MIN_LATE_SHARE * len(requests):
        late_steps = len(np.unique(joined.step_J[requests[is_late]]))
        is_passing = late_steps <= max(1, PASSING_STEPS * steps) and steps > 1
        pattern = "passing" if is_passing else "same" if count > SAME_SHARE * num_late else "rotating"
    elif num_late >= MIN_LATE and steps > 1:
        pattern = "passing"
    return Arrivals(
        group=group,
        axis=joined.axis_J[requests[0]],
        num_requests=len(requests),
        num_late=num_late,
        last_rank=rank,
        last_share=count / num_late if num_late else 0.0,
        late_ns=float(np.median(late_ns[is_late & (last == rank)])) if count else 0.0,
        pattern=pattern,
    )
