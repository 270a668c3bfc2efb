"""Fold of a scenario to one rail: its traffic, its network, and what is said of the others.

That one rail may stand for all is proven for each scenario: of the job by the arithmetic of ranks, of collectives
inside hosts by a run of each, of the fabric link by link, and of the paths hop by hop.

Shapes: R ranks, T rails, K tensor groups, N requests, P ports.
"""

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from fabrictune.collectives.expansion import ExpansionSpec, expand
from fabrictune.collectives.job_templates import job_of
from fabrictune.collectives.rail_folding import FOLDED, FoldedJob, fold_tensor_groups
from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.job_traces import JobTrace
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Dependencies, Operation, TrafficTrace
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.path_choice import PathChoiceConfig
from fabrictune.netsim.fluid.nvlink import finish_over_nvlink_ps
from fabrictune.scenario.jobs import JobSpec
from fabrictune.scenario.schema import Scenario
from fabrictune.scenario.traffic import requests_of
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.network import Network, QueuePairs
from fabrictune.topology.placement import Placement
from fabrictune.topology.rails import ComparedRails, compare_rails

NOTE = "fold: "  # how its note begins
WHOLE = "run the whole: leave `fold` out"
_ONE_SIDED = (Operation.BROADCAST, Operation.SEND, Operation.RECEIVE)


@dataclass(frozen=True, kw_only=True)
class RailFold:
    """Which rail was simulated, and how far the others are like it."""

    num_rails: int
    rail: int
    are_ways_alike: bool  # the others' paths are the same but for the names of ports
    crowding: tuple[int, ...]  # by rail: the most queue pairs that share a link between switches
    num_inside: int  # collectives inside hosts that became work
    num_overlapping: int  # of them, those that may be under way with another of their host
    is_other_P: BoolArray  # ports of the other rails

    @property
    def note(self) -> str:
        """What a reader of the results must know."""
        simulated = f"1 of {self.num_rails} rails simulated (rail {self.rail})"
        others = f"the others carry the same traffic on links of their own, {self._ways()}"
        return f"{NOTE}{simulated}; {others}; {self._inside()}"

    def as_json(self) -> dict[str, Any]:
        """Return what `run.json` has of it."""
        return {
            "rails": self.num_rails,
            "simulated_rail": self.rail,
            "are_ways_alike": self.are_ways_alike,
            "most_queue_pairs_on_a_link": list(self.crowding),
            "collectives_inside_hosts": self.num_inside,
            "of_them_may_overlap": self.num_overlapping,
        }

    def _ways(self) -> str:
        if self.are_ways_alike:
            return "the same ways; what is drawn at random (marks, losses) is drawn for this one"
        others = sorted({most for rail, most in enumerate(self.crowding) if rail != self.rail})
        there = f"{others[0]} to {others[-1]}" if len(others) > 1 else f"{others[0]}"
        return (
            f"other ways: hashes and draws differ, at most {self.crowding[self.rail]} queue pairs share a link between "
            f"switches here and {there} there, and tensor groups wait for the slowest rail"
        )

    def _inside(self) -> str:
        taken = "collectives inside hosts take their time alone over NVLink, where"
        if not self.num_overlapping:
            return f"{taken} none meets another of its host"
        return f"{taken} {self.num_overlapping / self.num_inside:.1%} of them may meet another, which is not simulated"


@dataclass(frozen=True, kw_only=True)
class FoldedTraffic:
    """The network and the traffic of one rail."""

    network: Network
    traffic: TrafficTrace
    fold: RailFold


def fold_to_a_rail(scenario: Scenario, fabric: Fabric) -> FoldedTraffic:
    """Return the network and the traffic of one rail of the scenario's job; raises InputError where it is not alike."""
    spec, config = scenario.traffic.spec, scenario.wire_config()
    job = _job_of(scenario)
    placement = spec.place_on(fabric)
    rank_TK = _ranks_of_rails(job.layout, placement, fabric)
    folded = fold_tensor_groups(job, _times_inside(job, placement, rank_TK[:, 0], fabric, spec.expansion, config))
    requests = folded.job.written_out()

    def traffic_of(rail: int) -> tuple[QueuePairs, TrafficTrace]:
        return expand(requests, _placement_of(folded.job.layout, placement, rank_TK[rail]), fabric, spec.expansion)

    queue_pairs, traffic = traffic_of(0)
    compared = compare_rails(fabric, queue_pairs, placement.nic_R[rank_TK], scenario.routing)
    fold = _describe(compared, folded, config)
    return FoldedTraffic(
        network=compared.network_T[fold.rail],
        traffic=(traffic_of(fold.rail)[1] if fold.rail else traffic).with_notes(placement.notes),
        fold=fold,
    )


def _job_of(scenario: Scenario) -> JobTrace:
    """Return the job that the scenario's traffic is; raises InputError for other traffic, and for faults."""
    requests = requests_of(scenario.traffic)
    if requests is None:
        _refuse(f"traffic {scenario.traffic.name!r}", "a job's collectives, or its requests from a file")
    if scenario.faults or scenario.source_ports is not None:
        _refuse("faults or ports of single queue pairs", "what holds for every rail")
    spec: JobSpec = scenario.traffic.spec
    job = requests if isinstance(requests, JobTrace) else job_of(requests, spec.layout)
    if job.layout.world_size != spec.layout.world_size:
        found = f"{spec.layout.world_size} ranks ({spec.layout.describe()}), and a job of {job.layout.describe()}"
        raise InputError(Mistake(where="traffic.layout", found=found, allowed=f"{job.layout.world_size} ranks"))
    return job


def _ranks_of_rails(layout: ParallelLayout, placement: Placement, fabric: Fabric) -> IntArray:
    """Return the rank that each tensor group has on each rail; raises InputError where rails meet in a job's host."""
    rank_TK = layout.groups(FOLDED).T
    host_TK, gpu_TK, nic_TK = (column_R[rank_TK] for column_R in (placement.host_R, placement.gpu_R, placement.nic_R))
    if len(rank_TK) == 1:
        _refuse("a tensor-parallel degree of 1", "tensor groups of as many ranks as there are rails")
    if (host_TK != host_TK[0]).any():
        _refuse("a tensor group on several hosts", "each on one host")
    if (gpu_TK != gpu_TK[:, :1]).any():
        _refuse("tensor groups on other GPUs from host to host", "the same GPUs of every host: a host for each group")
    if any(len(np.unique(nic_T)) < len(nic_T) for nic_T in nic_TK.T):
        _refuse("ranks of a tensor group that share a NIC", "a NIC for each")
    return rank_TK


def _placement_of(layout: ParallelLayout, placement: Placement, rank_K: IntArray) -> Placement:
    """Return where the ranks of one rail run."""
    return Placement(
        layout=layout,
        host_R=placement.host_R[rank_K],
        gpu_R=placement.gpu_R[rank_K],
        nic_R=placement.nic_R[rank_K],
    )


def _times_inside(
    job: JobTrace, placement: Placement, rank_T: IntArray, fabric: Fabric, options: ExpansionSpec, config: PacketConfig
) -> IntArray:
    """Return what the collective of each row of a job takes inside its host, 0 for rows along other axes.

    One tensor group runs each kind, one after another, all its members ready together. Raises InputError where they
    are not done together.
    """
    rows = job.templates
    duration_ps_N = np.zeros(len(rows), np.int64)
    inside = np.flatnonzero(job.is_along_N(FOLDED))
    kind_K2, kind_N = np.unique(
        np.stack([rows.operation_N[inside], rows.bytes_N[inside]], axis=1), axis=0, return_inverse=True
    )
    if np.isin(kind_K2[:, 0], _ONE_SIDED).any():
        _refuse("messages from one member of a tensor group to others", "collectives in which all members do the same")
    trace = _one_after_another(kind_K2, len(rank_T))
    _, traffic = expand(trace, _placement_of(ParallelLayout(tp=len(rank_T)), placement, rank_T), fabric, options)
    done_ps_N = np.zeros(len(trace), np.int64)
    np.maximum.at(done_ps_N, traffic.operation_N, finish_over_nvlink_ps(traffic, config.nvlink_rate_bps))
    done_ps_TK = done_ps_N.reshape(len(rank_T), -1)
    if (done_ps_TK != done_ps_TK[0]).any():
        operation, num_bytes = kind_K2[int(np.argmax((done_ps_TK != done_ps_TK[0]).any(axis=0)))].tolist()
        found = f"members that end {Operation(operation).name.lower()} of {num_bytes} B inside a host one by one"
        _refuse(found, "buffers that the ranks of a tensor group divide evenly")
    duration_ps_N[inside] = np.diff(done_ps_TK[0], prepend=0)[kind_N.ravel()]
    return duration_ps_N


def _one_after_another(kind_K2: IntArray, num_ranks: int) -> CommTrace:
    """Return a trace in which a group of ranks asks for each kind of collective, each after the one before."""
    num_kinds = len(kind_K2)
    num_rows = num_ranks * num_kinds
    waits = [[row - 1] if row % num_kinds else [] for row in range(num_rows)]
    zeros = np.zeros(num_rows, np.int64)
    return CommTrace(
        groups=(tuple(range(num_ranks)),),
        rank_N=np.repeat(np.arange(num_ranks), num_kinds),
        operation_N=np.tile(kind_K2[:, 0], num_ranks),
        group_N=zeros,
        peer_N=zeros + UNKNOWN,
        bytes_N=np.tile(kind_K2[:, 1], num_ranks),
        compute_before_ps_N=zeros,
        step_N=zeros,
        axis_N=(FOLDED,) * num_rows,
        policy_N=("none",) * num_rows,
        tag_N=("",) * num_rows,
        dependencies=Dependencies.from_lists(waits),
    )


def _describe(compared: ComparedRails, folded: FoldedJob, config: PacketConfig) -> RailFold:
    """Return which rail is simulated: the first where all are alike, else the one whose links are shared most."""
    are_ways_alike = compared.are_paths_alike and config.path_choice.mode == PathChoiceConfig().mode
    rail = 0 if are_ways_alike else compared.most_crowded
    return RailFold(
        num_rails=len(compared.network_T),
        rail=rail,
        are_ways_alike=are_ways_alike,
        crowding=tuple(compared.crowding_T.tolist()),
        num_inside=folded.num_inside,
        num_overlapping=folded.num_overlapping,
        is_other_P=compared.is_other_TP[rail],
    )


def _refuse(found: str, allowed: str) -> NoReturn:
    raise InputError(Mistake(where="fold", found=f"rails, with {found}", allowed=allowed, next_step=WHOLE))
