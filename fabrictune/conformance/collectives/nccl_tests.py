"""The bandwidth that nccl-tests prints for a time, against what it printed itself in public runs."""

from functools import partial

from fabrictune.collectives.measurement.measurements import Measurement
from fabrictune.foundation.cases import Case, around

_GB_PER_S = 8e9
# name, ranks, bytes, microseconds, printed busbw in GB/s to two decimals, and where it was printed
_PRINTED = (
    ("all_reduce", 8, 8_589_934_592, 63896.0, 235.26, "superbenchmark, tests/data/nccl_allreduce.log"),
    ("all_reduce", 8, 1_048_576, 74.78, 24.54, "superbenchmark, tests/data/nccl_allreduce.log"),
    ("send_recv", 8, 26_843_545_600, 4586620.0, 5.85, "CCI-MOC/roce-testing, sendrecv_roce_4gpu.log"),
)


def cases() -> tuple[Case, ...]:
    """Return a case for each printed row."""
    return tuple(
        Case(
            name=f"collectives.busbw-{name.replace('_', '-')}-{num_ranks}-ranks-{size}-bytes",
            source=f"printed by nccl-tests: {place}",
            unit="GB/s",
            **around(printed, 0.01 / printed),
            run=partial(_busbw, name, num_ranks, size, time_us),
            trust="C",
        )
        for name, num_ranks, size, time_us, printed, place in _PRINTED
    )


def _busbw(name: str, num_ranks: int, size: int, time_us: float) -> float:
    row = Measurement(name=name, is_in_place=False, size_bytes=size, num_ranks=num_ranks, mean_ns=time_us * 1000)
    return row.bus_bandwidth_bps / _GB_PER_S
