"""Plan against a scenario's collisions, step by step: placement, queue pairs, seeds per tier, source ports.

Each step starts from the decisions before it, is compared with the state before it, and is taken only if more of the
traffic gets through or the slowest flow gains, and neither loses. Placement and queue pairs need no knowledge of
the switches' hash and are measured over many seeds; tier seeds and source ports are for the hash and the seeds that the
scenario has, and are measured under these.
"""

import csv
import io
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.records import Columns, RunRecord, describe_run
from fabrictune.scenario.composition import compose_fabric, compose_traffic, notes_of_scenario
from fabrictune.scenario.copies import copy_text
from fabrictune.scenario.places import placed
from fabrictune.scenario.provenance import describe_scenario
from fabrictune.scenario.schema import Scenario
from fabrictune.scenario.tables import estimate_columns
from fabrictune.studies.planned_jobs import (
    LONE_JOB,
    contiguous_jobs,
    fewest_queue_pairs,
    job_keys,
    job_specs,
    join_placements,
    move_jobs,
    place_jobs,
    placements_of_jobs,
    with_queue_pairs,
)
from fabrictune.topology.ecmp.collisions import analyze_collisions
from fabrictune.topology.ecmp.planning.placements import RankTraffic, plan_placement
from fabrictune.topology.ecmp.planning.source_ports import plan_source_ports
from fabrictune.topology.ecmp.planning.tier_seeds import plan_tier_seeds
from fabrictune.topology.ecmp.seed_study import SeedStudyResult, measure_network, measure_seeds
from fabrictune.topology.fabric import NO_NIC, Fabric
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.network import QueuePairs
from fabrictune.topology.placement import Placement
from fabrictune.topology.routing import build_network

PLANNED = "planned.yaml"
NO_RANK = -1  # of a NIC
QUEUE_PAIRS = (1, 2, 4, 8, 16)
WORTH_MORE_QUEUE_PAIRS = 0.01  # of throughput or of the slowest flow: each queue pair costs memory in the NIC


@dataclass(frozen=True, kw_only=True)
class PlanStep:
    """One attempted change."""

    name: str
    knows_seeds: bool
    outcome: SeedStudyResult
    is_taken: bool


@dataclass
class CollisionPlan:
    """The decisions so far, and the steps that led to them."""

    fabric: Fabric
    spec: Any  # of the traffic
    hash_spec: HashSpec
    queue_pairs: QueuePairs
    steps: list[PlanStep] = field(default_factory=list)
    changes: dict[str, Any] = field(default_factory=dict)  # settings of the scenario that a step changed


def plan_scenario(
    scenario: Scenario, *, num_seeds: int, keeps_placement: bool = False, progress: Progress | None = None
) -> RunRecord:
    """Return the plan: tables `steps`, `source_ports` and, for a job, `placement`; raises InputError.

    With `keeps_placement` the ranks stay where they are, as those of a running job do.
    """
    started = time.perf_counter()
    report = progress or (lambda fraction, note="", /: None)
    fabric = compose_fabric(scenario)
    with placed(scenario, "traffic", scenario.traffic.spec):
        spec = place_jobs(scenario.traffic.spec, fabric)
    (queue_pairs, traffic), _ = compose_traffic(scenario, fabric, spec)
    plan = CollisionPlan(fabric=fabric, spec=spec, hash_spec=scenario.routing, queue_pairs=queue_pairs)
    _measure_start(plan, num_seeds)
    report(0.1)
    if job_specs(spec):
        if not keeps_placement:
            _try_placement(plan, scenario, num_seeds)
        report(0.3)
        _try_queue_pairs(plan, scenario, num_seeds)
    report(0.6)
    _try_known_seeds(plan, scenario.seed)
    report(1.0)
    return RunRecord(
        kind="ecmp plan",
        run={
            **describe_run(seed=scenario.seed, started=started, num_seeds=num_seeds, changes=plan.changes),
            **describe_scenario(scenario, (*notes_of_scenario(scenario), *fabric.notes, *traffic.notes)),
        },
        tables=_tables(plan),
    ).with_checks(fabric.check_files())


def write_plan(record: RunRecord, directory: Path, scenario: Scenario) -> list[Path]:
    """Write the record, and beside its tables what can be applied as it is; returns what was written.

    That is `placement.csv` for a job, `source_ports.csv`, and `planned.yaml`, the scenario with both and with the
    plan's settings. Raises RecordError.
    """
    names = [name for name in ("placement", "source_ports") if name in record.tables]
    files = {f"{name}.csv": _as_csv(record.tables[name]) for name in names}
    if scenario.document is not None:
        files[PLANNED] = _planned_text(scenario, record, directory).encode()
    replace(record, files={**record.files, **files}).write(directory)
    return [directory, *(directory / name for name in files)]


def _planned_text(scenario: Scenario, record: RunRecord, directory: Path) -> str:
    """Return the scenario with the plan's settings and files, as it stands in the plan's folder."""
    keys = job_keys(scenario.traffic.spec)
    changes = {
        **record.run["changes"],
        "name": f"{scenario.name}-planned",
        "source_ports": "source_ports.csv",
        **{f"{key}.placement": "placement.csv" for key in keys},
    }
    replaced = [f"{key}.{name}" for key in keys for name in ("hosts", "first_host", "placement_seed")]
    return copy_text(scenario, changes, directory, drop=[_dotted(path) for path in replaced])


def _dotted(path: str) -> str:
    return path.replace("[", ".").replace("]", "")


def _as_csv(columns: Columns) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
    return text.getvalue().encode()


def _measure_start(plan: CollisionPlan, num_seeds: int) -> None:
    plan.steps.append(
        PlanStep(
            name="as it is", knows_seeds=False, outcome=_over_seeds(plan, plan.queue_pairs, num_seeds), is_taken=True
        )
    )


def _over_seeds(plan: CollisionPlan, queue_pairs: QueuePairs, num_seeds: int) -> SeedStudyResult:
    first = plan.hash_spec.seed
    return measure_seeds(plan.fabric, queue_pairs, plan.hash_spec, range(first, first + num_seeds)).summary()


def _try_placement(plan: CollisionPlan, scenario: Scenario, num_seeds: int) -> None:
    placement = join_placements(placements_of_jobs(plan.spec))
    proposal = plan_placement(
        placement,
        plan.fabric,
        _rank_traffic(plan, placement),
        contiguous=contiguous_jobs(plan.spec, plan.fabric) or placement,
        seed=scenario.seed,
    )
    spec = move_jobs(plan.spec, proposal.placement)
    (queue_pairs, _), _ = compose_traffic(scenario, plan.fabric, spec, has_own_ports=False)
    outcome = _over_seeds(plan, queue_pairs, num_seeds)
    has_swaps = proposal.climbing_bps[-1] < proposal.climbing_bps[1]
    name = f"placement: {proposal.start}{', hosts swapped' if has_swaps else ''}"
    if _take(plan, PlanStep(name=name, knows_seeds=False, outcome=outcome, is_taken=_is_better(plan, outcome))):
        plan.spec, plan.queue_pairs = spec, queue_pairs


def _rank_traffic(plan: CollisionPlan, placement: Placement) -> RankTraffic:
    """Return who sends how much to whom; the ranks of one NIC count as one, since they move together.

    Traffic of NICs without a rank, which moves with no job, is left out.
    """
    report = analyze_collisions(build_network(plan.fabric, plan.queue_pairs, plan.hash_spec))
    rank_C = np.full(plan.fabric.num_nics, NO_RANK)
    rank_C[placement.nic_R] = np.arange(len(placement.nic_R))
    source_Q, destination_Q = rank_C[plan.queue_pairs.source_nic_Q], rank_C[plan.queue_pairs.destination_nic_Q]
    is_jobs_Q = (source_Q != NO_RANK) & (destination_Q != NO_RANK)
    return RankTraffic(
        source_E=source_Q[is_jobs_Q],
        destination_E=destination_Q[is_jobs_Q],
        demand_bps_E=report.demand_bps_Q[is_jobs_Q],
    )


def _try_queue_pairs(plan: CollisionPlan, scenario: Scenario, num_seeds: int) -> None:
    """Try more queue pairs a connection, and take the fewest that are nearly as good as the best."""
    present = fewest_queue_pairs(plan.spec)
    tried = []
    for number in (number for number in QUEUE_PAIRS if number > present):
        spec, keys = with_queue_pairs(plan.spec, number)
        (queue_pairs, _), _ = compose_traffic(scenario, plan.fabric, spec, has_own_ports=False)
        tried.append((number, spec, keys, queue_pairs, _over_seeds(plan, queue_pairs, num_seeds)))
    outcomes = [_current(plan), *(outcome for *_, outcome in tried)]
    enough = np.max([_merit(outcome) for outcome in outcomes], axis=0) - WORTH_MORE_QUEUE_PAIRS
    is_open = bool((_merit(_current(plan)) < enough).any())
    for number, spec, keys, queue_pairs, outcome in tried:
        is_taken = is_open and bool((_merit(outcome) >= enough).all())
        name = f"{number} QPs per connection"
        if _take(plan, PlanStep(name=name, knows_seeds=False, outcome=outcome, is_taken=is_taken)):
            plan.spec, plan.queue_pairs, is_open = spec, queue_pairs, False
            plan.changes |= keys


def _try_known_seeds(plan: CollisionPlan, seed: int) -> None:
    """Search seeds for the tiers, then source ports, for the very hash the scenario has."""
    network = build_network(plan.fabric, plan.queue_pairs, plan.hash_spec)
    start = measure_network(network)
    _take(plan, PlanStep(name="the scenario's own seeds", knows_seeds=True, outcome=start, is_taken=True))
    seeds = plan_tier_seeds(plan.fabric, plan.queue_pairs, plan.hash_spec, seed=seed)
    reseeded = build_network(plan.fabric, plan.queue_pairs, seeds.hash_spec)
    outcome = measure_network(reseeded)
    name = "a seed for each tier"
    if _take(plan, PlanStep(name=name, knows_seeds=True, outcome=outcome, is_taken=_is_better(plan, outcome))):
        plan.hash_spec, network = seeds.hash_spec, reseeded
        plan.changes["routing.tiers"] = [{"tier": role.tier, "seed": role.seed} for role in plan.hash_spec.tiers]
    ports = plan_source_ports(network, plan.hash_spec, seed=seed)
    outcome = measure_network(build_network(plan.fabric, ports.queue_pairs, plan.hash_spec))
    name = f"source ports of {int(ports.is_changed_Q.sum())} queue pairs"
    if _take(plan, PlanStep(name=name, knows_seeds=True, outcome=outcome, is_taken=_is_better(plan, outcome))):
        plan.queue_pairs = ports.queue_pairs


def _take(plan: CollisionPlan, step: PlanStep) -> bool:
    plan.steps.append(step)
    return step.is_taken


def _current(plan: CollisionPlan) -> SeedStudyResult:
    return next(step.outcome for step in reversed(plan.steps) if step.is_taken)


def _is_better(plan: CollisionPlan, outcome: SeedStudyResult) -> bool:
    """Return whether either merit rises and neither falls."""
    gain = _merit(outcome) - _merit(_current(plan))
    return bool((gain >= 0).all() and (gain > 0).any())


def _merit(outcome: SeedStudyResult) -> FloatArray:
    """Return what a step is judged by: all the traffic, and the flow that a collective waits for."""
    return np.array([outcome.throughput_fraction.value, outcome.slowest_fraction.value])


def _tables(plan: CollisionPlan) -> dict[str, Columns]:
    steps = {step.name: step for step in plan.steps}
    tables: dict[str, Columns] = {
        "steps": {
            "step": np.array(list(steps), object),
            "knows_seeds": np.array([int(step.knows_seeds) for step in steps.values()]),
            "is_taken": np.array([int(step.is_taken) for step in steps.values()]),
            **estimate_columns([step.outcome for step in steps.values()]),
        },
        "source_ports": _port_table(plan),
    }
    placements = placements_of_jobs(plan.spec)
    if placements:
        tables["placement"] = _placement_table(plan.fabric, placements)
    return tables


def _port_table(plan: CollisionPlan) -> Columns:
    pairs, label_C = plan.queue_pairs, _nic_labels(plan.fabric)
    return {
        "queue_pair": np.arange(len(pairs)),
        "source": label_C[pairs.source_nic_Q],
        "destination": label_C[pairs.destination_nic_Q],
        "source_qpn": pairs.source_qpn_Q,
        "destination_qpn": pairs.destination_qpn_Q,
        "source_port": pairs.source_port_Q,
    }


def _placement_table(fabric: Fabric, placements: Mapping[str, Placement]) -> Columns:
    """Return a row for each rank of each job; the job is named where the scenario has parts."""
    joint, sizes = join_placements(placements), [len(placement.host_R) for placement in placements.values()]
    jobs = {} if LONE_JOB in placements else {"job": np.repeat(np.array(list(placements), object), sizes)}
    return {
        **jobs,
        "rank": np.concatenate([np.arange(size) for size in sizes]),
        "host": np.array(fabric.node_name_N, object)[joint.host_R],
        "gpu": joint.gpu_R,
        "nic": _nic_labels(fabric)[joint.nic_R],
    }


def _nic_labels(fabric: Fabric) -> NDArray[Any]:
    """Return `host:port` of every NIC's first port, shape (C,)."""
    port_X = np.nonzero(fabric.port_nic_P != NO_NIC)[0][::-1]
    label_C = np.empty(fabric.num_nics, object)
    label_C[fabric.port_nic_P[port_X]] = [fabric.port_label(port) for port in port_X.tolist()]
    return label_C
