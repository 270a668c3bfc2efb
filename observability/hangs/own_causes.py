"""What keeps a process from issuing requests, by signs of the process itself."""

from collections.abc import Mapping

from fabrictune.observability.hangs.diagnosis import Cause
from fabrictune.observability.hangs.evidence import SignKind
from fabrictune.observability.hangs.job import Job
from fabrictune.observability.hangs.stacks import Place, place_of

_CAUSE_OF_PLACE = {
    Place.LOADER: Cause.LOADER,
    Place.CHECKPOINT: Cause.CHECKPOINT,
    Place.COLLECTION: Cause.COLLECTION,
    Place.COMPILATION: Cause.COMPILATION,
}
_CAUSE_OF_SIGN = {SignKind.GONE: Cause.GONE, SignKind.STOPPED: Cause.STOPPED, SignKind.LOADING: Cause.LOADER}
_RANKING = (*_CAUSE_OF_SIGN.values(), *_CAUSE_OF_PLACE.values())  # the surest first


def own_cause(process: int, job: Job) -> Cause | None:
    """Return the cause that is a process's own, None where none of its signs says one."""
    for kind, cause in _CAUSE_OF_SIGN.items():
        if job.has(process, kind):
            return cause
    sign = job.has(process, SignKind.STACK)
    place = place_of(sign.frames) if sign else None
    return _CAUSE_OF_PLACE.get(place) if place else None


def surest(causes: Mapping[int, Cause]) -> tuple[Cause, tuple[int, ...]]:
    """Return the surest of some processes' causes, and the processes that have it."""
    first = min(causes.values(), key=_RANKING.index)
    return first, tuple(process for process, cause in causes.items() if cause == first)
