"""Clocks of a job's hosts, moved onto one: corrected where requests bound them, refused where too little does.

A host's ranks share its clock. Its error is bounded by how clocks were compared at the start of the job, and by the
requests themselves (`clock_bounds.py`): for the whole time, or for each step alone where no correction fits all steps,
as of a clock that drifts. The correction is the middle of its bounds, and its error what the bounds of a step leave
around it. Where the requests contradict what clocks were said to be off by, that was wrong, and is left out.

Left out: drift within a step; all-to-all exchanges, in which a rank may need nothing of another.

Shapes: Q requests, W pieces of work, R ranks, H hosts, S steps, K clocks, one for each step and host.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.traces import UNKNOWN, Operation
from fabrictune.foundation.units import PS_PER_NS, format_duration
from fabrictune.observability.timeline.activity import Activity
from fabrictune.observability.timeline.clock_bounds import GRAIN_NS, UNBOUNDED, ClockBounds, Constraints, bound_clocks


@dataclass(frozen=True, kw_only=True)
class Clocks:
    """The clocks of a job's hosts."""

    hosts: tuple[str, ...]  # the first is the reference
    host_R: IntArray
    correction_ns_H: IntArray  # added to a host's times, in the middle of the steps
    error_ns_H: IntArray  # bound on what is left, in the worst step
    drift: bool = False  # whether no correction fits all steps
    disproved: tuple[str, ...] = ()  # hosts whose clocks were off by more than was said

    @property
    def num_corrected(self) -> int:
        """Number of hosts whose times were moved."""
        return int((self.correction_ns_H != 0).sum())


def align(activity: Activity, *, precision_ns: int | None = None, where: str) -> tuple[Activity, Clocks]:
    """Return the activity on one clock, and what is known of the clocks; raises InputError where that is too little.

    Without a precision no clock may be off by more than the shortest transfer between hosts takes. `where` is the
    source that a mistake names.
    """
    hosts, host_R = _hosts(activity)
    steps = np.unique(np.concatenate([activity.requests.step_Q, activity.work.step_W]))
    places = _Places(steps=steps, host_R=host_R, num_hosts=len(hosts))
    error_ns_H = _given_errors(activity, host_R, len(hosts))
    by_step, whole = _bounds(activity, places, error_ns_H), _bounds(activity, places.at_once, error_ns_H)
    limit_ns_K = np.tile(error_ns_H, len(steps))
    if by_step.is_contradictory_K.any():
        unknown_H = np.full_like(error_ns_H, UNBOUNDED)
        by_step, whole = _bounds(activity, places, unknown_H), _bounds(activity, places.at_once, unknown_H)
    if by_step.is_contradictory_K.any():
        _refuse_contradiction(where, int(steps[np.argmax(by_step.is_contradictory_K) // len(hosts)]))
    drift = bool(whole.is_contradictory_K.any())
    middle_ns_SH = (by_step.middle_ns_K if drift else np.tile(whole.middle_ns_K, len(steps))).reshape(len(steps), -1)
    errors_ns_SH = _errors(by_step, middle_ns_SH.ravel()).reshape(len(steps), -1)
    errors_ns_SH[~places.are_used(activity)] = 0
    aligned = _moved(activity, places, middle_ns_SH)
    _check_errors(aligned, hosts, places, errors_ns_SH, precision_ns, where)
    correction_ns_H = middle_ns_SH[len(steps) // 2]
    is_wrong_K = (by_step.low_ns_K > limit_ns_K) | (by_step.high_ns_K < -limit_ns_K)
    return aligned, Clocks(
        hosts=hosts,
        host_R=host_R,
        correction_ns_H=correction_ns_H,
        error_ns_H=errors_ns_SH.max(axis=0),
        drift=drift,
        disproved=tuple(hosts[host] for host in np.flatnonzero(is_wrong_K.reshape(len(steps), -1).any(axis=0))),
    )


@dataclass(frozen=True, kw_only=True)
class _Places:
    """Which clock a row is timed with: that of its host in its step."""

    steps: IntArray
    host_R: IntArray
    num_hosts: int

    @property
    def at_once(self) -> "_Places":
        """The same with one clock of a host for all steps."""
        return replace(self, steps=self.steps[:1])

    @property
    def reference_K(self) -> IntArray:
        """The first host's clock of each step."""
        return np.repeat(np.arange(len(self.steps)) * self.num_hosts, self.num_hosts)

    def of(self, rank: IntArray, step: IntArray) -> IntArray:
        """Return the clocks of rows."""
        place = np.searchsorted(self.steps, step, side="right") - 1
        return np.asarray(np.maximum(place, 0) * self.num_hosts + self.host_R[rank], np.int64)

    def are_used(self, activity: Activity) -> NDArray[np.bool_]:
        """Return of which clocks anything is shown, by step and host."""
        used_SH = np.zeros((len(self.steps), self.num_hosts), bool)
        for rank, step in (
            (activity.requests.rank_Q, activity.requests.step_Q),
            (activity.work.rank_W, activity.work.step_W),
        ):
            used_SH.flat[self.of(rank, step)] = True
        return used_SH


def _hosts(activity: Activity) -> tuple[tuple[str, ...], IntArray]:
    """Return the hosts by their first ranks, and the host of each rank; of ranks that did nothing the first."""
    places: dict[str, int] = {}
    host_R = np.zeros(len(activity.host_R), np.int64)
    for rank in activity.ranks.tolist():
        host_R[rank] = places.setdefault(activity.host_R[rank], len(places))
    return tuple(places), host_R


def _given_errors(activity: Activity, host_R: IntArray, num_hosts: int) -> IntArray:
    """Return how far each host's clock is off at most, by how clocks were compared."""
    error_ns_R = np.where(activity.clock_error_ns_R == UNKNOWN, UNBOUNDED, activity.clock_error_ns_R)
    error_ns_H = np.zeros(num_hosts, np.int64)
    np.maximum.at(error_ns_H, host_R[activity.ranks], error_ns_R[activity.ranks])
    error_ns_H[0] = 0
    return error_ns_H


def _bounds(activity: Activity, places: _Places, error_ns_H: IntArray) -> ClockBounds:
    """Return the bounds of the clocks."""
    requests, meetings = activity.requests, activity.meetings
    origin_ns = int(requests.issue_ns_Q.min(initial=0))
    is_exchange_Q = requests.operation_Q == Operation.ALL_TO_ALL
    constraints = Constraints(
        clock_Q=places.of(requests.rank_Q, requests.step_Q),
        meeting_Q=meetings.meeting_Q,
        is_needed_Q=meetings.is_needed_Q & ~is_exchange_Q,
        needs_Q=meetings.needs_Q & ~is_exchange_Q & requests.has_end_Q,
        issue_ns_Q=requests.issue_ns_Q - origin_ns,
        end_ns_Q=requests.end_ns_Q - origin_ns,
        reference_K=places.reference_K,
        num_meetings=meetings.num_meetings,
    )
    return bound_clocks(constraints, np.tile(error_ns_H, len(places.steps)))


def _errors(bounds: ClockBounds, correction_ns_K: IntArray) -> IntArray:
    """Return how far each clock is off at most after its correction."""
    error_ns_K = np.maximum(bounds.high_ns_K - correction_ns_K, correction_ns_K - bounds.low_ns_K)
    return np.where(bounds.is_bounded_K, error_ns_K, UNBOUNDED)


def _moved(activity: Activity, places: _Places, correction_ns_SH: IntArray) -> Activity:
    """Return the activity with the corrections added."""
    requests, work = activity.requests, activity.work
    of_request = correction_ns_SH.ravel()[places.of(requests.rank_Q, requests.step_Q)]
    of_work = correction_ns_SH.ravel()[places.of(work.rank_W, work.step_W)]
    return replace(
        activity,
        requests=replace(
            requests, issue_ns_Q=requests.issue_ns_Q + of_request, end_ns_Q=requests.end_ns_Q + of_request
        ),
        work=replace(work, start_ns_W=work.start_ns_W + of_work, end_ns_W=work.end_ns_W + of_work),
    )


def _check_errors(
    activity: Activity,
    hosts: Sequence[str],
    places: _Places,
    error_ns_SH: IntArray,
    precision_ns: int | None,
    where: str,
) -> None:
    """Raise InputError for the clock that is off by the most beyond what is shown."""
    shortest_ns_S = _shortest_transfers(activity, places)
    limit_ns_S = shortest_ns_S + GRAIN_NS if precision_ns is None else np.full(len(places.steps), precision_ns)
    excess_ns_SH = error_ns_SH - limit_ns_S[:, None]
    if (excess_ns_SH <= 0).all():
        return
    place, host = divmod(int(np.argmax(excess_ns_SH)), len(hosts))
    error_ns, step = int(error_ns_SH[place, host]), int(places.steps[place])
    if error_ns == UNBOUNDED:
        raise InputError(
            Mistake(
                where=f"{where}: step {step}",
                found=f"nothing says what the clock of {hosts[host]} is off that of {hosts[0]}",
                allowed="hosts whose clocks were compared, or whose ranks exchange data in both directions",
                next_step="show the ranks of one host (--ranks), or other steps (--steps)",
            )
        )
    asked = "the precision asked for is" if precision_ns is not None else "the shortest transfer between hosts takes"
    limit_ns = precision_ns if precision_ns is not None else int(shortest_ns_S[place])
    worst_ns = int(error_ns_SH.max())
    raise InputError(
        Mistake(
            where=f"{where}: step {step}",
            found=f"the clock of {hosts[host]} is known to within {_time(error_ns)} of that of {hosts[0]}, "
            f"and {asked} {_time(limit_ns)}",
            allowed="clocks that are known better than what is shown",
            next_step=f"--precision {-(-worst_ns // 1000)}us shows it with that error; --ranks, the ranks of one host",
        )
    )


def _shortest_transfers(activity: Activity, places: _Places) -> IntArray:
    """Return, of each step, the shortest time from the last issue of a meeting to an end on another host."""
    requests, meetings = activity.requests, activity.meetings
    host_Q = places.host_R[requests.rank_Q]
    shortest_ns_S = np.full(len(places.steps), UNBOUNDED)
    needed = np.flatnonzero(meetings.is_needed_Q)
    order = needed[np.lexsort((requests.issue_ns_Q[needed], meetings.meeting_Q[needed]))]
    last_M = np.full(meetings.num_meetings, UNKNOWN)
    last_M[meetings.meeting_Q[order]] = order
    last_Q = last_M[meetings.meeting_Q]
    is_far_Q = meetings.needs_Q & requests.has_end_Q & (last_Q != UNKNOWN) & (host_Q != host_Q[last_Q])
    rows = np.flatnonzero(is_far_Q)
    step_r = places.of(requests.rank_Q[rows], requests.step_Q[rows]) // places.num_hosts
    np.minimum.at(shortest_ns_S, step_r, requests.end_ns_Q[rows] - requests.issue_ns_Q[last_Q[rows]])
    return np.asarray(np.maximum(shortest_ns_S, 0), np.int64)


def _refuse_contradiction(where: str, step: int) -> NoReturn:
    raise InputError(
        Mistake(
            where=f"{where}: step {step}",
            found="requests that end before others that they need are issued, whatever the clocks are off",
            allowed="spans of one run, by clocks that do not drift within a step",
            next_step="show other steps (--steps), or the ranks of one host (--ranks)",
        )
    )


def _time(time_ns: int) -> str:
    return format_duration(time_ns * PS_PER_NS)
