"""One run over two threads: wall time beside one thread, in turn, on permutations of two fat trees.

Cables are 200 m, so that threads work for a microsecond between meetings. On a machine without two free cores a window
waits for the part that is not running, and two threads lose.

Run: `python -m benchmarks.run threads`, with `--quick` the smaller tree
"""

import time
from dataclasses import replace
from functools import partial
from typing import Any

from benchmarks.packet_engine import CASES, CONFIG, LAW_SETTINGS, SEED, pinned_case
from benchmarks.scenarios import paired_ratio
from fabrictune.cc.compiler import compile_law
from fabrictune.cc.interface import CompiledLaw
from fabrictune.cc.laws import load_law
from fabrictune.netsim import _engine
from fabrictune.netsim.engine_inputs.inputs import EngineInputs, make_engine_inputs
from fabrictune.netsim.packet import make_simulation

ROUNDS = 5


def benchmarks(*, is_quick: bool = False) -> list[dict[str, Any]]:
    """Return how many times as fast two threads are, as rows of benchmarks/results.json."""
    law = compile_law(load_law("dcqcn"), LAW_SETTINGS)
    return [_row(case, law) for case in (("k8",) if is_quick else CASES)]


def _row(case: str, law: CompiledLaw) -> dict[str, Any]:
    network, traffic, _ = pinned_case(case)
    two, one = (
        make_engine_inputs(network, traffic, law, replace(CONFIG, threads=threads), seed=SEED, probe=None)
        for threads in (2, 1)
    )
    ratio = paired_ratio(partial(_wall_s, two, law), partial(_wall_s, one, law), ROUNDS)
    return {
        "name": f"netsim.two-threads.permutation-{case}",
        "value": ratio.median,
        "unit": "times as fast",
        "spread": f"{ratio} over {ROUNDS} rounds",
    }


def _wall_s(inputs: EngineInputs, law: CompiledLaw) -> float:
    simulation = make_simulation(inputs, law)
    started_s = time.perf_counter()
    outcome = simulation.advance(2**62)
    assert outcome == _engine.Outcome.FINISHED, outcome
    return time.perf_counter() - started_s
