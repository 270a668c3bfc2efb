"""Timeline of a job: a process for each host, a thread for each rank with its work, and a track for each of its axes.

In a request lies what it does once the last of those that it needs is there; an arrow leads to it from that one.

Shapes: W pieces of work, Q requests, M meetings, A arrows, N slices.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.texts import Texts
from fabrictune.foundation.traces import UNKNOWN, Operation
from fabrictune.observability.timeline.activity import Activity
from fabrictune.observability.timeline.arrivals import last_arrivals
from fabrictune.observability.timeline.clocks import Clocks
from fabrictune.observability.timeline.lanes import lanes
from fabrictune.observability.timeline.timeline import Arrows, Counters, Fact, Process, Slices, Timeline, Track

LAST, SENT, GOES_ON = "last to arrive", "sent", "all are there"
UNCERTAIN = "collectives whose last arrival the clocks leave open"
NOT_WHOLE = "collectives and messages of which not all members are here"
_WORK = "work"


@dataclass(frozen=True, kw_only=True)
class StepSeries:
    """A number of each step, such as MFU."""

    name: str
    unit: str
    value_of_step: Mapping[int, float]


def job_timeline(
    activity: Activity, clocks: Clocks, *, facts: Mapping[str, Fact], series: Sequence[StepSeries] = ()
) -> Timeline:
    """Return the timeline of a job whose clocks are aligned; facts and series are drawn as they are."""
    requests, meetings = activity.requests, activity.meetings
    tracks = _Tracks(activity, clocks)
    work_N, request_N = tracks.of_work(), tracks.of_requests()
    arrivals = last_arrivals(requests, meetings, clocks.host_R[requests.rank_Q], clocks.error_ns_H)
    last_Q = arrivals.last_M[meetings.meeting_Q]
    num_members_M = np.bincount(meetings.meeting_Q, minlength=meetings.num_meetings)
    is_met_Q = (last_Q != UNKNOWN) & (num_members_M[meetings.meeting_Q] > 1)
    waiting = np.flatnonzero(is_met_Q & meetings.needs_Q & (last_Q != np.arange(len(requests))) & requests.has_end_Q)
    lasts, mark_A = np.unique(last_Q[waiting], return_inverse=True)
    is_message = requests.operation_Q[lasts] == Operation.SEND
    name_N = Texts.of((*activity.work.name_W, *requests.name_Q, LAST, SENT, GOES_ON))
    place_of = {name: name_N.vocabulary.index(name) for name in (LAST, SENT, GOES_ON)}
    marks, goes_on = np.where(is_message, place_of[SENT], place_of[LAST]), np.full(len(waiting), place_of[GOES_ON])
    issue_ns_A, end_ns_A = requests.issue_ns_Q[waiting], requests.end_ns_Q[waiting]
    begin_ns_A = np.minimum(np.maximum(requests.issue_ns_Q[last_Q[waiting]], issue_ns_A), end_ns_A)
    first_mark = len(work_N) + len(requests)
    blank = np.full(len(work_N), UNKNOWN), np.full(len(lasts) + len(waiting), UNKNOWN)
    slices = Slices(
        track_N=np.concatenate([work_N, request_N, request_N[lasts], request_N[waiting]]),
        name_N=Texts(
            vocabulary=name_N.vocabulary,
            place_N=np.concatenate([name_N.place_N[:first_mark], marks, goes_on]).astype(np.int32),
        ),
        start_ns_N=np.concatenate(
            [activity.work.start_ns_W, requests.issue_ns_Q, requests.issue_ns_Q[lasts], begin_ns_A]
        ),
        end_ns_N=np.concatenate([activity.work.end_ns_W, requests.end_ns_Q, requests.issue_ns_Q[lasts], end_ns_A]),
        facts={
            "step": np.concatenate([activity.work.step_W, requests.step_Q, blank[1]]),
            "bytes": np.concatenate([blank[0], requests.bytes_Q, blank[1]]),
            "sequence": np.concatenate([blank[0], requests.sequence_Q, blank[1]]),
            "last rank": np.concatenate(
                [blank[0], np.full(len(requests) + len(lasts), UNKNOWN), requests.rank_Q[last_Q[waiting]]]
            ),
        },
    )
    return Timeline(
        processes=_processes(clocks),
        tracks=(*tracks.listed, *_series_tracks(series)),
        slices=slices,
        arrows=Arrows(from_A=first_mark + mark_A.ravel(), to_A=first_mark + len(lasts) + np.arange(len(waiting))),
        counters=_counters(series, activity, first=len(tracks.listed)),
        facts={
            **facts,
            **_clock_facts(clocks),
            **activity.left_out,
            NOT_WHOLE: int((~meetings.is_whole_M).sum()),
            UNCERTAIN: int((~arrivals.is_certain_M & meetings.is_whole_M).sum()),
        },
    )


class _Tracks:
    """The tracks of the ranks, made as rows ask for them."""

    def __init__(self, activity: Activity, clocks: Clocks) -> None:
        self._activity = activity
        self._host_R = clocks.host_R
        self._thread_of = {rank: place for place, rank in enumerate(activity.ranks.tolist())}
        self.listed = [
            Track(process=int(clocks.host_R[rank]), name=f"rank {rank}", thread=rank) for rank in self._thread_of
        ]

    def of_work(self) -> IntArray:
        """Return the track of each piece of work: its rank's own, or one beside it where work overlaps."""
        work = self._activity.work
        lane_W = lanes(work.rank_W, work.start_ns_W, work.end_ns_W, may_nest=True)
        return self._of(work.rank_W, np.zeros_like(lane_W), lane_W, (_WORK,), first_lane=1)

    def of_requests(self) -> IntArray:
        """Return the track of each request: one of its axis, as many as overlap."""
        requests = self._activity.requests
        axis_Q = requests.axis_Q.place_N.astype(np.int64)
        axes = requests.axis_Q.vocabulary
        key_Q = requests.rank_Q * max(len(axes), 1) + axis_Q
        lane_Q = lanes(key_Q, requests.issue_ns_Q, requests.end_ns_Q, may_nest=False)
        return self._of(requests.rank_Q, axis_Q, lane_Q, axes, first_lane=0)

    def _of(
        self, rank_N: IntArray, kind_N: IntArray, lane_N: IntArray, kinds: Sequence[str], *, first_lane: int
    ) -> IntArray:
        """Return the tracks of rows; lanes before `first_lane` are the ranks' own threads."""
        keys_K3, key_N = np.unique(np.stack([rank_N, kind_N, lane_N], axis=1), axis=0, return_inverse=True)
        track_K = np.empty(len(keys_K3), np.int64)
        for place, (rank, kind, lane) in enumerate(keys_K3.tolist()):
            thread = self._thread_of[rank]
            if lane < first_lane:
                track_K[place] = thread
                continue
            track_K[place] = len(self.listed)
            name = kinds[kind] or _WORK
            self.listed.append(
                Track(process=int(self._host_R[rank]), name=f"{name} {lane + 1}" if lane else name, parent=thread)
            )
        return track_K[key_N.ravel()]


def _processes(clocks: Clocks) -> tuple[Process, ...]:
    """Return a process for each host, with the error of its clock."""
    errors = clocks.error_ns_H.tolist()
    if not any(errors):
        return tuple(Process(name=host) for host in clocks.hosts)
    return tuple(
        Process(name=host, labels=(f"clock within {error_ns:,} ns",))
        for host, error_ns in zip(clocks.hosts, errors, strict=True)
    )


def _clock_facts(clocks: Clocks) -> dict[str, Fact]:
    """Return what is known of the clocks."""
    facts: dict[str, Fact] = {"clock error, at most, ns": int(clocks.error_ns_H.max(initial=0))}
    if clocks.num_corrected or clocks.drift:
        facts["clocks corrected"] = clocks.num_corrected
        facts["clocks drift"] = "yes, corrected step by step" if clocks.drift else "no"
    if clocks.disproved:
        facts["clocks off by more than was known"] = ", ".join(clocks.disproved)
    for host, error_ns, correction_ns in zip(
        clocks.hosts, clocks.error_ns_H.tolist(), clocks.correction_ns_H.tolist(), strict=True
    ):
        if error_ns or correction_ns:
            facts[f"clock of {host}, ns"] = f"error {error_ns}, corrected by {correction_ns}"
    return facts


def _series_tracks(series: Sequence[StepSeries]) -> tuple[Track, ...]:
    return tuple(Track(process=0, name=one.name, is_counter=True, unit=one.unit) for one in series)


def _counters(series: Sequence[StepSeries], activity: Activity, *, first: int) -> Counters:
    """Return the values of each series, from when the first rank begins a step."""
    begin_of: dict[int, int] = {}
    for step, time_ns in (
        (activity.work.step_W, activity.work.start_ns_W),
        (activity.requests.step_Q, activity.requests.issue_ns_Q),
    ):
        steps, place = np.unique(step, return_inverse=True)
        begin_ns = np.full(len(steps), np.iinfo(np.int64).max)
        np.minimum.at(begin_ns, place.ravel(), time_ns)
        for number, begin in zip(steps.tolist(), begin_ns.tolist(), strict=True):
            begin_of[number] = min(begin, begin_of.get(number, begin))
    rows = [
        (first + place, begin_of[step], value)
        for place, one in enumerate(series)
        for step, value in one.value_of_step.items()
        if step in begin_of
    ]
    tracks, times, values = zip(*rows, strict=True) if rows else ((), (), ())
    return Counters(
        track_C=np.array(tracks, np.int64), time_ns_C=np.array(times, np.int64), value_C=np.array(values, np.float64)
    )
