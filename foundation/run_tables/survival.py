"""Tables of effective training time: of a job that ran, and of one that is planned."""

from fabrictune.foundation.run_tables.schema import Column, TableSchema, integer_column, number_column, text_column

_RAN, _PLANNED = ("train effective",), ("train survive",)
_PARTS = {  # column: what of a job's time it holds
    "kept": "steps that were kept",
    "recomputed": "steps that were done again, and steps that never ended",
    "stalls": "stalls of checkpoints",
    "overhead": "between steps, without a known cause",
    "detection": "from a fault's first sign until it was detected",
    "decision": "from there until it was decided what to do",
    "down": "from there until all ranks were down",
    "waiting": "from there until the next generation started: nodes, their self-check, a pause",
    "code": "until new code was there",
    "start": "from there until the first step, without its own time",
    "restore": "of that, reading the checkpoint",
    "stopped": "after the job's end, before it was started again",
    "unknown": "nothing in the journal says",
}


def _part_columns() -> tuple[Column, ...]:
    return tuple(integer_column(f"{name}_ns", meaning) for name, meaning in _PARTS.items())


def _interval(name: str, meaning: str, **more: str) -> tuple[Column, ...]:
    return (
        number_column(name, meaning, **more),
        number_column(f"{name}_low", "lower end: 90 % of the failure rates' draws", **more),
        number_column(f"{name}_high", "upper end: 90 % of the failure rates' draws", **more),
    )


TABLES = (
    TableSchema(
        name="effective_parts",
        row="a part of a job's time",
        kinds=_RAN,
        columns=(
            text_column("part", "its name"),
            integer_column("duration_ns", "its time; all of them are the time from the first event to the last"),
            number_column("share_fraction", "of that time"),
        ),
    ),
    TableSchema(
        name="effective_outages",
        row="an outage: from a fault's first sign to the next generation's first step",
        kinds=_RAN,
        columns=(
            integer_column("outage", "its number", unit=""),
            integer_column("begin_ns", "when it began, from the first event on"),
            text_column("cause", "cause of the fault, or why the generation ended"),
            text_column("entity", "rank, node, link or storage that it was laid to"),
            integer_column("generation", "generation that it ended", unit=""),
            integer_column("num_lost_steps", "steps that were done again", unit="steps"),
            integer_column("duration_ns", "all that it cost, with the first time of steps that were done again"),
            *_part_columns(),
        ),
    ),
    TableSchema(
        name="effective_windows",
        row="a window of a job's time",
        kinds=_RAN,
        columns=(
            integer_column("end_ns", "its end, from the first event on"),
            number_column("cumulative_fraction", "kept steps' time up to its end, of all time up to then"),
            number_column("sliding_fraction", "kept steps' time in the sliding window up to its end, of that"),
            *_part_columns(),
        ),
    ),
    TableSchema(
        name="survival_parts",
        row="a part of a planned job's time",
        kinds=_PLANNED,
        columns=(
            text_column("part", "`effective`, a phase of recoveries, or what else takes time"),
            *_interval("share_fraction", "of the time, in the long run"),
        ),
    ),
    TableSchema(
        name="survival_causes",
        row="a cause of failures",
        kinds=_PLANNED,
        columns=(
            text_column("cause", "its name"),
            *_interval("num_failures", "expected in the job's duration", unit="failures"),
            number_column("recovery_fraction", "of the time, from the failure to the next step"),
            number_column("recomputed_fraction", "of the time, work that is done again"),
        ),
    ),
    TableSchema(
        name="survival_intervals",
        row="an interval between saves",
        kinds=_PLANNED,
        columns=(
            integer_column("interval_ns", "work between two saves"),
            *_interval("effective_fraction", "effective time with it"),
        ),
    ),
    TableSchema(
        name="survival_knobs",
        row="a knob and an alternative to what it is, the most gain first",
        kinds=_PLANNED,
        columns=(
            text_column("knob", "what would be changed"),
            text_column("now", "what it is"),
            text_column("then", "the alternative"),
            text_column("why", "where the alternative is from"),
            number_column("effective_fraction", "effective time with it"),
            *_interval("gain_fraction", "of all time, that it adds to the effective time"),
            number_column("tenth_gain_fraction", "the gain by a tenth less of it; -1 where it has no amount"),
        ),
    ),
)
