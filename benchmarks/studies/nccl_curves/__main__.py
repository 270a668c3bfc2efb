"""Predicted all-reduces against published curves: errors, and points inside the intervals of 90 %.

Expected before the first run, and what was found: docs/decisions/0089-nccls-own-choice.md.

Run: `python -m benchmarks.studies.nccl_curves`
"""

from collections.abc import Iterator

from benchmarks.studies.nccl_curves.curves import CURVES, agreement


def lines() -> Iterator[str]:
    """Yield a line for each curve, and one for all of them."""
    yield "| curve | median error | from 16 MiB on | worst | inside |"
    yield "| --- | --- | --- | --- | --- |"
    num_inside, num_points = 0, 0
    for curve in CURVES:
        found = agreement(curve)
        num_inside, num_points = num_inside + found.num_inside, num_points + len(found.measured_us)
        yield (
            f"| {curve.name} | {found.median_error:.1%} | {found.large_error:.1%} | {found.worst_error:.1%} | "
            f"{found.num_inside} of {len(found.measured_us)} |"
        )
    yield f"published times inside the interval: {num_inside} of {num_points}, {num_inside / num_points:.1%}"


if __name__ == "__main__":
    for line in lines():
        print(line)
