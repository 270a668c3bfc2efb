"""A run at max-min shares: every transfer at its share; with audits packet by packet, then once more with its bounds.

The record has the table of transfers alone: queues, marks, pauses and packets are known of audits only.
"""

import time
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from fabrictune.cc.interface import CompiledLaw
from fabrictune.foundation.metrics.transfers import FINISH_BOUNDS
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.records import RunRecord, describe_run
from fabrictune.foundation.row_ranges import ranges
from fabrictune.foundation.units import format_duration
from fabrictune.netsim import _engine
from fabrictune.netsim.checks import check_unfinished
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.engine_inputs.inputs import EngineInputs
from fabrictune.netsim.fluid.agreement import Agreement, agreement_of
from fabrictune.netsim.fluid.audits import Audit, Simulate, audit, flows_of
from fabrictune.netsim.fluid.kernel import make_fluid, run_to_the_end, start
from fabrictune.netsim.laws import describe_law
from fabrictune.netsim.memory import require_fluid_memory
from fabrictune.netsim.results import transfers_table
from fabrictune.topology.files import fabric_table
from fabrictune.topology.network import Network


def run_fluid(
    network: Network,
    law: CompiledLaw,
    config: PacketConfig,
    inputs: EngineInputs,
    *,
    engine: str,
    audited_fraction: float,
    seed: int,
    simulate: Simulate,
    progress: Progress | None,
) -> RunRecord:
    """Return the record of a packet engine's inputs at max-min shares, under the name of an engine.

    `simulate` makes the packet engine of audits; without them only the last finish has an interval.
    """
    started = time.perf_counter()
    has_audits = audited_fraction > 0
    require_fluid_memory(inputs, has_audits=has_audits)
    fluid = make_fluid(inputs)
    try:
        _advance(fluid, inputs, progress)
        replay = partial(_audit, fluid, inputs, law, fraction=audited_fraction, seed=seed, simulate=simulate)
        audited = replay() if has_audits else None
        outcome = _outcome(fluid, inputs)
    except KeyboardInterrupt:
        audited, outcome = None, "interrupted"
    tables = {
        "fabric": fabric_table(network.fabric),
        "transfers": transfers_table(
            network, inputs.traffic, fluid, config, without=() if has_audits else FINISH_BOUNDS
        ),
    }
    report = check_unfinished(tables["transfers"], outcome)
    described = describe_run(
        seed=seed,
        started=started,
        engine=engine,
        outcome=outcome,
        is_partial=outcome != "finished",
        end_ps=_last(fluid, inputs, "acknowledged_ps"),
        events=fluid.num_events,
        skip=_describe_skip(fluid, inputs, law, audited, outcome),
        law=describe_law(law),
        configuration=asdict(config),
    )
    return RunRecord(kind="sim run", run=described, tables=tables, findings=report.findings, checks=report.checks)


def _advance(fluid: _engine.Fluid, inputs: EngineInputs, progress: Progress | None) -> None:
    def tell() -> None:
        if progress and inputs.totals.num_bytes:
            share = fluid.finished_bytes / inputs.totals.num_bytes
            progress(share, f"{format_duration(fluid.now_ps)} at max-min shares")

    start(fluid)
    run_to_the_end(fluid, tell)


def _audit(
    fluid: _engine.Fluid, inputs: EngineInputs, law: CompiledLaw, *, fraction: float, seed: int, simulate: Simulate
) -> Audit:
    """Return the audit of a run, which is made once more with the bounds that follow."""
    flows = flows_of(fluid, inputs.traffic)
    audited = audit(inputs, flows, law, fraction=fraction, seed=seed, simulate=simulate)
    start(fluid, audited.widenings)
    run_to_the_end(fluid)
    return audited


def _outcome(fluid: _engine.Fluid, inputs: EngineInputs) -> str:
    parts = (fluid.transfer_column("finish_ps", begin, end) for begin, end in ranges(0, len(inputs.traffic)))
    return "finished" if all(bool((finish_ps_N >= 0).all()) for finish_ps_N in parts) else "time-limit"


def _last(fluid: _engine.Fluid, inputs: EngineInputs, column: str) -> int:
    """Return the largest value of a column, 0 without transfers."""
    parts = (fluid.transfer_column(column, begin, end) for begin, end in ranges(0, len(inputs.traffic)))
    return max((int(values_N.max()) for values_N in parts), default=0)


def _describe_skip(
    fluid: _engine.Fluid, inputs: EngineInputs, law: CompiledLaw, audited: Audit | None, outcome: str
) -> dict[str, Any]:
    """Return what `run.json` says of shares: what audits have replayed and confirmed, and the last finish."""
    found = audited.as_counts() if audited else {}
    num_packets = float(inputs.totals.packets_Q.sum())
    held_share = None if outcome == "interrupted" else _held_share(fluid, inputs)
    agreement = agreement_of(law.name, is_held=bool(held_share)) if outcome == "finished" else None
    return {
        "mode": "fluid",
        "events": 0,
        "share": 0.0,
        "reason": None,
        "fluid": {
            **found,
            "audited_share": found.get("packets", 0) / num_packets if num_packets else 0.0,
            "held_share": held_share,
            **(_last_with_bounds(fluid, inputs) if audited else _last_alone(fluid, inputs, agreement)),
        },
    }


def _last_with_bounds(fluid: _engine.Fluid, inputs: EngineInputs) -> dict[str, int]:
    return {f"last_{name}": _last(fluid, inputs, name) for name in ("finish_ps", *FINISH_BOUNDS)}


def _last_alone(fluid: _engine.Fluid, inputs: EngineInputs, agreement: Agreement | None) -> dict[str, Any]:
    """Return the last finish, and the interval that runs like this one had in the cross-check, None without one."""
    last_ps = _last(fluid, inputs, "finish_ps")
    first_ps = _first_ready_ps(fluid, inputs) if agreement else 0
    factors = (agreement.low, agreement.high) if agreement else ()
    bounds = (first_ps + round((last_ps - first_ps) * factor) for factor in factors)
    return {
        "last_finish_ps": last_ps,
        **dict.fromkeys((f"last_{name}" for name in FINISH_BOUNDS), None),
        **dict(zip((f"last_{name}" for name in FINISH_BOUNDS), bounds, strict=False)),
        "makespan_factors": list(factors),
        "compared_runs": agreement.num_runs if agreement else 0,
    }


def _first_ready_ps(fluid: _engine.Fluid, inputs: EngineInputs) -> int:
    parts = (fluid.transfer_column("ready_ps", begin, end) for begin, end in ranges(0, len(inputs.traffic)))
    return min((int(values_N.min()) for values_N in parts), default=0)


def _held_share(fluid: _engine.Fluid, inputs: EngineInputs) -> float:
    """Return the share of the bytes over the fabric that were of transfers that others held."""
    held_bytes = flow_bytes = 0
    for begin, end in ranges(0, len(inputs.traffic)):
        bytes_N = np.where(
            inputs.traffic.column("qp_N", begin, end) >= 0, inputs.traffic.column("bytes_N", begin, end), 0
        )
        held_bytes += int(bytes_N[fluid.transfer_column("held_ps", begin, end) > 0].sum())
        flow_bytes += int(bytes_N.sum())
    return held_bytes / flow_bytes if flow_bytes else 0.0
