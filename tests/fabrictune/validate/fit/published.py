"""Published times of collectives, in microseconds by size: out of place and in place.

Source: MI100: ROCm/rccl, issue 1129, comment of 2024-04-01, two MI100 on PCIe; of others, their files beside the tests
of NCCL's model.
"""

from pathlib import Path

CURVES = Path(__file__).parents[3] / "collectives" / "nccl" / "tuning" / "curves"


def curve(name: str) -> tuple[tuple[int, *tuple[float, ...]], ...]:
    """Return a published curve of that name: size, and one time or two."""
    rows = [line.split(",") for line in (CURVES / f"{name}.csv").read_text().splitlines() if line[0].isdigit()]
    return tuple((int(size), *(float(time) for time in times if time)) for size, *times in rows)


MI100 = (
    *((8, 13.10, 13.92), (16, 13.46, 13.64), (32, 13.00, 11.62), (64, 12.11, 12.17), (128, 12.34, 12.33)),
    *((256, 12.07, 12.14), (512, 12.39, 12.53), (1024, 12.71, 12.67), (2048, 12.90, 13.31), (4096, 13.21, 13.53)),
    *((8192, 13.20, 13.49), (16384, 25.15, 24.78), (32768, 23.85, 22.74), (65536, 22.78, 23.14)),
    *((131072, 25.36, 25.38), (262144, 31.88, 31.49), (524288, 44.32, 44.44), (1048576, 65.88, 66.30)),
    *((2097152, 109.2, 109.0), (4194304, 198.9, 198.7), (8388608, 376.0, 389.9), (16777216, 736.6, 743.3)),
    *((33554432, 1458.0, 1458.3), (67108864, 2904.3, 2911.0), (134217728, 5749.8, 5762.7)),
)
