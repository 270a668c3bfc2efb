"""Interface of the packet engine: `run` simulates one traffic trace on one network under one law.

The compiled engine advances in slices of events without the interpreter's lock. Between slices Python looks at the
keyboard and reports progress; neither changes a result. An interrupted run gives the record of what there is.
"""

import time
from dataclasses import asdict
from typing import Any

from fabrictune.cc.interface import EVENTS, MIN_CWND_BYTES, MIN_RATE_BPS, CompiledLaw, Status
from fabrictune.foundation.checks import CheckReport, join_reports
from fabrictune.foundation.errors import InputError, LawError, Mistake
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.records import RunRecord, describe_run
from fabrictune.foundation.traces import TrafficTrace
from fabrictune.foundation.units import format_duration
from fabrictune.netsim import _engine
from fabrictune.netsim.capture import with_capture
from fabrictune.netsim.checks import check_run, check_samples
from fabrictune.netsim.config.capture import RECEIVER, CaptureConfig
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.deadlock import find_deadlock
from fabrictune.netsim.engine_inputs.inputs import EngineInputs, make_engine_inputs
from fabrictune.netsim.engine_inputs.limits import LAST_INSTANT_PS
from fabrictune.netsim.faults.results import check_faults, fault_tables
from fabrictune.netsim.faults.timeline import NO_FAULTS, FaultTimeline
from fabrictune.netsim.fluid import audits
from fabrictune.netsim.fluid.limits import require_shares
from fabrictune.netsim.fluid.run import run_fluid
from fabrictune.netsim.laws import describe_law
from fabrictune.netsim.memory import fitting
from fabrictune.netsim.outcome import Outcome
from fabrictune.netsim.path_counts import with_path_counts
from fabrictune.netsim.results import tables
from fabrictune.netsim.skip import describe_skip
from fabrictune.netsim.threads import describe_threads
from fabrictune.netsim.work import warn_of_long_run
from fabrictune.topology.network import Network

EVENTS_PER_SLICE = 2_000_000  # at most; about a tenth of a second
MAX_QUEUED_BYTES = 2**31 - 1
_SLICE_S = 0.1  # a law with long loops gets fewer events in one
_FEWEST_EVENTS = 1_000
_WHAT_A_LAW_DID: dict[int, str] = {
    Status.RAISED: "raised an exception",
    Status.REFUSED: "refused the state it met",
    Status.BAD_RATE: f"left rate_bps below {MIN_RATE_BPS:g}, or no number",
    Status.BAD_CWND: f"left cwnd_bytes below {MIN_CWND_BYTES:g}, or no number",
    Status.BAD_DEADLINE: "left a deadline_ps that has passed",
}


def run(
    network: Network,
    traffic: TrafficTrace,
    law: CompiledLaw,
    config: PacketConfig,
    *,
    seed: int = 0,
    probe: ProbeConfig | None = None,
    capture: CaptureConfig | None = None,
    faults: FaultTimeline = NO_FAULTS,
    rules: RuleSettings = CATALOG_SETTINGS,
    progress: Progress | None = None,
) -> RunRecord:
    """Simulate until every transfer is acknowledged, nothing more can happen, the time limit, or Ctrl-C.

    `faults` happen at their times; the paths around them are the network's own epochs (fabrictune.topology.failures).
    `progress` receives the share of bytes acknowledged, and the simulated time as a note.
    `run["outcome"]` of the record is finished, stalled, time-limit or interrupted. Raises InputError for what cannot be
    run, LawError when the law misbehaves.
    """
    started = time.perf_counter()
    config = config.with_marking()
    on_wire = config.with_telemetry() if law.uses_telemetry else config
    if config.skip == "fluid":
        require_shares(config, probe=probe, capture=capture, faults=faults)
    inputs = make_engine_inputs(
        network, traffic, law, on_wire, seed=seed, probe=probe, capture=capture, faults=faults.intervals
    )
    if config.skip == "fluid":
        return run_fluid(
            network,
            law,
            on_wire,
            inputs,
            engine="packet",
            audited_fraction=audits.AUDITED_FRACTION,
            seed=seed,
            simulate=make_simulation,
            progress=progress,
        )
    inputs = fitting(inputs, uses_telemetry=law.uses_telemetry)
    warn_of_long_run(inputs)
    simulation = make_simulation(inputs, law)
    outcome = _advance(simulation, law, network, total_bytes=inputs.totals.num_bytes, progress=progress)
    all_tables = {
        **tables(network, traffic, simulation, on_wire),
        **fault_tables(network.fabric, faults.faults, faults.intervals, simulation),
    }
    deadlock = find_deadlock(simulation, inputs)
    skip = describe_skip(
        config,
        simulation,
        law,
        num_transfers=len(traffic),
        probe=probe,
        not_searched=inputs.not_searched,
    )
    described = _describe(law, config, simulation, outcome=outcome, skip=skip, seed=seed, started=started)
    judged = Outcome(network=network, tables=all_tables, run=described, config=on_wire, deadlock=deadlock, rules=rules)
    report = join_reports(
        check_run(judged),
        check_samples(all_tables, are_complete=simulation.has_all_samples) if probe else CheckReport(),
        check_faults(judged, faults.faults, faults.intervals),
    )
    record = RunRecord(kind="sim run", run=described, tables=all_tables, findings=report.findings, checks=report.checks)
    if capture is None:
        return record
    record = with_capture(record, network, traffic, simulation, on_wire, capture)
    if capture.at == RECEIVER and on_wire.path_choice.mode == "entropy":
        return with_path_counts(record, network, simulation, on_wire.path_choice, seed)
    return record


def make_simulation(inputs: EngineInputs, law: CompiledLaw) -> _engine.Simulation:
    """Return the compiled engine at time 0; `law` must outlive it."""
    simulation = _engine.Simulation(
        settings=inputs.settings,
        law=_engine.Law(
            handlers=law.handler_address,
            params=law.params.ctypes.data,
            uses_telemetry=law.uses_telemetry,
            reads_marks=law.reads_marks,
        ),
        arrays={**inputs.arrays, "flow": inputs["flow"].view("u1")},
    )
    for arrays in inputs.transfers():
        simulation.add_transfers(arrays)
    simulation.start()
    return simulation


def _advance(
    simulation: _engine.Simulation,
    law: CompiledLaw,
    network: Network,
    *,
    total_bytes: int,
    progress: Progress | None,
) -> str:
    outcome = _engine.Outcome.RUNNING
    num_events = min(_FEWEST_EVENTS, EVENTS_PER_SLICE)
    try:
        while outcome == _engine.Outcome.RUNNING:
            started = time.perf_counter()
            outcome = simulation.advance(num_events)
            num_events = _next_slice(num_events, time.perf_counter() - started)
            if progress:
                share = simulation.acknowledged_bytes / total_bytes if total_bytes else 1.0
                progress(share, f"{format_duration(simulation.now_ps)} simulated")
    except KeyboardInterrupt:
        simulation.settle()
        return "interrupted"
    except _engine.LawFaultError as fault:
        raise _law_error(law, *fault.args) from None
    except (ValueError, OverflowError, IndexError) as error:
        raise InputError(_beyond_limits(error, network, simulation.now_ps)) from None
    return outcome.name.lower().replace("_", "-")


def _beyond_limits(error: Exception, network: Network, now_ps: int) -> Mistake:
    """Return what of a run is more than the engine can count: packets, bytes in a queue, or time."""
    if isinstance(error, OverflowError):
        return Mistake(
            where=f"port {network.fabric.port_label(int(str(error)))}",
            found=f"a queue of more than {MAX_QUEUED_BYTES} B at {format_duration(now_ps)}",
            allowed=f"up to {MAX_QUEUED_BYTES} B",
            next_step="lower engine.pfc.buffer, or let fewer senders share the port",
        )
    if isinstance(error, IndexError):
        return Mistake(
            where="traffic",
            found=f"events beyond {format_duration(LAST_INSTANT_PS)}",
            allowed=f"up to {LAST_INSTANT_PS} ps of simulated time, 53 days",
            next_step="set engine.time_limit, smaller transfers or faster links",
        )
    return Mistake(where="traffic", found=str(error), allowed=f"fewer than {_engine.MAX_PACKETS} at one instant")


def _next_slice(num_events: int, elapsed_s: float) -> int:
    """Return how many events the next slice has, so that Ctrl-C is never far."""
    if elapsed_s < _SLICE_S / 2:
        return min(2 * num_events, EVENTS_PER_SLICE)
    if elapsed_s > 2 * _SLICE_S:
        return min(max(num_events // 4, _FEWEST_EVENTS), EVENTS_PER_SLICE)
    return num_events


def _law_error(law: CompiledLaw, event: int, status: int, queue_pair: int, now_ps: int) -> LawError:
    handler = list(EVENTS)[event]
    place = law.failed_place(status)
    if place is not None:
        what = f"{place.found} ({place})"
    else:
        what = _WHAT_A_LAW_DID.get(status, f"returned the unknown status {status}")
    return LawError(
        Mistake(
            where=f"law {law.name}, {handler}",
            found=f"{what} at {format_duration(now_ps)} ({now_ps} ps), queue pair {queue_pair}",
            next_step="correct the law, or run it interpreted (fabrictune.cc.interpreter) to see how it gets there",
        )
    )


def _describe(
    law: CompiledLaw,
    config: PacketConfig,
    simulation: _engine.Simulation,
    *,
    outcome: str,
    skip: dict[str, Any],
    seed: int,
    started: float,
) -> dict[str, Any]:
    return describe_run(
        seed=seed,
        started=started,
        engine="packet",
        outcome=outcome,
        is_partial=outcome != "finished",
        end_ps=simulation.now_ps,
        events=simulation.num_events,
        skip=skip,
        threads=describe_threads(config, simulation),
        packets=simulation.packet_counts(),
        samples_are_complete=simulation.has_all_samples,
        law=describe_law(law),
        configuration=asdict(config),
    )
