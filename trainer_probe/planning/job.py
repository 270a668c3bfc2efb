"""A whole job's step, planned: one rank for each pipeline place, of which all others are instances."""

from foundation.job_traces import JobTrace
from trainer_probe.planning.rank import plan_rank
from trainer_probe.planning.spec import PlanSpec


def plan_job(spec: PlanSpec) -> JobTrace:
    """Return what all ranks of a job ask for in a step; raises InputError."""
    layout = spec.degrees.layout
    firsts = [layout.rank(tp=0, dp=0, pp=place) for place in range(layout.pp)]
    return JobTrace.of_places(layout, [plan_rank(spec, rank) for rank in firsts])
