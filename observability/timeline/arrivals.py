"""Arrivals: which request of a meeting came last, and whether the clocks are good enough to say so.

Shapes: Q requests, M meetings, H hosts.
"""

from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.foundation.traces import UNKNOWN
from fabrictune.observability.meetings import Meetings
from fabrictune.observability.timeline.activity import Requests


@dataclass(frozen=True, kw_only=True)
class Arrivals:
    """The last needed request of each meeting."""

    last_M: IntArray  # UNKNOWN where it is not certain, or not all members are here
    is_certain_M: BoolArray  # as far as clocks go


def last_arrivals(requests: Requests, meetings: Meetings, host_Q: IntArray, error_ns_H: IntArray) -> Arrivals:
    """Return the last arrivals; certain where the lead over other hosts is more than both clocks may be off."""
    needed = np.flatnonzero(meetings.is_needed_Q)
    order = needed[np.lexsort((-needed, requests.issue_ns_Q[needed], meetings.meeting_Q[needed]))]
    last_M = np.full(meetings.num_meetings, UNKNOWN)
    last_M[meetings.meeting_Q[order]] = order
    last_Q = last_M[meetings.meeting_Q]
    is_other_Q = meetings.is_needed_Q & (last_Q != UNKNOWN) & (host_Q != host_Q[last_Q])
    lead_ns_Q = requests.issue_ns_Q[last_Q] - requests.issue_ns_Q
    doubt_ns_Q = error_ns_H[host_Q] + error_ns_H[host_Q[last_Q]]
    is_certain_M = np.ones(meetings.num_meetings, bool)
    is_certain_M[meetings.meeting_Q[is_other_Q & (lead_ns_Q < doubt_ns_Q)]] = False
    return Arrivals(last_M=np.where(is_certain_M & meetings.is_whole_M, last_M, UNKNOWN), is_certain_M=is_certain_M)
