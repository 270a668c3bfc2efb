"""The jobs of a scenario as a planner moves them: all their ranks as one placement, and back.

A scenario has one job, or those of a mixture; parts of a mixture that are collectives of one job move together. The
ranks of all jobs in a row are the ranks of the joint placement.

Shapes: R ranks of all jobs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fabrictune.foundation.layout import ParallelLayout
from fabrictune.scenario.jobs import JobSpec
from fabrictune.scenario.mixture import MixSpec, place_parts, with_placement
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.host_choice import hosts_with_nics
from fabrictune.topology.placement import Placement, place

QUEUE_PAIRS_KEY = "expansion.qps_per_connection"
LONE_JOB = ""  # name of the job of a scenario without parts


def place_jobs(spec: Any, fabric: Fabric) -> Any:
    """Return the traffic with the ranks of all its jobs placed; raises InputError."""
    if isinstance(spec, MixSpec):
        return place_parts(spec, fabric)
    return replace(spec, planned=spec.place_on(fabric)) if isinstance(spec, JobSpec) else spec


def job_specs(spec: Any) -> dict[str, JobSpec]:
    """Return each job by its name, of several collectives of a job the one with the most ranks."""
    if isinstance(spec, JobSpec):
        return {LONE_JOB: spec}
    jobs: dict[str, JobSpec] = {}
    for part in spec.parts if isinstance(spec, MixSpec) else ():
        own = part.traffic.spec
        if isinstance(own, JobSpec):
            known = jobs.get(part.of_job)
            if known is None or own.layout.world_size > known.layout.world_size:
                jobs[part.of_job] = own
    return jobs


def job_keys(spec: Any) -> list[str]:
    """Return the key of the traffic of each job, as `traffic.parts[1].traffic`."""
    if isinstance(spec, JobSpec):
        return ["traffic"]
    parts = enumerate(spec.parts) if isinstance(spec, MixSpec) else ()
    return [f"traffic.parts[{row}].traffic" for row, part in parts if isinstance(part.traffic.spec, JobSpec)]


def placements_of_jobs(spec: Any) -> dict[str, Placement]:
    """Return where the ranks of each job are, of traffic that `place_jobs` returned."""
    return {name: job.planned for name, job in job_specs(spec).items() if job.planned is not None}


def join_placements(placements: Mapping[str, Placement]) -> Placement:
    """Return the places of all jobs' ranks, one job after another."""
    return Placement(
        layout=ParallelLayout(dp=sum(len(placement.host_R) for placement in placements.values())),
        host_R=np.concatenate([placement.host_R for placement in placements.values()]),
        gpu_R=np.concatenate([placement.gpu_R for placement in placements.values()]),
        nic_R=np.concatenate([placement.nic_R for placement in placements.values()]),
    )


def move_jobs(spec: Any, joint: Placement) -> Any:
    """Return the traffic with its jobs' ranks at the places of a joint placement."""
    first, places = 0, {}
    for name, placement in placements_of_jobs(spec).items():
        rows = slice(first, first + len(placement.host_R))
        places[name] = (joint.host_R[rows], joint.gpu_R[rows], joint.nic_R[rows])
        first = rows.stop

    def moved(job: JobSpec, name: str) -> Placement:
        host_R, gpu_R, nic_R = (column[: job.layout.world_size] for column in places[name])
        return Placement(layout=job.layout, host_R=host_R, gpu_R=gpu_R, nic_R=nic_R)

    if isinstance(spec, JobSpec):
        return replace(spec, planned=moved(spec, LONE_JOB))
    return MixSpec(
        parts=tuple(
            with_placement(part, moved(part.traffic.spec, part.of_job))
            if isinstance(part.traffic.spec, JobSpec)
            else part
            for part in spec.parts
        )
    )


def contiguous_jobs(spec: Any, fabric: Fabric) -> Placement | None:
    """Return the joint placement of each job on the first hosts that those before it leave; None where one has none."""
    jobs, left, placed = job_specs(spec), hosts_with_nics(fabric), {}
    for name, job in jobs.items():
        gpus_per_host = job.num_gpus_of_host(fabric)
        if job.layout.world_size > gpus_per_host * len(left):
            return None
        placed[name] = place(job.layout, fabric, "contiguous", gpus_per_host=gpus_per_host, hosts=left)
        taken = set(placed[name].host_R.tolist())
        left = [host for host in left if host not in taken]
    return join_placements(placed)


def with_queue_pairs(spec: Any, number: int) -> tuple[Any, dict[str, int]]:
    """Return the traffic with at least so many queue pairs a connection in its jobs, and the keys that say so."""
    if isinstance(spec, JobSpec):
        return _widened(spec, number), {f"traffic.{QUEUE_PAIRS_KEY}": number}
    narrow = [_queue_pairs(job) < number for job in _jobs(spec)]
    keys = {
        f"{key}.{QUEUE_PAIRS_KEY}": number for key, is_narrow in zip(job_keys(spec), narrow, strict=True) if is_narrow
    }
    parts = tuple(
        replace(part, traffic=replace(part.traffic, spec=_widened(part.traffic.spec, number)))
        if isinstance(part.traffic.spec, JobSpec)
        else part
        for part in spec.parts
    )
    return MixSpec(parts=parts), keys


def fewest_queue_pairs(spec: Any) -> int:
    """Return the least number of queue pairs a connection of any job."""
    return min(map(_queue_pairs, _jobs(spec)))


def _jobs(spec: Any) -> Iterator[JobSpec]:
    if isinstance(spec, JobSpec):
        yield spec
    elif isinstance(spec, MixSpec):
        yield from (part.traffic.spec for part in spec.parts if isinstance(part.traffic.spec, JobSpec))


def _queue_pairs(job: JobSpec) -> int:
    return job.expansion.qps_per_connection


def _widened(job: JobSpec, number: int) -> JobSpec:
    qps = max(number, _queue_pairs(job))
    return replace(job, expansion=replace(job.expansion, qps_per_connection=qps))
