"""Jobs of a scenario that replay a communication trace."""

from fabrictune.foundation.traces import TracedJob
from fabrictune.scenario.composition import Composed
from fabrictune.scenario.mixture import MixSpec
from fabrictune.scenario.traffic import CommTraceSpec

WHOLE = ""  # in place of a part's name


def replayed_jobs(composed: Composed) -> dict[str, TracedJob]:
    """Return the jobs whose requests come from a file, by the name of their part of a mixture, else by no name."""
    spec, traffic, part_N = composed.scenario.traffic.spec, composed.traffic, composed.part_N
    if isinstance(spec, CommTraceSpec):
        return {WHOLE: traffic.jobs[0]}
    if not isinstance(spec, MixSpec) or part_N is None:
        return {}
    replayed = {part.name for part in spec.parts if isinstance(part.traffic.spec, CommTraceSpec)}
    return {name: job for job in traffic.jobs if (name := str(part_N[job.begin])) in replayed}
