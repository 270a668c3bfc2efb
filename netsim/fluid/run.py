"""A run at max-min shares: every transfer at its share, audits packet by packet, then the same run with its bounds.

The record has the table of transfers alone: queues, marks, pauses and packets are known of audits only.
"""

import time
from dataclasses import asdict
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
from fabrictune.netsim.fluid.audits import Audit, Flows, Simulate, audit, flows_of
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
    seed: int,
    simulate: Simulate,
    progress: Progress | None,
) -> RunRecord:
    """Return the record of a packet engine's inputs at max-min shares; `simulate` makes the packet engine of audits."""
    started = time.perf_counter()
    require_fluid_memory(inputs)
    fluid = make_fluid(inputs)
    try:
        audited, flows = _run(fluid, law, inputs, seed=seed, simulate=simulate, progress=progress)
        outcome = _outcome(fluid, inputs)
    except KeyboardInterrupt:
        audited, flows, outcome = None, None, "interrupted"
    tables = {
        "fabric": fabric_table(network.fabric),
        "transfers": transfers_table(network, inputs.traffic, fluid, config),
    }
    report = check_unfinished(tables["transfers"], outcome)
    described = describe_run(
        seed=seed,
        started=started,
        engine="packet",
        outcome=outcome,
        is_partial=outcome != "finished",
        end_ps=_last(fluid, inputs, "acknowledged_ps"),
        events=fluid.num_events,
        skip=_describe_skip(fluid, inputs, audited, flows),
        law=describe_law(law),
        configuration=asdict(config),
    )
    return RunRecord(kind="sim run", run=described, tables=tables, findings=report.findings, checks=report.checks)


def _run(
    fluid: _engine.Fluid,
    law: CompiledLaw,
    inputs: EngineInputs,
    *,
    seed: int,
    simulate: Simulate,
    progress: Progress | None,
) -> tuple[Audit, Flows]:
    """Run twice, the second time with the bounds that audits of the first give."""

    def tell() -> None:
        if progress and inputs.totals.num_bytes:
            share = fluid.finished_bytes / inputs.totals.num_bytes
            progress(share, f"{format_duration(fluid.now_ps)} at max-min shares")

    start(fluid)
    run_to_the_end(fluid, tell)
    flows = flows_of(fluid, inputs.traffic)
    audited = audit(inputs, flows, law, seed=seed, simulate=simulate)
    start(fluid, audited.widenings)
    run_to_the_end(fluid)
    return audited, flows


def _outcome(fluid: _engine.Fluid, inputs: EngineInputs) -> str:
    parts = (fluid.transfer_column("finish_ps", begin, end) for begin, end in ranges(0, len(inputs.traffic)))
    return "finished" if all(bool((finish_ps_N >= 0).all()) for finish_ps_N in parts) else "time-limit"


def _last(fluid: _engine.Fluid, inputs: EngineInputs, column: str) -> int:
    """Return the largest value of a column, 0 without transfers."""
    parts = (fluid.transfer_column(column, begin, end) for begin, end in ranges(0, len(inputs.traffic)))
    return max((int(values_N.max()) for values_N in parts), default=0)


def _describe_skip(
    fluid: _engine.Fluid, inputs: EngineInputs, audited: Audit | None, flows: Flows | None
) -> dict[str, Any]:
    """Return what `run.json` says of shares: how much audits have replayed and confirmed, and the last finish."""
    found = audited.as_counts() if audited else {}
    num_packets = float(inputs.totals.packets_Q.sum())
    last = {f"last_{name}": _last(fluid, inputs, name) for name in ("finish_ps", *FINISH_BOUNDS)}
    return {
        "mode": "fluid",
        "events": 0,
        "share": 0.0,
        "reason": None,
        "fluid": {
            **found,
            "audited_share": found.get("packets", 0) / num_packets if num_packets else 0.0,
            "held_share": _held_share(fluid, inputs) if flows else None,
            **last,
        },
    }


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
