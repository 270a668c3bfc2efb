"""Formats of communication traces, recognised from the files themselves."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabrictune.collectives.traces.aicb import is_aicb, read_aicb
from fabrictune.collectives.traces.aicb_csv import is_aicb_csv, read_aicb_csv
from fabrictune.collectives.traces.chakra import is_chakra, read_chakra
from fabrictune.collectives.traces.execution_trace import is_execution_trace, read_execution_trace
from fabrictune.collectives.traces.flight_recorder import is_flight_recorder, read_flight_recorder
from fabrictune.collectives.traces.goal import is_goal, read_goal
from fabrictune.collectives.traces.kineto import is_kineto, read_kineto
from fabrictune.collectives.traces.unread import UNREAD_TRACES
from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.job_traces import JobTrace
from fabrictune.foundation.traces import CommTrace
from fabrictune.foundation.unread_formats import refuse_unread


@dataclass(frozen=True, kw_only=True)
class TraceFormat:
    """A format that can be read."""

    summary: str
    recognises: Callable[[Path], bool]
    read: Callable[[Sequence[Path], int | None, int | None], CommTrace]  # files, number of ranks, group size


def _the_only(paths: Sequence[Path]) -> Path:
    if len(paths) != 1:
        raise TraceError(Mistake(where=str(paths[1]), found="a second file", allowed="one file of this format"))
    return paths[0]


TRACE_FORMATS: Mapping[str, TraceFormat] = {  # the first that recognises every file reads them
    "fabrictune": TraceFormat(
        summary="the project's own Parquet file, of all ranks or of a planned job",
        recognises=lambda path: path.suffix == ".parquet",
        read=lambda paths, num_ranks, group_size: CommTrace.read(_the_only(paths)),
    ),
    "chakra": TraceFormat(
        summary="Chakra execution traces, NAME.RANK.et",
        recognises=is_chakra,
        read=lambda paths, num_ranks, group_size: read_chakra(paths),
    ),
    "kineto": TraceFormat(
        summary="PyTorch profiler traces (*.json, *.json.gz), one a rank or some",
        recognises=is_kineto,
        read=lambda paths, num_ranks, group_size: read_kineto(paths),
    ),
    "execution-trace": TraceFormat(
        summary="execution traces of PyTorch's observer (NAME_RANK.json), one a rank or some",
        recognises=is_execution_trace,
        read=lambda paths, num_ranks, group_size: read_execution_trace(paths),
    ),
    "flight-recorder": TraceFormat(
        summary="dumps of PyTorch's flight recorder (NAME_RANK, JSON or pickle), one a rank or some",
        recognises=is_flight_recorder,
        read=lambda paths, num_ranks, group_size: read_flight_recorder(paths),
    ),
    "goal": TraceFormat(
        summary="schedules in GOAL, of LogGOPSim and ATLAHS, as text",
        recognises=is_goal,
        read=lambda paths, num_ranks, group_size: read_goal(_the_only(paths)),
    ),
    "aicb": TraceFormat(
        summary="workload text of AICB, SimAI and ASTRA-sim 1.0",
        recognises=is_aicb,
        read=lambda paths, num_ranks, group_size: read_aicb(
            _the_only(paths), num_ranks=num_ranks, group_size=group_size
        ),
    ),
    "aicb-csv": TraceFormat(
        summary="workload tables of AICB (*.csv)",
        recognises=is_aicb_csv,
        read=lambda paths, num_ranks, group_size: read_aicb_csv(_the_only(paths), num_ranks=num_ranks),
    ),
}


def find_job(paths: Sequence[Path]) -> JobTrace | None:
    """Return the planned job that the one file holds, None where there is anything else; raises TraceError."""
    is_parquet = len(paths) == 1 and paths[0].suffix == ".parquet" and paths[0].is_file()
    return JobTrace.read(paths[0]) if is_parquet and JobTrace.is_in(paths[0]) else None


def read_trace(
    paths: Sequence[Path],
    *,
    num_ranks: int | None = None,
    group_size: int | None = None,
    is_added_up: bool = False,
) -> CommTrace:
    """Return the trace that the files hold, in whichever format; a folder means its traces. Raises TraceError.

    `num_ranks` is heeded by formats that write one rank for all, `group_size` (ranks next to one another) by those that
    do not say it. A planned job is written out; where only its flows are wanted, `is_added_up` has each rank ask once
    for all the bytes of a kind, so that any number of ranks can be.
    """
    if job := find_job(paths):
        return (job.added_up() if is_added_up else job).written_out()
    files = [file for path in paths for file in _traces_at(path)]
    missing = [path for path in files if not path.is_file()]
    if missing or not files:
        where = missing[0] if missing else paths[0] if paths else Path("trace")
        raise TraceError(
            Mistake(where=str(where), found="no such file, or no traces in it", next_step="check the path")
        )
    for trace_format in TRACE_FORMATS.values():
        if all(trace_format.recognises(path) for path in files):
            return trace_format.read(files, num_ranks, group_size)
    refuse_unread(files, UNREAD_TRACES, error=TraceError, reads_packed=True)
    raise TraceError(
        Mistake(
            where=", ".join(map(str, files[:3])),
            found="a format that is not known",
            allowed="; ".join(f"{name}: {trace_format.summary}" for name, trace_format in TRACE_FORMATS.items()),
        )
    )


def _traces_at(path: Path) -> list[Path]:
    """Return the files of a folder that some format recognises, or the path itself."""
    if not path.is_dir():
        return [path]
    return sorted(
        file
        for file in path.iterdir()
        if file.is_file() and any(trace_format.recognises(file) for trace_format in TRACE_FORMATS.values())
    )
