"""`python -m tests.skip`: runs with and without exact skip, and every result that differs.

Random runs, every other with features of the full engine; with `--rounds` random rounds, with `--scenarios` all
bundled scenarios, with `--cases` all conformance cases of the packet engine.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from fabrictune.conformance.suite import collect_cases
from fabrictune.scenario.compilation import compile_scenario
from fabrictune.scenario.files import load_scenario
from fabrictune.studies.simulation import run_engine
from tests.skip.features import featured_run
from tests.skip.rounds import random_rounds
from tests.skip.runs import (
    LAWS,
    Comparison,
    Run,
    compare,
    every_run_compared,
    random_run,
    searching_long,
    searching_shortly,
)

SCENARIOS = Path(__file__).parents[2] / "scenarios"


def any_run(seed: int) -> Run:
    """Return a random run, of odd seeds one with features of the full engine."""
    return featured_run(seed) if seed % 2 else random_run(seed)


def random_runs(make: Callable[[int], Run], first_seed: int, num_runs: int) -> Iterator[tuple[str, Comparison]]:
    """Yield each run's name, and what skip changed in it."""
    for seed in range(first_seed, first_seed + num_runs):
        run = make(seed)
        inputs = run.inputs()
        events_per_slice = 5_000 if seed % 7 == 0 else 10**8  # settled between slices
        searching = (searching_long, None, searching_shortly)[seed % 3]
        yield (
            f"seed {seed}, {run.law}",
            compare(searching(inputs) if searching else inputs, LAWS[run.law], events_per_slice=events_per_slice),
        )


def bundled_scenarios() -> Iterator[tuple[str, Comparison]]:
    """Yield the same for every scenario."""
    for path in sorted(SCENARIOS.glob("*.yaml")):
        with every_run_compared() as made:
            run_engine(compile_scenario(load_scenario(path, trust_code=True)))
        for got in made:
            yield path.stem, got


def conformance_cases() -> Iterator[tuple[str, Comparison]]:
    """Yield the same for every run of a case."""
    for case in collect_cases(["netsim."]):
        with every_run_compared() as made:
            case.run()
        for got in made:
            yield case.name, got


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the first run")
    parser.add_argument("--rounds", action="store_true")
    parser.add_argument("--scenarios", action="store_true")
    parser.add_argument("--cases", action="store_true")
    options = parser.parse_args()
    if options.scenarios:
        return report(bundled_scenarios(), 1)
    if options.cases:
        return report(conformance_cases(), 20)
    return report(random_runs(random_rounds if options.rounds else any_run, options.seed, options.runs), 20)


def report(runs: Iterator[tuple[str, Comparison]], runs_per_line: int) -> int:
    """Print what differs, and how far the runs are; return 1 if anything does."""
    started, num_events, num_skipped, num_repeating, num_different = time.monotonic(), 0, 0, 0, 0
    number = 0
    for number, (name, got) in enumerate(runs, 1):
        num_events += got.num_events
        num_skipped += got.num_skipped
        num_repeating += got.num_skipped > 0
        if got.differences:
            num_different += 1
            print(f"{name}: different: {', '.join(got.differences)}")
        if number % runs_per_line == 0:
            print(f"{number} runs, the last {name}, {got.num_skipped / max(got.num_events, 1):.1%} skipped", flush=True)
    print(
        f"{number} runs in {time.monotonic() - started:.0f} s: {num_repeating} skipped something, "
        f"{num_skipped / max(num_events, 1):.1%} of {num_events:,} events; {num_different} different"
    )
    return 1 if num_different else 0


if __name__ == "__main__":
    sys.exit(main())
