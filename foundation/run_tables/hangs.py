"""Tables of a job that stands still."""

from fabrictune.foundation.run_tables.schema import Column, TableSchema, flag_column, integer_column, text_column

_KINDS = ("diagnose",)
_ENDS = {"low": "the low end", "expected": "expected", "high": "the high end"}  # of nine cases of ten


def _interval(name: str, meaning: str) -> tuple[Column, ...]:
    """Return three columns of an interval, -1 where it is not known."""
    return tuple(integer_column(f"{name}_{end}_ns", f"{meaning}: {text}") for end, text in _ENDS.items())


TABLES = (
    TableSchema(
        name="hang_processes",
        row="a process of the job",
        kinds=_KINDS,
        columns=(
            integer_column("rank", "its rank in the job, -1 where no source says it", unit=""),
            text_column("host", "its host"),
            integer_column("pid", "its number on the host, -1 where it is not known", unit=""),
            integer_column("gpu", "its GPU, -1 where it is not known", unit=""),
            flag_column("is_blamed", "whether the others wait for it in the end"),
            flag_column("waits", "whether it waits for others, by any source"),
            text_column("signs", "what sources say of it: gone, stopped, an error, where its stack stands"),
        ),
    ),
    TableSchema(
        name="hang_healthy",
        row="a process or port that is named, and what a step gains once it is healthy",
        kinds=_KINDS,
        columns=(
            text_column("subject", "the process or the port"),
            *_interval("request", "how long the request takes while all is well"),
            *_interval("gain", "by how much the step is shorter then"),
            *_interval("step", "how long a step takes while all is well"),
            text_column("basis", "where the request's time is from"),
            text_column("assumption", "on what the gain rests"),
            text_column("missing", "what the evidence does not say"),
        ),
    ),
    TableSchema(
        name="hang_waits",
        row="a process that waits for another one's request",
        kinds=_KINDS,
        columns=(
            text_column("waiter", "who waits"),
            text_column("blocker", "for whom"),
            text_column("group", "the group of the request"),
            integer_column("number", "number of the request, as the source counts", unit=""),
            text_column("source", "that says so"),
        ),
    ),
    TableSchema(
        name="hang_ports",
        row="a port on the way of queue pairs that hang",
        kinds=_KINDS,
        columns=(
            text_column("link", "the link, in the direction of the data"),
            integer_column("num_hung", "hung queue pairs that take it, or may", unit=""),
            integer_column("num_others", "other queue pairs of the log that do", unit=""),
            text_column("counters", "what counters of either end show"),
        ),
    ),
)
