"""The files are what they seem to be: of a few rows, each is read; `make bigfiles` has them of 50 MB."""

from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.collectives.traces.formats import TRACE_FORMATS
from fabrictune.topology.importers import IMPORTERS
from tests.big_files.driver import FEW_ROWS, MAX_BYTES, MAX_CPU_S, Result, command_line, faults, try_reading
from tests.big_files.readings import Reading, make_readings
from tests.fuzz.doors import GOLDEN
from tests.kills.inputs import make_inputs

UNANSWERED = ("token",)  # nobody listens
STARTS_PROCESSES = ("sweep",)


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> list[Reading]:
    return make_readings(make_inputs(tmp_path_factory.mktemp("inputs")), GOLDEN / "lab.fabric.json")


def test_a_file_of_a_few_rows_is_read(
    readings: list[Reading], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """So that a large one is refused for its size alone."""
    for number, reading in enumerate(readings):
        if reading.name in (*UNANSWERED, *STARTS_PROCESSES):
            continue
        path = tmp_path / f"{number}" / reading.file
        path.parent.mkdir()
        reading.write(path, FEW_ROWS)
        with monkeypatch.context() as patch:
            if reading.environment:
                patch.setenv(reading.environment, str(path))
            code = run(command_line(reading, path))
        assert code in (0, 1), f"{reading.name}: {capfd.readouterr().err}"


def test_a_large_file_is_measured(readings: list[Reading], tmp_path: Path) -> None:
    """The program that reads it is measured, not the one that started it."""
    (reading,) = (one for one in readings if one.name == "NIC parameters")
    result = try_reading(reading, tmp_path, 2_000_000)
    assert 2_000_000 <= result.num_bytes < 2_400_000
    assert (result.exit_code, result.fault) == (2, "")
    assert result.ending.endswith(
        "bytes allowed: at most 1048576 bytes next: leave out what is not needed, or split it"
    )
    assert 0 < result.cpu_s < MAX_CPU_S
    assert 10 * 2**20 < result.peak_bytes < 150 * 2**20


@pytest.mark.parametrize(
    ("exit_code", "said", "cpu_s", "peak_bytes", "found"),
    [
        (0, "", 10.0, 2**30, []),
        (0, "", 10.1, 2**30 + 1, ["more than 10 s", "more than 1024 MiB"]),
        (1, "Traceback (most recent call last):", 1.0, 1, ["ended with 1"]),
        (-9, "", 1.0, 1, ["ended with -9"]),
        (2, "big.csv: too large\n  next: split it", 1.0, 1, []),
        (2, "big.csv: too large", 1.0, 1, ["refused without its name or a next step"]),
        (2, "too large\n  next: split it", 1.0, 1, ["refused without its name or a next step"]),
    ],
)
def test_what_must_not_happen_is_a_fault(
    exit_code: int, said: str, cpu_s: float, peak_bytes: int, found: list[str]
) -> None:
    """More than the bounds, a traceback, a process that was ended, and a refusal that leaves its reader alone."""
    assert (MAX_CPU_S, MAX_BYTES) == (10, 2**30)
    result = Result(num_bytes=1, exit_code=exit_code, cpu_s=cpu_s, peak_bytes=peak_bytes, said=said, fault="")
    assert faults(result, Path("big.csv")) == found


def test_every_format_has_a_large_file(readings: list[Reading], tmp_path: Path) -> None:
    """Formats of topologies and of traces, by the file's own look; a new one needs its line in `readings.py`."""
    topologies, traces = set(), set()
    for number, reading in enumerate(readings):
        path = tmp_path / f"{number}" / reading.file
        path.parent.mkdir()
        reading.write(path, FEW_ROWS)
        if reading.words[0] == "topo":
            topologies |= {name for name, importer in IMPORTERS.items() if importer.recognises(path)}
        if reading.words[0] == "trace":
            traces |= {name for name, trace_format in TRACE_FORMATS.items() if trace_format.recognises(path)}
    assert topologies == set(IMPORTERS)
    assert traces == set(TRACE_FORMATS)
