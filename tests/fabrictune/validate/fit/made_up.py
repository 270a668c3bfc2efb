"""Series made up from known parameters, with noise and outliers as asked for."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from fabrictune.validate.fit.calibration import Known
from fabrictune.validate.fit.fit import model_all
from fabrictune.validate.fit.series import Series, SeriesKey
from fabrictune.validate.fit.terms import AlgorithmName

BASE: Mapping[str, tuple[float, float]] = {  # of a base profile: ns, and ns a byte, with uncertainties
    "nvlink.latency": (25e3, 0.25),
    "nvlink.collective": (1 / 362, 0.25),
    "network.latency": (10e3, 0.25),
    "network.rate": (1 / 45, 0.05),
    "network.message": (2e3, 0.25),
    "wire.latency": (10e3, 0.25),
    "wire.rate": (1 / 45, 0.05),
}
KNOWN = {name: Known(value=value, uncertainty_fraction=share) for name, (value, share) in BASE.items()}
TRUE: Mapping[str, float] = {  # ns, and ns a byte
    "nvlink.latency": 30e3,
    "nvlink.collective": 1 / 200,
    "network.latency": 6e3,
    "network.rate": 1 / 40,
    "network.message": 400.0,
    "wire.latency": 2e3,
    "wire.rate": 1 / 48,
}
SIZES = tuple(8 * 2**power for power in range(31))  # 8 B to 8 GiB
SMALL, LARGE = SIZES[:12], tuple(2**power + extra for power in range(28, 34) for extra in (0, 2 ** (power - 1)))
PATH = Path("made-up.txt")


def collective(num_ranks: int, num_hosts: int, operation: str = "all_reduce") -> SeriesKey:
    """Return the key of a collective."""
    return SeriesKey(kind="collective", operation=operation, num_ranks=num_ranks, num_hosts=num_hosts)


def perftest(operation: str, num_queue_pairs: int = 1) -> SeriesKey:
    """Return the key of a program of perftest."""
    is_latency = operation.endswith("Latency")
    kind = "latency" if is_latency else "bandwidth"
    return SeriesKey(
        kind="latency" if kind == "latency" else "bandwidth", operation=operation, num_queue_pairs=num_queue_pairs
    )


def series(key: SeriesKey, sizes: Sequence[int], times: Sequence[float]) -> Series:
    """Return a series of one file."""
    return Series(key=key, size_bytes=tuple(sizes), time_ns=tuple(times), sources=(PATH,))


def drawn(
    keys: Sequence[tuple[SeriesKey, Sequence[int]]],
    seed: int,
    *,
    spread: float = 0.0,
    outliers: float = 0.0,
    algorithm: AlgorithmName = "ring",
    true: Mapping[str, float] = TRUE,
) -> list[Series]:
    """Return series by the true parameters, times log-normal about them, a share of them 1.4 times as long."""
    random = np.random.default_rng(seed)
    made = []
    for one in model_all([series(key, sizes, [1.0] * len(sizes)) for key, sizes in keys], algorithm):
        fixed = sum(count * true[name] for name, count in one.terms.latency.items())
        byte = sum(count * true[name] for name, count in one.terms.bytes.items())
        times_E = fixed + byte * np.array(one.series.size_bytes, np.float64)
        times_E = times_E * np.exp(random.normal(0, spread, len(times_E)))
        times_E[random.random(len(times_E)) < outliers] *= 1.4
        made.append(series(one.series.key, one.series.size_bytes, times_E.tolist()))
    return made
