"""Share of max-min fair goodput that each law reaches in its first 4 ms, at 100 and 400 Gb/s.

A permutation on a fat tree of radix 8 with what a scenario fills in for the link. Above 1: max-min is the fairest
division, and not the one with the largest sum (docs/decisions/0063-defaults-that-fit-the-link.md).

Run: `python -m benchmarks.run law_shares`, with `--quick` one seed, one rate and 1 ms
"""

from typing import Any

from benchmarks.scenarios import prepared, run_to_the_end, spread_of, written
from fabrictune.cc.laws import LAWS
from fabrictune.foundation.units import PS_PER_S
from fabrictune.topology.fairness import max_min_rates

RATES_GBPS, SEEDS = (100, 400), (1, 2)
PERMUTATION = """
name: share
seed: 1
fabric: {{builder: fat_tree, radix: 8, link_rate: {rate} Gbps}}
routing: {{seed: {seed}}}
traffic: {{workload: permutation, message: 1 GB}}
law: {law}
engine: {{time_limit: {limit_ms} ms}}
"""


def benchmarks(*, is_quick: bool = False) -> list[dict[str, Any]]:
    """Return shares of the sum of max-min fair rates, as rows of benchmarks/results.json."""
    rates, seeds, limit_ms = (RATES_GBPS[:1], SEEDS[:1], 1) if is_quick else (RATES_GBPS, SEEDS, 4)
    rows = []
    for rate in rates:
        for law in LAWS:
            shares = spread_of([_share(rate, law, seed, limit_ms) for seed in seeds])
            rows.append(
                {
                    "name": f"cc.share-of-max-min.{rate}g.{law}",
                    "value": shares.median,
                    "unit": "of max-min",
                    "spread": f"{shares} over {len(seeds)} hash seeds, {limit_ms} ms",
                }
            )
    return rows


def _share(rate: int, law_name: str, seed: int, limit_ms: int) -> float:
    text = PERMUTATION.format(rate=rate, law=law_name, seed=seed, limit_ms=limit_ms)
    run = prepared(written(text))
    fair_bps = max_min_rates(run.network.epochs[0].port_QDH[:, 0], run.network.fabric.port_rate_bps_P).sum()
    _, simulation = run_to_the_end(run.inputs, run.law)
    return float(simulation.acknowledged_bytes * 8 * PS_PER_S / simulation.now_ps / fair_bps)
