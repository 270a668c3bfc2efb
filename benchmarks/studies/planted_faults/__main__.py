"""Over 500 planted faults, each read by the command that a user has, on the files that a user has: how many are named?

Simulated jobs of 64, 256 and 1,024 machines have slow ranks (6 to 25 %), slow links (2 to 6 times), NICs that lose 0.5
to 2 % of packets, collections of garbage, starved loaders, wrong clocks, fabric links that lose 0.5 to 2 % of sprayed
packets, and hangs of six faults at every axis; jobs of 8 and 16 processes, over the backend that executes requests in
NCCL's order, have a rank that is stopped by turns, a starved loader, a clock that jumps, collections at moments of each
rank's own, and ranks stopped for good; testbeds of 8 and 16 hosts have cables that are 2 to 6 times slower, or lose 0.5
to 2 % of packets. 20 jobs of each size have none. The commands know nothing of what was planted.

Expected, and written down before the first run, of simulated jobs: 0.99 of the faults named by their cause (recall),
0.98 of the names right (precision), 0.96 located, no name in a clean job, and 0.95 of hangs named within 15 s. Of real
jobs the same on an idle machine; on one whose two cores others use too, clean jobs may have slow ranks by right.

On testbeds, written down before their first run, on a quiet machine: slow cables all named by `train stragglers`, lossy
ones by `rdma gray-loss` but for one in twenty that shares all its flows with a healthy one; no name in a clean job.

Run: `python -m benchmarks.studies.planted_faults [--part simulated real testbed] [--trials N] [--out DIR]`; stopped,
the same command goes on. 45 trials of each kind at 64 machines, fewer at other sizes, and 10 of each kind of real jobs
take two hours or more on two cores; testbeds want root.
"""

import argparse
import json
import sys
import time
from pathlib import Path

from benchmarks.studies.planted_faults.report import as_json, as_text
from benchmarks.studies.planted_faults.session import Session
from benchmarks.studies.planted_faults.trials import (
    CLEAN,
    KINDS,
    SHARES,
    SIMULATED_KINDS,
    SIZES,
    Result,
    Trial,
    make_trials,
)


def main() -> int:
    """Do what is left of the trials, and print the figures of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="+", default=[*KINDS], choices=KINDS, help="which jobs")
    parser.add_argument("--trials", type=int, default=45, help="of each kind, at 64 simulated machines")
    parser.add_argument(
        "--real-trials", type=int, default=10, help="of each kind, at each number of processes or hosts"
    )
    parser.add_argument("--clean", type=int, default=20, help="jobs without a fault, of each size")
    parser.add_argument("--sizes", type=int, nargs="+", default=[*SHARES], choices=SHARES)
    parser.add_argument("--kinds", nargs="+", default=[*SIMULATED_KINDS], choices=SIMULATED_KINDS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("planted-faults"), help="folder of the campaign")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no trial after so long")
    parser.add_argument("--report", action="store_true", help="only print the figures of what is done")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    trials: list[Trial] = []
    for part in options.part:
        sizes = [size for size in SIZES[part] if size in options.sizes]
        number = options.trials if part == "simulated" else options.real_trials
        trials += make_trials(part, sizes=sizes, kinds=options.kinds, trials=number, clean=options.clean)
    session = Session(options.out.resolve(), options.seed)
    if not options.report:
        try:
            for result in session.go_on(trials, time.monotonic() + 60 * options.minutes):
                print(_line(result), file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            print("stopped; the same command goes on", file=sys.stderr)
    done = session.results()
    results = [done[trial] for trial in trials if trial in done]
    print(json.dumps(as_json(results), indent=1) if options.json else as_text(results))
    return 0


def _line(result: Result) -> str:
    trial = result.trial
    if trial.kind == CLEAN:
        outcome = f"named {len(result.names)}" if result.names else "left alone"
    else:
        outcome = "located" if result.is_located else "found" if result.is_found else "MISSED"
    others = len(result.names) - result.right
    more = f", {others} other names" if others and trial.kind != CLEAN else ""
    return f"{trial.part:9} {trial.size:5} {trial.kind:20} {trial.number:3}  {outcome}{more}; {result.answer_s:.1f} s"


if __name__ == "__main__":
    sys.exit(main())
