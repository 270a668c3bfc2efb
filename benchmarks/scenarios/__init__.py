"""Scenarios of benchmarks, commands as a user types them, and pairs of runs in turn.

A pair's ratio is of two runs one right after the other, so that what slows the machine slows both.
"""

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fabrictune.cc.interface import CompiledLaw
from fabrictune.netsim import _engine
from fabrictune.netsim.engine_inputs.inputs import EngineInputs, make_engine_inputs
from fabrictune.netsim.packet import make_simulation
from fabrictune.scenario.compilation import compile_scenario
from fabrictune.scenario.files import load_scenario, parse_scenario
from fabrictune.scenario.overrides import override
from fabrictune.scenario.schema import Scenario
from fabrictune.topology.network import Network

BUNDLED = Path(__file__).parents[2] / "scenarios"


def bundled(name: str, changes: Mapping[str, Any] | None = None) -> Scenario:
    """Return a bundled scenario with some of its keys changed."""
    return override(load_scenario(BUNDLED / f"{name}.yaml"), changes or {}, origin="benchmark")


def written(text: str) -> Scenario:
    """Return a scenario from its text."""
    return parse_scenario(text, Path("benchmark.yaml"))


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A scenario as the packet engine reads it."""

    inputs: EngineInputs
    law: CompiledLaw
    network: Network


def prepared(scenario: Scenario) -> Prepared:
    """Return a scenario ready for the packet engine."""
    compiled = compile_scenario(scenario)
    assert compiled.law is not None, "an engine without laws"
    config = compiled.config.with_marking()
    inputs = make_engine_inputs(
        compiled.network,
        compiled.traffic,
        compiled.law,
        config.with_telemetry() if compiled.law.uses_telemetry else config,
        seed=scenario.seed,
        probe=None,
    )
    return Prepared(inputs=inputs, law=compiled.law, network=compiled.network)


def without_skip(inputs: EngineInputs) -> EngineInputs:
    """Return a run's inputs with exact skip off."""
    return replace(inputs, settings={**inputs.settings, "skips_repeats": False})


def run_to_the_end(inputs: EngineInputs, law: CompiledLaw) -> tuple[float, _engine.Simulation]:
    """Return the processor time of a run without its set-up, and the simulation at its end or time limit."""
    simulation = make_simulation(inputs, law)
    started_s = time.process_time()
    outcome = simulation.advance(2**62)
    seconds = time.process_time() - started_s
    assert outcome in (_engine.Outcome.FINISHED, _engine.Outcome.TIME_LIMIT), outcome
    return seconds, simulation


@dataclass(frozen=True, kw_only=True)
class CommandCost:
    """What a command took, with what it started."""

    processor_s: float
    wall_s: float
    peak_mib: float


def command_cost(words: Sequence[str], folder: Path) -> CommandCost:
    """Return what a `fabrictune` command takes in a folder; the first of its process, since peaks only grow."""
    command, started_s = [sys.executable, "-m", "fabrictune", *words], time.perf_counter()
    done = subprocess.run(command, cwd=folder, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert done.returncode in (0, 1), "a run to the end, with or without findings"
    wall_s, usage = time.perf_counter() - started_s, resource.getrusage(resource.RUSAGE_CHILDREN)
    return CommandCost(processor_s=usage.ru_utime + usage.ru_stime, wall_s=wall_s, peak_mib=usage.ru_maxrss / 1024)


@dataclass(frozen=True, kw_only=True)
class Spread:
    """A median, and the quartiles around it."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.low:.3g} to {self.high:.3g}"


def spread_of(values: Sequence[float]) -> Spread:
    """Return the median and quartiles of some values."""
    ordered = sorted(values)
    return Spread(
        median=statistics.median(ordered), low=ordered[len(ordered) // 4], high=ordered[3 * len(ordered) // 4]
    )


def paired_ratio(first: Callable[[], float], second: Callable[[], float], rounds: int) -> Spread:
    """Return the second's time over the first's, round by round; each begins every other round, and one is a trial."""
    ratios = []
    for number in range(rounds + 1):
        times = {}
        for side in (first, second) if number % 2 else (second, first):
            times[side] = side()
        ratios.append(times[second] / times[first])
    return spread_of(ratios[1:])
