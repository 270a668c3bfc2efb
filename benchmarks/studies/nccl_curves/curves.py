"""Published all-reduce curves, the systems that stand for them, and their predictions."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from fabrictune.collectives.nccl.tuning.prediction import Prediction, nccl_model, predict
from fabrictune.collectives.nccl.tuning.profiles import system_of
from fabrictune.collectives.nccl.tuning.system import System
from fabrictune.foundation.traces import Operation
from fabrictune.hardware.files import bundled_profile

FOLDER = Path(__file__).parent
LARGE_BYTES = 2**24
Row = tuple[int, float, *tuple[float, ...]]  # size, and one time or two, in microseconds


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A published curve: its file, the system that it was measured on, and the NCCL whose model chooses."""

    name: str
    system: System
    version: str


def _curve(name: str, profile: str, num_hosts: int, version: str) -> Curve:
    return Curve(name=name, system=system_of(bundled_profile(profile), num_hosts), version=version)


_SIXTEEN_NICS = replace(system_of(bundled_profile("a100"), 2), nics_per_host=16, nic_rate_bps=100e9, cpu="amd")
CURVES = (
    _curve("p5_2", "p5", 2, "2.27"),  # two numbers were fitted to it
    _curve("p4de_2", "p4de", 2, "2.27"),
    _curve("h100_1", "h100", 1, "2.28"),
    _curve("a100_1", "a100", 1, "2.27"),
    _curve("a100_2", "a100", 2, "2.27"),
    _curve("h200_2", "h200", 2, "2.28"),
    Curve(name="a100_16_nics_2", system=_SIXTEEN_NICS, version="2.27"),
    _curve("b200_2", "b200", 2, "2.27"),
)


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """How far the predictions of a curve are off."""

    predictions: tuple[Prediction, ...]
    measured_us: tuple[float, ...]

    @property
    def median_error(self) -> float:
        """Over all sizes."""
        return median(self._errors())

    @property
    def large_error(self) -> float:
        """Median from 16 MiB on."""
        return median(self._errors(LARGE_BYTES))

    @property
    def worst_error(self) -> float:
        """Over all sizes."""
        return max(self._errors())

    @property
    def num_inside(self) -> int:
        """Points inside their intervals of 90 %."""
        return sum(one.low_us <= us <= one.high_us for one, us in self._points())

    def _errors(self, least_bytes: int = 0) -> list[float]:
        points = [(one, us) for one, us in self._points() if one.size_bytes >= least_bytes]
        return [abs(one.duration.total_us / us - 1) for one, us in points]

    def _points(self) -> Iterator[tuple[Prediction, float]]:
        return zip(self.predictions, self.measured_us, strict=True)


def rows_of(name: str) -> list[Row]:
    """Return the rows of a curve's file."""
    lines = (FOLDER / f"{name}.csv").read_text().splitlines()
    rows = [line.split(",") for line in lines if line[0].isdigit()]
    return [(int(size), float(time), *map(float, filter(None, others))) for size, time, *others in rows]


def agreement(curve: Curve) -> Agreement:
    """Return a curve's predictions beside its times out of place."""
    model, rows = nccl_model(curve.system, version=curve.version), rows_of(curve.name)
    return Agreement(
        predictions=tuple(predict(model, Operation.ALL_REDUCE, row[0]) for row in rows),
        measured_us=tuple(row[1] for row in rows),
    )
