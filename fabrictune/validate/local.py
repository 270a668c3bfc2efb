"""Communication of the trainer on this machine, measured and simulated.

Two gloo processes train on the loopback device and write their ledger. Beside the training, probes say what the parts
of a collective cost (`calibration.py`): the exchange becomes a fabric of two hosts, on which the ledger is expanded and
runs in the packet engine, and what gloo does beside its messages (`gloo_model.py`) delays what follows. *Calibrated*
are the parts, at sizes that the training does not send. *Predicted* are the time of every collective and of every step,
whose work is the measured one.

Left out: page faults are counted in each collective, not predicted.
"""

import time
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from fabrictune.cc.compiler import compile_law
from fabrictune.cc.laws import load_law
from fabrictune.collectives.expansion import ExpansionSpec, expand
from fabrictune.collectives.overlapped_work import with_overlapped_work
from fabrictune.foundation.arrays import FloatArray, IntArray
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
from fabrictune.validate.calibration import Calibration, check_calibration, loopback_fabric
from fabrictune.validate.comparison import collective_times
from fabrictune.validate.findings import busy_machine, missed_predictions, others_share
from fabrictune.validate.gloo_model import with_software
from fabrictune.validate.local_comparison import calibrated, collective_kinds, comparison_table
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

    `comparison` has a row for each collective and each step, with the parts of its prediction and a 90 % interval;
    `calibration` one for each probe of each round. Raises UnavailableError where torch is missing or fails, and
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
    calibration = calibrated(measurement)
    check_calibration(calibration)
    kinds, is_busy = collective_kinds(measurement), others_share(measurement) > rules.threshold(BUSY_MACHINE, "others")
    software_ps_N = kinds.software_ps_N(calibration)
    simulated = simulate_loopback(measurement.trace, software_ps_N, calibration, seed=seed, progress=progress)
    times = collective_times(measurement.trace, simulated.tables["transfers"], software_ps_N)
    record = RunRecord(
        kind="validate local",
        run={
            **simulated.run,
            "calibration": _describe(calibration, measurement),
            "processors": None if measurement.machine is None else asdict(measurement.machine),
            "intervals_of": "single collectives" if is_busy else "medians",
        },
        tables={
            **simulated.tables,
            "comparison": comparison_table(measurement, times, kinds, seed=seed, is_busy=is_busy),
            "calibration": _calibration_table(measurement),
        },
    )
    summary = summarize_validation(record)
    return record.with_checks(
        join_reports(
            CheckReport(checks=simulated.checks or (), findings=simulated.findings),
            run_check(
                BUSY_MACHINE.id,
                f"{len(measurement.bytes_P):,} probes",
                busy_machine(measurement, rules),
                expected="quartiles near one another, and processors that nobody else uses",
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
    trace: CommTrace,
    software_ps_N: IntArray,
    calibration: Calibration,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> RunRecord:
    """Return the packet-level run of a two-rank trace over a calibrated loopback.

    Work beside communication is a request of its rank alone, behind the N of the trace.
    """
    fabric = loopback_fabric(calibration, LOOPBACK_CONFIG.mtu_bytes)
    placement = place(ParallelLayout(dp=NUM_RANKS), fabric, "contiguous", gpus_per_host=1)
    worked = with_overlapped_work(trace)
    behind_ps = np.zeros(len(worked) - len(trace), np.int64)
    replayed = with_software(worked, np.concatenate([software_ps_N, behind_ps]))
    queue_pairs, traffic = expand(replayed, placement, fabric, ExpansionSpec())
    network = build_network(fabric, queue_pairs, HashSpec())
    return run(network, traffic, compile_law(load_law("none")), LOOPBACK_CONFIG, seed=seed, progress=progress)


def _refuse_calibrated_sizes(measurement: LocalMeasurement) -> None:
    """Raise InputError where the training sends messages of a size that the calibration has seen."""
    message_bytes = measurement.trace.bytes_N // NUM_RANKS
    exchanged = _exchanged(measurement)
    seen = sorted(set(message_bytes.tolist()) & set(exchanged))
    if seen:
        raise InputError(
            Mistake(
                where="exchange_bytes",
                found=f"{seen}, of which the training sends messages",
                allowed="sizes other than those that are predicted",
            )
        )


def _exchanged(measurement: LocalMeasurement) -> list[int]:
    """Return the sizes of the exchanges."""
    rows = zip(measurement.probe_P, measurement.bytes_P.tolist(), strict=True)
    return sorted(size for probe, size in rows if probe == "exchange")


def _describe(calibration: Calibration, measurement: LocalMeasurement) -> dict[str, Any]:
    copy, added = calibration.copy, calibration.sum
    return {
        "latency_ps": calibration.latency_ps,
        "rate_bps": calibration.rate_bps,
        "rate_of_largest_bps": _rate_bps(calibration.exchange.bytes_E, calibration.exchange.ps_E),
        "copy_bps": _rate_bps(copy.bytes_E, copy.ps_E),
        "sum_bps": _rate_bps(added.bytes_E, added.ps_E),
        "page_ps": round(calibration.page_ps),
        "call_ps": {name: round(time_ps) for name, time_ps in calibration.call_ps.items()},
        "exchange_bytes": _exchanged(measurement),
        "source": "probes of two gloo processes on the loopback, between training steps",
    }


def _rate_bps(bytes_E: IntArray, ps_E: FloatArray) -> int:
    """Return the rate of the largest size beyond the smallest."""
    return round(float(bytes_E[-1] * 8e12 / max(ps_E[-1] - ps_E[0], 1.0)))


def _calibration_table(measurement: LocalMeasurement) -> dict[str, Any]:
    num_rounds = measurement.probe_ps_PK.shape[1]
    return {
        "probe": np.repeat(np.array(measurement.probe_P), num_rounds),
        "bytes": np.repeat(measurement.bytes_P, num_rounds),
        "step": np.tile(measurement.step_K, len(measurement.bytes_P)),
        "measured_ps": measurement.probe_ps_PK.ravel(),
    }
