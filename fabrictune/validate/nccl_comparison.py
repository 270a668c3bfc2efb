"""Measured collectives beside NCCL's model on hosts of a hardware profile: its choice, its time and the interval."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fabrictune.collectives.measurement.files import MeasurementFiles
from fabrictune.collectives.measurement.spec import BENCHED
from fabrictune.collectives.nccl.tuning.collective_time import CollectiveTimes
from fabrictune.collectives.nccl.tuning.prediction import Prediction
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.record_folders import HEAD
from fabrictune.foundation.records import Columns
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.foundation.units import PS_PER_NS
from fabrictune.hardware.profile import HardwareProfile
from fabrictune.validate.fit.sources import GLOO, backend_of


def refuse_gloo(path: Path) -> None:
    """Raise InputError for a bench over gloo, which NCCL's model does not describe."""
    if (path / HEAD).exists() and backend_of(path) == GLOO:
        found = "a bench over gloo, which NCCL's model does not describe"
        next_step = "leave out --hardware, or measure with --backend nccl"
        raise InputError(Mistake(where=str(path), found=found, next_step=next_step))


def nccl_table(measured: MeasurementFiles, profile: HardwareProfile) -> Columns:
    """Return each measurement beside the model; raises InputError where hosts or ranks are not known to it."""
    if not measured.num_hosts:
        raise InputError(
            Mistake(where="--hardware", found="a run that does not list its hosts", next_step="say it with --num-hosts")
        )
    times = CollectiveTimes(profile=profile)
    asked = {(row.name, row.size_bytes, row.num_ranks) for row in measured.rows}
    predicted: Mapping[tuple[str, int, int], Prediction] = {
        (name, size, ranks): times.of(BENCHED[name], size, num_ranks=ranks, num_hosts=measured.num_hosts)
        for name, size, ranks in sorted(asked)
    }
    rows: list[dict[str, Any]] = []
    for row in measured.rows:
        one = predicted[row.name, row.size_bytes, row.num_ranks]
        low_ps, high_ps = one.interval_ps
        measured_ps = row.mean_ns * PS_PER_NS
        rows.append(
            {
                "operation": row.name,
                "is_in_place": int(row.is_in_place),
                "num_ranks": row.num_ranks,
                "size_bytes": row.size_bytes,
                "choice": one.name,
                "measured_ps": measured_ps,
                "expected_ps": one.time_ps,
                "low_ps": low_ps,
                "high_ps": high_ps,
                "ratio": measured_ps / one.time_ps,
                "is_inside": int(low_ps <= measured_ps <= high_ps),
            }
        )
    return to_columns("nccl_model", rows)
