"""Packet sequence numbers: requests of each flow in order, after a gap, or repeated.

Every request of a reliable connection carries the number after the last one's. A number beyond the expected one is a
*gap*: packets lost before the capture point, or missed by the capture. A number that is not beyond the highest seen is
a *repeat*: retransmitted, or overtaken on the way. A read request takes as many numbers as its response has packets, so
what follows one may jump.

Numbers have 24 bits and wrap; a distance of less than 2**23 is taken the short way.

Shapes: K requests, sorted by flow and in order of time within it; S segments, one for each flow among them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import BoolArray, IntArray

PSN_BITS = 24
_HALF = 2 ** (PSN_BITS - 1)
_APART = 2**44  # lifts one segment above all positions of the one before it

SEQUENCE_STATE = np.dtype(
    [
        ("is_started", "?"),
        ("psn", "i8"),
        ("behind", "i8"),
        ("after_read", "?"),
    ]  # last number; how far below the highest
)


@dataclass(frozen=True, kw_only=True)
class SequenceVerdict:
    """Verdict on each request."""

    num_missing_K: IntArray  # numbers skipped just before it; 0: no gap
    is_repeat_K: BoolArray
    state_S: NDArray[np.void]  # SEQUENCE_STATE behind the last request of each segment


def classify_requests(
    psn_K: IntArray, is_read_K: BoolArray, first_S: IntArray, state_S: NDArray[np.void]
) -> SequenceVerdict:
    """Judge requests; segment s begins at row `first_S[s]`, after what `state_S[s]` remembers."""
    length_S = np.diff(np.append(first_S, len(psn_K)))
    segment_K = np.repeat(np.arange(len(first_S)), length_S)
    previous_K = np.empty_like(psn_K)
    previous_K[1:] = psn_K[:-1]
    previous_K[first_S] = np.where(state_S["is_started"], state_S["psn"], psn_K[first_S] - 1)
    step_K = (psn_K - previous_K + _HALF) % 2**PSN_BITS - _HALF
    step_K[first_S] -= state_S["behind"]  # positions are counted from the highest number before the segment
    total_K = np.cumsum(step_K)
    before_S = total_K[first_S] - step_K[first_S]
    position_K = total_K - before_S[segment_K]
    lifted_K = np.maximum.accumulate(np.maximum(position_K, 0) + segment_K * _APART)
    highest_K = lifted_K - segment_K * _APART
    highest_before_K = np.empty_like(highest_K)
    highest_before_K[1:] = highest_K[:-1]
    highest_before_K[first_S] = 0
    may_jump_K = np.empty(len(psn_K), bool)
    may_jump_K[1:] = is_read_K[:-1]
    may_jump_K[first_S] = state_S["after_read"]
    last_S = first_S + length_S - 1
    state = np.zeros(len(first_S), SEQUENCE_STATE)
    state["is_started"] = True
    state["psn"] = psn_K[last_S]
    state["behind"] = highest_K[last_S] - position_K[last_S]
    state["after_read"] = is_read_K[last_S]
    return SequenceVerdict(
        num_missing_K=np.where(may_jump_K, 0, np.maximum(position_K - highest_before_K - 1, 0)),
        is_repeat_K=position_K <= highest_before_K,
        state_S=state,
    )
