"""What `make sanitize` runs, in the release build and in those with sanitizers: a line for each result.

`python -m tests.sanitized [FOLDER]` takes the engines built in FOLDER in place of the installed ones; with
`--over-threads` it only gives runs over several threads. Random scenarios and random flows give a digest of their
results, conformance cases whose names hold one of `CASES` their value.
"""

import argparse
import hashlib
import sys
from collections.abc import Iterator, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

NUM_SCENARIOS = 300
NUM_SKIPPING = 300
NUM_OVER_THREADS = 200
CASES = ("incast-8", "incast-15", "equal-flows", "permutation-16", "pfc", "conserved", "go-back-n", "failure", "spray")
NUM_SHARINGS = 100
NUM_FLUIDS = 200


def take_engines(folder: Path) -> None:
    """Let the engines built in a folder be those that are imported from now on."""
    for name in ("fabrictune.netsim._engine", "fabrictune.topology._fairness"):
        (file,) = folder.glob(f"{name.rpartition('.')[2]}.*.so")
        spec = spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(module)


def digest(tables: Mapping[str, Mapping[str, NDArray[Any]]]) -> str:
    """Return a digest of every column, in the order of their names."""
    total = hashlib.sha256()
    for name, columns in sorted(tables.items()):
        for column, values in sorted(columns.items()):
            total.update(f"{name}.{column} {len(values)} ".encode() + np.ascontiguousarray(values).tobytes())
    return total.hexdigest()[:16]


def lines() -> Iterator[str]:
    """Yield the results."""
    yield from _scenarios()
    yield from _skipping_runs()
    yield from runs_over_threads()
    yield from _cases()
    yield from _sharings()
    yield from _fluids()


def _scenarios() -> Iterator[str]:
    from fabrictune.netsim.config.capture import CaptureConfig
    from fabrictune.netsim.config.probes import ProbeConfig
    from fabrictune.netsim.packet import make_simulation
    from tests.netsim.scenarios import COMPILED, inputs_of, random_scenario

    probe = ProbeConfig(interval_ns=2_000, ports="all", all_flows=True)
    for seed in range(NUM_SCENARIOS):
        scenario = random_scenario(seed)
        law = COMPILED[scenario.law]
        capture = CaptureConfig(at="receiver") if seed % 2 else None  # without, the lean engine has its share
        simulation = make_simulation(inputs_of(scenario, probe, capture), law)
        outcome = simulation.advance(2**62).name
        tables = {
            "transfers": simulation.transfer_columns(),
            "ports": simulation.port_columns(),
            "queues": simulation.queue_columns(),
            "samples": simulation.port_sample_columns(),
            "flow_samples": simulation.flow_sample_columns(),
            "captured": simulation.capture_columns(),
        }
        yield f"scenario {seed} {outcome} {simulation.now_ps} {digest(tables)}"


def _skipping_runs() -> Iterator[str]:
    from tests.skip.features import featured_run
    from tests.skip.runs import LAWS, finished, random_run, results, searching_long

    for seed in range(NUM_SKIPPING):
        run = featured_run(seed) if seed % 2 else random_run(seed)
        inputs = run.inputs() if seed % 3 else searching_long(run.inputs())
        simulation = finished(inputs, LAWS[run.law], skips=True, events_per_slice=10**8 if seed % 2 else 5_000)
        text = "".join(f"{name} {value!r}" for name, value in results(simulation).items())
        yield f"skipping {seed} {simulation.num_skipped_events} {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def runs_over_threads() -> Iterator[str]:
    """Yield the results of runs over two to four threads, in half of them a few events at a time."""
    from tests.netsim.scenarios import COMPILED, inputs_of, random_scenario
    from tests.skip.runs import results
    from tests.threads.runs import finished

    for seed in range(NUM_OVER_THREADS):
        scenario = random_scenario(seed)
        per_slice = 10**8 if seed % 2 else 300
        simulation = finished(inputs_of(scenario), COMPILED[scenario.law], 2 + seed % 3, events_per_slice=per_slice)
        text = "".join(f"{name} {value!r}" for name, value in results(simulation).items())
        yield f"over threads {seed} {simulation.num_parts} {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _cases() -> Iterator[str]:
    from fabrictune.conformance.suite import collect_cases

    for case in collect_cases(["netsim."]):
        if any(part in case.name for part in CASES):
            yield f"{case.name} {case.run()}"


def _sharings() -> Iterator[str]:
    from fabrictune.topology.fairness import max_min_rates

    for seed in range(NUM_SHARINGS):
        dice = np.random.default_rng(seed)
        num_flows, num_ports = dice.integers(1, 60, 2)
        port_QH = dice.integers(-1, num_ports, (num_flows, dice.integers(1, 6)))
        rates = max_min_rates(port_QH, dice.integers(0, 400, num_ports), dice.integers(0, 100, num_flows))
        yield f"sharing {seed} {digest({'rates': {'bps': rates}})}"


def _fluids() -> Iterator[str]:
    from fabrictune.netsim.fluid.kernel import Widening, Widenings, make_fluid, run_to_the_end, start
    from tests.skip.runs import random_run

    bounds = Widening(early=0.1, late=0.3)
    for seed in range(NUM_FLUIDS):
        inputs = random_run(seed).inputs()
        fluid = make_fluid(inputs)
        for widenings in (Widenings(), Widenings(alone=bounds, held=bounds)):
            start(fluid, widenings)
            run_to_the_end(fluid)
        num = len(inputs.traffic)
        columns = {name: fluid.transfer_column(name, 0, num) for name in fluid.transfer_column_names()}
        yield f"fluid {seed} {fluid.now_ps} {digest({'transfers': columns})}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--over-threads", action="store_true")
    options = parser.parse_args()
    if options.folder:
        take_engines(options.folder)
    for line in runs_over_threads() if options.over_threads else lines():
        print(line, flush=True)
