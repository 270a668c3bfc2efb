"""Communication of the trainer on this machine, measured and simulated.

Two gloo processes train on the loopback device and write their ledger. Of the same run, exchanges of messages give the
loopback's latency and rate, which become a fabric of two hosts; the ledger is expanded on it and runs in the packet
engine. *Calibrated* are those two numbers, on messages of sizes that the training does not send. *Predicted* is the
time of every collective and of a step's communication, from the ring's messages and dependencies.

Left out: the adding up of gradients, and what gloo's collectives cost beyond their messages; both make the simulation
the faster, the more so the smaller the buffer.
"""

import time
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from fabrictune.cc.compiler import compile_law
from fabrictune.cc.laws import load_law
from fabrictune.collectives.expansion import ExpansionSpec, expand
from fabrictune.foundation.checks import CheckReport, join_reports, run_check
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.finding_rules.collectives import BUSY_MACHINE, PREDICTION_OFF
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.records import RunRecord, describe_run
from fabrictune.foundation.traces import CommTrace
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.switch import EcnConfig, PfcConfig
from fabrictune.netsim.packet import run
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.placement import place
from fabrictune.topology.routing import build_network
from fabrictune.validate.calibration import Calibration, calibrate, loopback_fabric
from fabrictune.validate.comparison import compare_collectives
from fabrictune.validate.findings import busy_machine, missed_predictions
from fabrictune.validate.local_measurement import NUM_RANKS, LocalMeasurement, LocalSpec, measure_local
from fabrictune.validate.summary import summarize_validation

# The calibrated rate is that of payload, with everything that TCP adds already in it. The buffer has room for what is
# on its way over a loopback as slow to answer as a busy machine's may be.
LOOPBACK_CONFIG = PacketConfig(
    wire_overhead_bytes=0, ack_bytes=1, ecn=EcnConfig(enabled=False), pfc=PfcConfig(buffer_bytes=2**28)
)


def validate_local(
    spec: LocalSpec | None = None,
    *,
    seed: int = 0,
    rules: RuleSettings = CATALOG_SETTINGS,
    progress: Progress | None = None,
) -> RunRecord:
    """Return a record of kind "validate local": the simulator's tables, `comparison` and `calibration`.

    `comparison` has a row for each collective (step, operation, bytes, measured_ps, simulated_ps, ratio), `calibration`
    one for each measured exchange (bytes, measured_ps). Raises UnavailableError where torch is missing or fails, and
    InputError where the calibration would see what it is to predict.
    """
    started = time.perf_counter()
    spec = spec or LocalSpec()
    record = predict_local(measure_local(spec), seed=seed, rules=rules, progress=progress)
    return replace(record, run={**record.run, **describe_run(seed=seed, started=started), "workload": asdict(spec)})


def predict_local(
    measurement: LocalMeasurement,
    *,
    seed: int = 0,
    rules: RuleSettings = CATALOG_SETTINGS,
    progress: Progress | None = None,
) -> RunRecord:
    """Return the record of a measurement and its simulation, as `validate_local` describes it."""
    _refuse_calibrated_sizes(measurement)
    calibration = calibrate(measurement.exchange_bytes_E, measurement.exchange_ps_EK)
    simulated = simulate_loopback(measurement.trace, calibration, seed=seed, progress=progress)
    record = RunRecord(
        kind="validate local",
        run={**simulated.run, "calibration": _describe(calibration, measurement)},
        tables={
            **simulated.tables,
            "comparison": compare_collectives(measurement.trace, simulated.tables["transfers"]).table(),
            "calibration": _calibration_table(measurement),
        },
    )
    summary = summarize_validation(record)
    return record.with_checks(
        join_reports(
            CheckReport(checks=simulated.checks or (), findings=simulated.findings),
            run_check(
                BUSY_MACHINE.id,
                f"{len(measurement.exchange_bytes_E):,} sizes of exchanges",
                busy_machine(measurement, rules),
                expected="quartiles near one another",
            ),
            run_check(
                PREDICTION_OFF.id,
                f"{len(summary.rows):,} predictions",
                missed_predictions(summary, rules),
                expected="simulated within the band of measured",
            ),
        )
    )


def simulate_loopback(
    trace: CommTrace, calibration: Calibration, *, seed: int = 0, progress: Progress | None = None
) -> RunRecord:
    """Return the packet-level run of a two-rank trace over a calibrated loopback."""
    fabric = loopback_fabric(calibration, LOOPBACK_CONFIG.mtu_bytes)
    placement = place(ParallelLayout(dp=NUM_RANKS), fabric, "contiguous", gpus_per_host=1)
    queue_pairs, traffic = expand(trace, placement, fabric, ExpansionSpec())
    network = build_network(fabric, queue_pairs, HashSpec())
    return run(network, traffic, compile_law(load_law("none")), LOOPBACK_CONFIG, seed=seed, progress=progress)


def _refuse_calibrated_sizes(measurement: LocalMeasurement) -> None:
    """Raise InputError where the training sends messages of a size that the calibration has seen."""
    message_bytes = measurement.trace.bytes_N // NUM_RANKS
    seen = sorted(set(message_bytes.tolist()) & set(measurement.exchange_bytes_E.tolist()))
    if seen:
        raise InputError(
            Mistake(
                where="exchange_bytes",
                found=f"{seen}, of which the training sends messages",
                allowed="sizes other than those that are predicted",
            )
        )


def _describe(calibration: Calibration, measurement: LocalMeasurement) -> dict[str, Any]:
    return {
        "latency_ps": calibration.latency_ps,
        "rate_bps": calibration.rate_bps,
        "exchange_bytes": measurement.exchange_bytes_E.tolist(),
        "source": "exchanges of two gloo processes over the loopback, between training steps",
    }


def _calibration_table(measurement: LocalMeasurement) -> dict[str, Any]:
    num_repetitions = measurement.exchange_ps_EK.shape[1]
    return {
        "bytes": np.repeat(measurement.exchange_bytes_E, num_repetitions),
        "measured_ps": measurement.exchange_ps_EK.ravel(),
    }
