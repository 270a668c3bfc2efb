"""`python -m tests.threads`: runs over one thread and over several, and every result that differs.

Random runs of many kinds, short ones with all features and longer ones with few; with `--scenarios` all bundled
scenarios, with `--cases` all conformance cases of the packet engine.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from fabrictune.conformance.suite import collect_cases
from fabrictune.netsim.config.capture import CaptureConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.scenario.compilation import compile_scenario
from fabrictune.scenario.files import load_scenario
from fabrictune.studies.simulation import run_engine
from tests.netsim.scenarios import COMPILED, inputs_of, random_scenario
from tests.skip.runs import LAWS, random_run
from tests.threads.runs import Comparison, compare, every_run_compared

SCENARIOS = Path(__file__).parents[2] / "scenarios"


def random_runs(first_seed: int, num_runs: int, num_threads: int) -> Iterator[tuple[str, Comparison]]:
    """Yield each run's name, and what threads changed in it."""
    probe = ProbeConfig(interval_ns=2_000, ports="all", all_flows=True)
    for seed in range(first_seed, first_seed + num_runs):
        scenario = random_scenario(seed)
        capture = CaptureConfig(at="receiver") if seed % 2 else None
        inputs = inputs_of(scenario, probe if seed % 3 else None, capture)
        per_slice = 10**8 if seed % 2 else 300
        yield f"features {seed}", compare(inputs, COMPILED[scenario.law], num_threads, events_per_slice=per_slice)
        run = random_run(seed)
        yield f"repeats {seed}, {run.law}", compare(run.inputs(), LAWS[run.law], num_threads)


def bundled_scenarios(num_threads: int) -> Iterator[tuple[str, Comparison]]:
    """Yield the same for every scenario."""
    for path in sorted(SCENARIOS.glob("*.yaml")):
        with every_run_compared(num_threads) as made:
            run_engine(compile_scenario(load_scenario(path, trust_code=True)))
        for got in made:
            yield path.stem, got


def conformance_cases(num_threads: int) -> Iterator[tuple[str, Comparison]]:
    """Yield the same for every run of a case."""
    for case in collect_cases(["netsim."]):
        with every_run_compared(num_threads) as made:
            case.run()
        for got in made:
            yield case.name, got


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the first run")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--scenarios", action="store_true")
    parser.add_argument("--cases", action="store_true")
    options = parser.parse_args()
    if options.scenarios:
        return report(bundled_scenarios(options.threads), 1)
    if options.cases:
        return report(conformance_cases(options.threads), 20)
    return report(random_runs(options.seed, options.runs, options.threads), 40)


def report(runs: Iterator[tuple[str, Comparison]], runs_per_line: int) -> int:
    """Print what differs, and how far the runs are; return 1 if anything does."""
    started, num_events, num_cut, num_different, number = time.monotonic(), 0, 0, 0, 0
    for number, (name, got) in enumerate(runs, 1):
        num_events += got.num_events
        num_cut += got.num_parts > 1
        if got.differences:
            num_different += 1
            print(f"{name}: different: {', '.join(got.differences)}", flush=True)
        if number % runs_per_line == 0:
            print(f"{number} runs, the last {name} in {got.num_parts} parts", flush=True)
    print(
        f"{number} runs in {time.monotonic() - started:.0f} s: {num_cut} of them cut, {num_events:,} events; "
        f"{num_different} different"
    )
    return 1 if num_different else 0


if __name__ == "__main__":
    sys.exit(main())
