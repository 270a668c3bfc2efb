"""Groups whose requests take longer than those of other groups like them, though nothing stands still.

Where all members measure the longer time, the group's own way is slow. Where the request itself is as short as
elsewhere and members wait, the one that measures the shortest time comes last.

Left out: a group without three others of its size that make the same requests.
"""

from collections import Counter
from collections.abc import Sequence
from statistics import median

import numpy as np

from fabrictune.foundation.robust import deviation
from fabrictune.observability.hangs.alike import TimedGroup, timed_groups
from fabrictune.observability.hangs.blame import MAX_PROCESSES
from fabrictune.observability.hangs.diagnosis import Cause, Certainty, Diagnosis
from fabrictune.observability.hangs.evidence import UNKNOWN
from fabrictune.observability.hangs.job import Job

MIN_OTHERS = 3
MIN_REQUESTS = 4
MIN_RATIO = 1.5
MIN_DEVIATIONS = 8.0  # of the others' medians
MIN_LAST_SHARE = 0.8  # of the requests to which one member comes last


def diagnose_slow(job: Job) -> Diagnosis | None:
    """Return the diagnosis of the group that is slowest against others like it, None where none is slow."""
    found: list[tuple[float, Diagnosis]] = []
    for alike in timed_groups(job).values():
        whole = [timed for timed in alike if len(timed.times_us) >= MIN_REQUESTS]
        for timed in whole:
            others = [other for other in whole if other.group != timed.group and other.source == timed.source]
            if len(others) >= MIN_OTHERS and (slow := _compare(timed, others, job)) is not None:
                found.append(slow)
    return max(found, key=lambda one: one[0], default=(0.0, None))[1]


def _compare(timed: TimedGroup, others: Sequence[TimedGroup], job: Job) -> tuple[float, Diagnosis] | None:
    """Return how much slower a group is than others, and its diagnosis; None where it is as fast as they are."""
    own, usual = median(timed.own_us), [median(other.own_us) for other in others]
    if _is_far(own, usual):
        return own / median(usual), _of_group(timed, own, median(usual), job)
    longest, usual = median(timed.longest_us), [median(other.longest_us) for other in others]
    last = Counter(min(times, key=lambda process: times[process]) for times in timed.times_us.values())
    process, number = last.most_common(1)[0]
    is_one = number >= MIN_LAST_SHARE * len(timed.times_us) and all(len(times) > 1 for times in timed.times_us.values())
    if process != UNKNOWN and is_one and _is_far(longest, usual):
        return longest / median(usual), _of_last(process, timed, longest - own, job)
    return None


def _is_far(own: float, others: Sequence[float]) -> bool:
    middle = median(others)
    return own > MIN_RATIO * middle and own - middle > MIN_DEVIATIONS * deviation(np.array(others))


def _of_group(timed: TimedGroup, own: float, usual: float, job: Job) -> Diagnosis:
    members = dict.fromkeys(process for times in timed.times_us.values() for process in times if process != UNKNOWN)
    text = f"its last {len(timed.times_us)} take {own:,.0f} us, those of other groups like it {usual:,.0f} us"
    return _diagnosis(Cause.SLOW, tuple(members), timed, f"{text} ({timed.source})", job)


def _of_last(process: int, timed: TimedGroup, late_us: float, job: Job) -> Diagnosis:
    text = f"the others wait {late_us:,.0f} us for it, and the request is as short as elsewhere ({timed.source})"
    return _diagnosis(Cause.LATE, (process,), timed, f"{job.processes[process]}: {text}", job)


def _diagnosis(cause: Cause, processes: tuple[int, ...], timed: TimedGroup, text: str, job: Job) -> Diagnosis:
    number = max(timed.requests)
    return Diagnosis(
        cause=cause,
        certainty=Certainty.LIKELY,
        processes=processes[:MAX_PROCESSES],
        group=timed.group,
        number=number,
        request=str(timed.requests[number]),
        source=timed.source,
        evidence=(text,),
        alternatives=("no request stands still: the job goes on, slower",),
    )
