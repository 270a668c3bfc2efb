"""Tables of a replayed communication trace, from the times of its transfers in a run."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fabrictune.collectives.rank_timelines import RankTimelines, rank_timelines
from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.records import Columns, RunRecord
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.foundation.traces import UNKNOWN, TracedJob
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.path_choice import PathChoiceConfig
from fabrictune.scenario.compilation import CompiledScenario
from fabrictune.scenario.replays import replayed_jobs
from fabrictune.studies.replay.critical_path import BusiestPorts, CriticalPath
from fabrictune.studies.replay.transfer_graph import MAX_TRANSFERS, Durations, TransferGraph

Rows = list[dict[str, Any]]


def replay_tables(compiled: CompiledScenario, record: RunRecord) -> dict[str, Columns]:
    """Return the tables of foundation/run_tables/replay.py; none where nothing is replayed, or transfers never ended.

    Of a mixture each row names its part.
    """
    jobs = replayed_jobs(compiled)
    finish_ps_N = record.tables["transfers"]["finish_ps"]
    jobs = {name: job for name, job in jobs.items() if (finish_ps_N[job.begin : job.end] >= 0).all()}
    if not jobs:
        return {}
    ready_ps_N = record.tables["transfers"]["ready_ps"]
    alone_ps_N, bound_ps_N = _without_contention(compiled)
    ports = _busiest_ports(compiled)
    tables: dict[str, Rows] = {}
    for name, job in jobs.items():
        path = CriticalPath.of(compiled.traffic, job, ready_ps_N, finish_ps_N)
        timelines = _timelines(compiled, job, finish_ps_N)
        bound = None if bound_ps_N is None else _timelines(compiled, job, bound_ps_N)
        alone = None if alone_ps_N is None else _timelines(compiled, job, alone_ps_N)
        own: Mapping[str, Rows] = {
            "replayed_steps": _step_rows(timelines, alone, bound),
            "exposed_communication": _exposed_rows(timelines, bound),
            "replayed_ranks": _rank_rows(timelines),
            "critical_path": path.rows(job, ports),
            "critical_links": path.link_rows(ports),
        }
        part = {} if compiled.part_N is None else {"part": name}
        for table, rows in own.items():
            tables.setdefault(table, []).extend({**part, **row} for row in rows)
    return {table: to_columns(table, rows) for table, rows in tables.items()}


def _without_contention(compiled: CompiledScenario) -> tuple[IntArray, IntArray] | tuple[None, None]:
    """Return when transfers finish on a network that takes no time, and at the lower bound; None where too many."""
    traffic, config = compiled.traffic, compiled.config
    if len(traffic) > MAX_TRANSFERS or not isinstance(config, PacketConfig):
        return None, None
    graph = TransferGraph(traffic)
    bound = Durations.at_line_rate(compiled.network, traffic, config)
    return graph.finishes(Durations.none(traffic)), graph.finishes(bound)


def _busiest_ports(compiled: CompiledScenario) -> BusiestPorts:
    choice = getattr(compiled.config, "path_choice", PathChoiceConfig()).mode
    keeps_paths = choice == PathChoiceConfig().mode and len(compiled.network.epochs) == 1
    return BusiestPorts(compiled.network, compiled.traffic, keeps_paths=keeps_paths)


def _timelines(compiled: CompiledScenario, job: TracedJob, finish_ps_N: IntArray) -> RankTimelines:
    """Return the timelines of a job's ranks, from its beginning on."""
    num_requests = len(job.requests)
    begin_ps = int(compiled.traffic.column("start_ps_N", job.begin, job.begin + num_requests).min())
    operation_N = compiled.traffic.column("operation_N", job.begin, job.end)
    complete_ps_Q = np.zeros(num_requests, np.int64)
    np.maximum.at(complete_ps_Q, operation_N - operation_N[0], finish_ps_N[job.begin : job.end])
    issue_ps_Q = finish_ps_N[job.begin : job.begin + num_requests]
    return rank_timelines(job.requests, issue_ps_Q - begin_ps, complete_ps_Q - begin_ps)


def _step_rows(timelines: RankTimelines, alone: RankTimelines | None, bound: RankTimelines | None) -> Rows:
    step_ps_S, end_ps_S = timelines.step_ps_S, timelines.step_end_ps_S
    return [
        {
            "step": int(step),
            "begin_ps": int(end_ps_S[place] - step_ps_S[place]),
            "duration_ps": int(step_ps_S[place]),
            "work_ps": _mean(timelines.work_ps_RS[:, place]),
            "exposed_ps": _mean(timelines.exposed_ps_RSA[:, place].sum(axis=1)),
            "work_alone_ps": UNKNOWN if alone is None else int(alone.step_ps_S[place]),
            "lower_bound_ps": UNKNOWN if bound is None else int(bound.step_ps_S[place]),
        }
        for place, step in enumerate(timelines.step_S)
    ]


def _exposed_rows(timelines: RankTimelines, bound: RankTimelines | None) -> Rows:
    def rows() -> Iterator[dict[str, Any]]:
        for place, step in enumerate(timelines.step_S):
            for number, axis in enumerate(timelines.axes):
                exposed_ps_R = timelines.exposed_ps_RSA[:, place, number]
                longest = int(np.argmax(exposed_ps_R))
                yield {
                    "step": int(step),
                    "axis": axis,
                    "exposed_ps": _mean(exposed_ps_R),
                    "max_exposed_ps": int(exposed_ps_R[longest]),
                    "rank": int(timelines.rank_R[longest]),
                    "lower_bound_ps": UNKNOWN if bound is None else _mean(bound.exposed_ps_RSA[:, place, number]),
                }

    return list(rows())


def _rank_rows(timelines: RankTimelines) -> Rows:
    duration_ps_RS, exposed_ps_RS = timelines.duration_ps_RS, timelines.exposed_ps_RSA.sum(axis=2)
    return [
        {
            "step": int(step),
            "rank": int(rank),
            "duration_ps": int(duration_ps_RS[number, place]),
            "work_ps": int(timelines.work_ps_RS[number, place]),
            "exposed_ps": int(exposed_ps_RS[number, place]),
        }
        for place, step in enumerate(timelines.step_S)
        for number, rank in enumerate(timelines.rank_R)
    ]


def _mean(values_R: IntArray) -> int:
    return round(float(values_R.mean()))
