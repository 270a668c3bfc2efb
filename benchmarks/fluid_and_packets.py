"""Runs at max-min shares beside the same runs in packets: makespans, and times of single transfers.

Bundled scenarios that both engines can run, under their own laws, and random ones from seeds, under each law of LAWS:
fabric, rate, sizes and placement are drawn. The factor is the time in packets over that at shares. All rows are written
to `fluid_and_packets.csv` beside this module, from which netsim/fluid/agreement.py has its intervals.

Run: `python -m benchmarks.run fluid_and_packets`, with `--quick` one seed and the bundled scenarios of a second or two
"""

import csv
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scenarios import bundled, written
from fabrictune.foundation.errors import FabrictuneWarning
from fabrictune.foundation.metrics.transfers import completion_times_ps, makespan_ps, select_flows
from fabrictune.foundation.records import RunRecord
from fabrictune.scenario.overrides import override
from fabrictune.scenario.schema import Scenario
from fabrictune.studies.simulation import simulate

LAWS = ("none", "swift", "hybrid", "dcqcn_firmware", "hpcc", "dcqcn")
SEEDS = 12
TABLE = Path(__file__).with_suffix(".csv")
QUICK_BUNDLED = ("allreduce", "incast", "permutation")
BUNDLED = (
    *QUICK_BUNDLED,
    "demo-contiguous",
    "demo-interleaved",
    "job-beside-burst",
    "simai-128",
    "two-jobs",
    "web-search",
)
HEAD = """name: {name}
seed: {seed}
routing: {{seed: {seed}}}
law: {law}
fabric: {fabric}
traffic: {traffic}
"""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One scenario in both engines; the last three are quantiles over its transfers, at 2.5, 50 and 97.5 %."""

    case: str
    law: str
    seed: int
    held_share: float
    fluid_ps: int
    packets_ps: int
    factor: float
    transfer_low: float
    transfer_median: float
    transfer_high: float


def benchmarks(*, is_quick: bool = False) -> list[dict[str, Any]]:
    """Return quantiles of the factors by law and class, as rows of benchmarks/results.json; writes the table."""
    rows = [compare(name, scenario) for name, scenario in _scenarios(is_quick=is_quick)]
    if not is_quick:
        _write(rows)
    return [row for law in LAWS for row in _figures(law, rows)]


def random_scenarios(law: str, seed: int) -> Iterator[tuple[str, Scenario]]:
    """Yield a scenario of each kind of traffic, the same for all laws."""
    dice = np.random.default_rng([seed, 91])
    rate = int(dice.choice([100, 200, 400]))
    size_kb = int(np.exp(dice.uniform(np.log(100), np.log(8_000))))
    uplinks = int(dice.choice([2, 4, 8]))
    tree = f"{{builder: fat_tree, radix: {dice.choice([4, 8])}, link_rate: {rate} Gbps}}"
    clos = (
        f"{{builder: clos, num_hosts: 32, hosts_per_tor_set: 8, nics_per_host: 1, tiers: 2, nic_rate: {rate} Gbps, "
        f"uplink_rate: {rate} Gbps, downlink_split: 1, uplinks_per_tor: {uplinks}}}"
    )
    one_tor = (
        f"{{builder: clos, num_hosts: 32, hosts_per_tor_set: 32, nics_per_host: 1, tiers: 2, nic_rate: {rate} Gbps, "
        "downlink_split: 1}"
    )
    ring = f"workload: all_reduce, layout: {{dp: 32}}, message: {8 * size_kb} KB"
    step = "workload: neighbours, layout: {tp: 2, pp: 4, dp: 4}, gpus_per_host: 2, axes: [dp, pp]"
    kinds = {
        "permutation": (tree, f"{{workload: permutation, message: {size_kb} KB}}"),
        "permutation-one-tor": (one_tor, f"{{workload: permutation, message: {size_kb} KB}}"),
        "all-to-all": (clos, f"{{workload: all_to_all, message: {size_kb // 8 + 1} KB}}"),
        "incast": (clos, f"{{workload: incast, senders: {dice.integers(2, 31)}, message: {size_kb} KB}}"),
        "ring-well-placed": (one_tor, f"{{{ring}}}"),
        "ring-badly-placed": (clos, f"{{{ring}, placement: random, placement_seed: {seed}}}"),
        "step-badly-placed": (clos, f"{{{step}, message: {size_kb} KB, placement: random, placement_seed: {seed}}}"),
        "poisson": (
            tree,
            f"{{workload: poisson, sizes: web_search, load: {dice.integers(2, 8) / 10}, duration: 1 ms}}",
        ),
    }
    for kind, (fabric, traffic) in kinds.items():
        yield kind, written(HEAD.format(name=kind, seed=seed, law=law, fabric=fabric, traffic=traffic))


def compare(case: str, scenario: Scenario) -> Compared:
    """Return a scenario's times in both engines."""
    fluid, packets = (_run(scenario, engine) for engine in ({"name": "fluid"}, {"skip": "exact"}))
    tables = [record.tables["transfers"] for record in (fluid, packets)]
    fluid_ps, packets_ps = map(makespan_ps, tables)
    ours_F, theirs_F = (completion_times_ps(select_flows(table)) for table in tables)
    low, median, high = np.quantile(theirs_F / ours_F, [0.025, 0.5, 0.975])  # noqa: TID251, of a distribution
    return Compared(
        case=case,
        law=scenario.law.name,
        seed=scenario.seed,
        held_share=round(fluid.run["skip"]["fluid"]["held_share"], 4),
        fluid_ps=int(fluid_ps),
        packets_ps=int(packets_ps),
        factor=round(packets_ps / fluid_ps, 5),
        transfer_low=round(float(low), 4),
        transfer_median=round(float(median), 4),
        transfer_high=round(float(high), 4),
    )


def _scenarios(*, is_quick: bool) -> Iterator[tuple[str, Scenario]]:
    for name in QUICK_BUNDLED if is_quick else BUNDLED:
        yield f"{name}.yaml", bundled(name, {"probe": None, "expect": []})
    for law in LAWS:
        for seed in range(1 if is_quick else SEEDS):
            yield from random_scenarios(law, seed)


def _run(scenario: Scenario, engine: dict[str, Any]) -> RunRecord:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FabrictuneWarning)
        settings = {f"engine.{key}": value for key, value in engine.items()}
        return simulate(override(scenario, settings, origin="benchmark"), with_collisions=False)


def _write(rows: list[Compared]) -> None:
    with TABLE.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(asdict(rows[0])), lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def _figures(law: str, rows: list[Compared]) -> Iterator[dict[str, Any]]:
    for kind, is_held, most in (("alone", False, 0.05), ("held", True, 0.15)):
        of_kind = [row for row in rows if row.law == law and (row.held_share > 0) == is_held]
        if not of_kind:
            continue
        factors = np.array([row.factor for row in of_kind])
        num_near = int((np.abs(factors - 1) <= most).sum())
        yield {
            "name": f"netsim.packets-over-fluid.{law}.{kind}",
            "value": float(np.median(factors)),
            "unit": "times the makespan",
            "spread": f"{factors.min():.3f} to {factors.max():.3f}, {num_near} of {len(factors)} within {most:.0%}",
        }
