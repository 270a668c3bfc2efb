"""Modelled collectives as a run record.

Table `model` has for each of TIMES the time `<name>_ps` and nccl-tests' busbw `<name>_busbw_bps`, -1 for none.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from fabrictune.collectives.bounds import bus_factor
from fabrictune.collectives.measurement.spec import BENCHED
from fabrictune.foundation.metrics.formulas import bus_bandwidth_bps
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.records import RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.foundation.traces import UNKNOWN
from fabrictune.scenario.provenance import describe_scenario
from fabrictune.scenario.schema import Scenario
from fabrictune.validate.collective_model import CollectiveModel, Modelled

TIMES: Mapping[str, str] = {
    "alpha_beta": "rounds of latency and bytes over rate, of the algorithm on one channel",
    "line": "the busiest NIC's bytes, with headers, at its rate",
    "bound": "the least that any network of such links can take: messages wait for one another and for the cables",
    "fair": "with flows sharing the links that the scenario's hash puts them on, max-min fairly",
    "engine": "the packet engine, with the scenario's congestion control",
}


def model_scenario(
    scenario: Scenario,
    names: Sequence[str],
    sizes: Sequence[int],
    *,
    with_engine: bool = False,
    progress: Progress | None = None,
) -> RunRecord:
    """Return the record of operations, by their names in BENCHED, at all sizes; raises InputError."""
    started = time.perf_counter()
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    for name in names:
        model = CollectiveModel(scenario, BENCHED[name])
        notes += model.notes
        for size in sizes:
            rows.append(_row(name, model.num_ranks, model.at(size, with_engine=with_engine)))
            if progress:
                progress(len(rows) / (len(names) * len(sizes)))
    run = {**describe_run(seed=scenario.seed, started=started), **describe_scenario(scenario, notes)}
    return RunRecord(kind="coll model", run=run, checks=(), tables={"model": to_columns("model", rows)})


def _row(name: str, num_ranks: int, modelled: Modelled) -> dict[str, Any]:
    row: dict[str, Any] = {"operation": name, "num_ranks": num_ranks, "size_bytes": modelled.size_bytes}
    factor = bus_factor(BENCHED[name], num_ranks)
    for which in TIMES:
        time_ps = getattr(modelled, f"{which}_ps")
        has_rate = time_ps is not None and round(time_ps) > 0
        busbw_bps = bus_bandwidth_bps(modelled.size_bytes, factor, round(time_ps)) if has_rate else -1
        row |= {f"{which}_ps": UNKNOWN if time_ps is None else round(time_ps), f"{which}_busbw_bps": round(busbw_bps)}
    return row
