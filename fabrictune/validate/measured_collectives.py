"""Measured collectives compared with a model of them, and the gap between the two attributed.

Tables: `fits`, a row for each *series* (rows of one operation, place and number of ranks) of two sizes or more; with a
scenario `attribution`, a row for each measurement, its parts named as in `attribution.py`.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fabrictune.collectives.bounds import bus_factor
from fabrictune.collectives.measurement.alpha_beta_fit import AlphaBetaLine, fit_line
from fabrictune.collectives.measurement.files import MeasurementFiles
from fabrictune.collectives.measurement.measurements import Measurement
from fabrictune.collectives.measurement.spec import BENCHED
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.finding_rules.collectives import FASTER_THAN_BOUND, GAP, WRONG_RESULT
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.records import Columns, Confidence, Finding, RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import num_rows, to_columns
from fabrictune.foundation.units import BITS_PER_BYTE, NS_PER_S, PS_PER_NS, format_bytes, format_duration
from fabrictune.scenario.provenance import describe_scenario
from fabrictune.scenario.schema import Scenario
from fabrictune.validate.attribution import CAUSES, Attribution, attribute
from fabrictune.validate.collective_model import CollectiveModel, Modelled

SEED = 0  # nothing here is drawn at random
FASTER_FRACTION = 0.97  # of the bound; below it the scenario is not what was measured
LEAST_GAP_FRACTION = 0.1  # of the measured time; a smaller cause is not worth a word
Series = tuple[str, bool, int]  # operation, whether in place, number of ranks


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A measurement, its model, and where its time goes."""

    measurement: Measurement
    modelled: Modelled
    attribution: Attribution

    @property
    def ratio(self) -> float:
        """Return measured over modelled time."""
        return self.attribution.measured_ps / self.modelled.fair_ps


def compare_measured(
    imported: MeasurementFiles, scenario: Scenario | None, *, progress: Progress | None = None
) -> RunRecord:
    """Return the record of a comparison; without a scenario, of lines through the measurements alone.

    Raises InputError where the scenario's groups have another number of ranks than was measured.
    """
    started = time.perf_counter()
    lines = _fit(imported.rows)
    compared = _compare(imported.rows, lines, scenario, progress) if scenario else []
    tables = {"fits": _fits_table(imported.rows, lines), "attribution": _attribution_table(compared)}
    description = describe_scenario(scenario) if scenario else {}
    return RunRecord(
        kind="coll compare",
        run={
            **describe_run(seed=scenario.seed if scenario else SEED, started=started),
            **description,
            "configuration": {"source": imported.source, "num_hosts": imported.num_hosts},
        },
        tables={name: table for name, table in tables.items() if num_rows(table)},
        findings=(*_wrong(imported.rows), *_too_fast(compared), *_gaps(compared)),
    )


def _series(row: Measurement) -> Series:
    return row.name, bool(row.is_in_place), row.num_ranks


def _fit(rows: Sequence[Measurement]) -> Mapping[Series, AlphaBetaLine]:
    """Return a line in nanoseconds for each series that has two sizes."""
    series: dict[Series, list[Measurement]] = {}
    for row in rows:
        series.setdefault(_series(row), []).append(row)
    return {
        key: fit_line([row.size_bytes for row in own], [row.mean_ns for row in own])
        for key, own in series.items()
        if len({row.size_bytes for row in own}) > 1
    }


def _compare(
    rows: Sequence[Measurement],
    lines: Mapping[Series, AlphaBetaLine],
    scenario: Scenario,
    progress: Progress | None,
) -> list[Compared]:
    models = {name: CollectiveModel(scenario, BENCHED[name]) for name in dict.fromkeys(row.name for row in rows)}
    modelled: dict[tuple[str, int], Modelled] = {}
    compared = []
    for number, row in enumerate(rows):
        model, key = models[row.name], (row.name, row.size_bytes)
        if row.num_ranks != model.num_ranks:
            raise InputError(_other_ranks(row, model.num_ranks, scenario))
        modelled[key] = modelled.get(key) or model.at(row.size_bytes)
        attribution = attribute(
            row.mean_ns * PS_PER_NS,
            modelled[key],
            alpha_ps=max(0.0, lines[_series(row)].alpha) * PS_PER_NS if _series(row) in lines else 0.0,
            late_ps=row.skew_ns * PS_PER_NS,
        )
        compared.append(Compared(measurement=row, modelled=modelled[key], attribution=attribution))
        if progress:
            progress((number + 1) / len(rows))
    return compared


def _other_ranks(row: Measurement, num_ranks: int, scenario: Scenario) -> Mistake:
    return Mistake(
        where=scenario.where("traffic", "layout"),
        found=f"groups of {num_ranks} ranks, where {row.num_ranks} ranks were measured",
        next_step="describe the job that was measured, or name the axis of its groups (traffic.axis)",
    )


def _fits_table(rows: Sequence[Measurement], lines: Mapping[Series, AlphaBetaLine]) -> Columns:
    table: list[dict[str, Any]] = []
    for key, line in lines.items():
        own = [row for row in rows if _series(row) == key]
        errors = [abs(line.at(row.size_bytes) / row.mean_ns - 1) for row in own]
        busbw_bps = (
            bus_factor(BENCHED[key[0]], key[2]) * BITS_PER_BYTE * NS_PER_S / line.beta if line.beta > 0 else -1.0
        )
        table.append(
            {
                "operation": key[0],
                "is_in_place": int(key[1]),
                "num_ranks": key[2],
                "num_sizes": len(own),
                "alpha_ns": line.alpha,
                "busbw_bps": busbw_bps,
                "worst_error_fraction": max(errors),
            }
        )
    return to_columns("fits", table)


def _attribution_table(compared: Sequence[Compared]) -> Columns:
    return to_columns(
        "attribution",
        [
            {
                "operation": row.measurement.name,
                "is_in_place": int(row.measurement.is_in_place),
                "num_ranks": row.measurement.num_ranks,
                "size_bytes": row.measurement.size_bytes,
                "measured_ps": row.attribution.measured_ps,
                "bound_ps": row.modelled.bound_ps,
                "fair_ps": row.modelled.fair_ps,
                "ratio": row.ratio,
                **{f"{name}_ps": row.attribution.parts_ps[name] for name in CAUSES},
            }
            for row in compared
        ],
    )


def _entity(row: Measurement) -> str:
    return f"{row.name} of {format_bytes(row.size_bytes)}{' in place' if row.is_in_place else ''}"


def _wrong(rows: Sequence[Measurement]) -> Iterator[Finding]:
    for row in rows:
        if row.num_wrong > 0:
            yield WRONG_RESULT.finding(
                entity=_entity(row),
                expected="none on any rank",
                actual=f"{row.num_wrong} wrong elements",
                confidence=Confidence.MEASURED,
            )


def _too_fast(compared: Sequence[Compared]) -> Iterator[Finding]:
    """Yield a finding for the measurement that beats its bound by most, if one does."""
    if not compared:
        return
    worst = min(compared, key=lambda row: row.attribution.measured_ps / row.modelled.bound_ps)
    fraction = worst.attribution.measured_ps / worst.modelled.bound_ps
    if fraction < FASTER_FRACTION:
        yield FASTER_THAN_BOUND.finding(
            entity=_entity(worst.measurement),
            expected=f"at least {format_duration(worst.modelled.bound_ps)}, the lower bound of the scenario's links",
            actual=f"{format_duration(worst.attribution.measured_ps)}, {fraction:.2f} times that bound",
            confidence=Confidence.MEASURED,
            evidence=("table attribution",),
        )


def _gaps(compared: Sequence[Compared]) -> Iterator[Finding]:
    """Yield a finding for the largest size of each series: the largest cause but the NIC, where it is worth a word."""
    largest: dict[Series, Compared] = {}
    for row in compared:
        key = _series(row.measurement)
        if key not in largest or row.measurement.size_bytes > largest[key].measurement.size_bytes:
            largest[key] = row
    for row in largest.values():
        name = row.attribution.largest_avoidable
        measured_ps, part_ps = row.attribution.measured_ps, row.attribution.parts_ps[name]
        if part_ps < LEAST_GAP_FRACTION * measured_ps:
            continue
        yield GAP.finding(
            entity=_entity(row.measurement),
            expected=f"{format_duration(row.attribution.parts_ps['nic'])} for the NICs alone",
            actual=f"{format_duration(measured_ps)}, of which {name.replace('_', ' ')} {part_ps / measured_ps:.0%}",
            next_step=f"{name.replace('_', ' ')}: {CAUSES[name].test}",
            confidence=Confidence.PREDICTED,
            evidence=("table attribution",),
        )
