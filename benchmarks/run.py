"""Run the benchmarks and write `benchmarks/results.json`: a list of {name, value, unit, spread, command, machine}.

Each module below has `benchmarks()`, which returns rows with name, value, unit and spread. Each runs in a process of
its own, so that none finds another's memory or warm caches, and one after the other, so that none has a neighbour.

Run: `make bench`, or `python -m benchmarks.run law_call` for some of them; `--quick` runs the short form of those that
have one, smaller and with fewer rounds.
"""

import inspect
import json
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

from fabrictune.foundation.records import describe_machine

BENCHMARKS = (
    "acknowledgement_classes",
    "adaptive_routing",
    "captures",
    "checkpoint",
    "ecmp",
    "engine_features",
    "exact_skip",
    "fluid_and_packets",
    "fluid_speed",
    "folded_step",
    "hpcc_figure_11",
    "hybrid_parameters",
    "law_call",
    "law_shares",
    "loaders",
    "max_min_rates",
    "own_time",
    "packet_engine",
    "pages",
    "path_choice",
    "plans",
    "predicted_job",
    "recovery",
    "ring_memory",
    "roofline",
    "simai_all_reduce",
    "skipped_step",
    "spans",
    "startup_storm",
    "sweeps",
    "threads",
    "trainer",
    "trainer_gpu",
    "trainer_kernels",
    "ultra_ethernet",
)
RESULTS = Path(__file__).with_name("results.json")


def main(arguments: list[str]) -> None:
    """Run the named benchmarks (all, if none is named), print the machine and each row, and write them all."""
    names, is_quick = [name for name in arguments if name != "--quick"], "--quick" in arguments
    unknown = set(names) - set(BENCHMARKS)
    if unknown:
        sys.exit(f"no such benchmark: {', '.join(sorted(unknown))}\n  allowed: {', '.join(BENCHMARKS)}")
    print(describe_machine())
    rows = [row for name in names or BENCHMARKS for row in _run_alone(name, is_quick)]
    RESULTS.write_text(json.dumps(rows, indent=2) + "\n")
    print(f"{len(rows)} figures in {RESULTS}")


def _run_alone(name: str, is_quick: bool) -> list[dict[str, Any]]:
    print(f"{_command(name, is_quick)} ...", flush=True)
    with ProcessPoolExecutor(max_workers=1, mp_context=multiprocessing.get_context("spawn")) as pool:
        rows = pool.submit(_rows, name, is_quick).result()  # unlike a Pool's, its process may start others
    for row in rows:
        print(f"  {row['name']:44} {row['value']:>15,.2f} {row['unit']:18} {row['spread']}", flush=True)
    return rows


def _rows(name: str, is_quick: bool) -> list[dict[str, Any]]:
    benchmarks = import_module(f"benchmarks.{name}").benchmarks
    has_short_form = "is_quick" in inspect.signature(benchmarks).parameters
    own = {"command": _command(name, is_quick and has_short_form), "machine": describe_machine()}
    return [own | row for row in (benchmarks(is_quick=is_quick) if has_short_form else benchmarks())]


def _command(name: str, is_quick: bool) -> str:
    return f"python -m benchmarks.run {'--quick ' if is_quick else ''}{name}"


if __name__ == "__main__":
    main(sys.argv[1:])
