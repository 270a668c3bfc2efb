"""Exact skip: how much faster a ring is with each law, and what it costs where nothing repeats.

Each row is a ratio of processor times of the engine, off and exact in turn; both runs have the same events, which the
benchmark checks. The ring of 32 NICs lies under one set of ToRs, and its rounds repeat; SimAI's of 128 lies on eight,
where only packets do. Nothing repeats in the others, of which the incast is too short to be searched.

Run: `python -m benchmarks.run exact_skip`, with `--quick` a smaller ring and fewer rounds
"""

from functools import partial
from typing import Any

from benchmarks.scenarios import bundled, paired_ratio, prepared, run_to_the_end, without_skip, written
from fabrictune.cc.laws import LAWS
from fabrictune.netsim import _engine
from fabrictune.scenario.overrides import override
from fabrictune.scenario.schema import Scenario

RING = """
name: ring
fabric: {{builder: clos, num_hosts: 32, hosts_per_tor_set: 32, nics_per_host: 1, tiers: 2}}
traffic: {{workload: all_reduce, layout: {{dp: 32}}, message: {message}}}
law: {law}
"""
PERMUTATION = """
name: permutation
fabric: {{builder: fat_tree, radix: {radix}}}
traffic: {{workload: permutation, message: 2 MB}}
law: dcqcn_firmware
"""


def benchmarks(*, is_quick: bool = False) -> list[dict[str, Any]]:
    """Return ratios of processor time, as rows of benchmarks/results.json."""
    laws, message, rounds = (("none", "swift"), "64 MB", 3) if is_quick else (tuple(LAWS), "512 MB", 5)
    rings = {f"ring-32.{law}": written(RING.format(law=law, message=message)) for law in laws}
    rings |= {} if is_quick else {"simai-128": bundled("simai-128")}
    others = {"permutation-k8": written(PERMUTATION.format(radix=8)), "incast": bundled("incast")}
    if not is_quick:
        others |= {"permutation-k16": written(PERMUTATION.format(radix=16)), "web-search": bundled("web-search")}
    rows = [_row(f"netsim.exact-skip.{name}", ring, 1, is_speed=True) for name, ring in rings.items()]
    return rows + [_row(f"netsim.exact-skip.{name}", other, rounds, is_speed=False) for name, other in others.items()]


def _row(name: str, scenario: Scenario, rounds: int, *, is_speed: bool) -> dict[str, Any]:
    run = prepared(override(scenario, {"engine.skip": "exact"}, origin="benchmark"))
    last: dict[bool, _engine.Simulation] = {}

    def seconds(skips: bool) -> float:
        time_s, last[skips] = run_to_the_end(run.inputs if skips else without_skip(run.inputs), run.law)
        return time_s

    off, exact = partial(seconds, False), partial(seconds, True)
    ratio = paired_ratio(exact, off, rounds) if is_speed else paired_ratio(off, exact, rounds)
    assert last[True].num_events == last[False].num_events, f"{name}: skip has changed the run"
    share = last[True].num_skipped_events / last[True].num_events
    return {
        "name": name,
        "value": ratio.median,
        "unit": "times as fast" if is_speed else "of the time",
        "spread": f"{ratio} over {rounds} rounds, {share:.1%} of {last[True].num_events:,} events skipped",
    }
