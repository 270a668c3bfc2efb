"""How often a planted hang is named, alone and exactly, and how often a job without one is left alone.

Recall: faults whose ranks are among at most four that are named. Located: exactly those. Precision: of the jobs that
are said to hang, those in which the right ranks are named.

Run: `python -m benchmarks.studies.hangs [--trials N] [--seed N] [--ranks N ...] [--live N]` (N of each size; jobs of 64
ranks take under a second, those of 1,024 half a minute)
"""

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from benchmarks.studies.hangs.live import try_live
from benchmarks.studies.hangs.trials import LAYOUTS, Trial, try_clean, try_hang


def main() -> None:
    """Run the trials and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--clean", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ranks", type=int, nargs="+", default=[64, 128, 256, 1024], choices=list(LAYOUTS))
    parser.add_argument(
        "--live", type=int, default=0, help="stops of ranks of a real job of eight, in place of all else"
    )
    options = parser.parse_args()
    if options.live:
        _live(options.live, options.seed)
        return
    trials: list[Trial] = []
    seeds = range(options.seed, options.seed + options.trials)
    for num_ranks in options.ranks:
        hung = [_in_a_folder(try_hang, seed, num_ranks) for seed in seeds]
        clean = [_in_a_folder(try_clean, seed, num_ranks) for seed in seeds[: options.clean]]
        trials += [*hung, *clean]
        _print(f"{num_ranks} ranks", [*hung, *clean])
    by_fault = defaultdict[str, list[Trial]](list)
    for trial in trials:
        by_fault[trial.planted.fault.name if trial.planted else "none"].append(trial)
    for fault, found in by_fault.items():
        _print(fault, found)
    _print("all", trials)
    for trial in [trial for trial in trials if not trial.is_located][:20]:
        cause = trial.diagnosis.cause.value if trial.diagnosis else "nothing"
        planted = trial.planted and (trial.planted.fault.name, trial.planted.axis, trial.planted.ranks)
        print(f"    seed {trial.seed}, {trial.num_ranks} ranks, {trial.formats}: {planted}; {cause}, {trial.named[:8]}")


def _in_a_folder(try_one: Callable[[int, int, Path], Trial], seed: int, num_ranks: int) -> Trial:
    with tempfile.TemporaryDirectory() as folder:
        return try_one(seed, num_ranks, Path(folder))


def _print(name: str, trials: list[Trial]) -> None:
    faults = [trial for trial in trials if trial.planted is not None]
    alarms = [trial for trial in trials if trial.diagnosis is not None]
    right = [trial for trial in alarms if trial.is_found]
    clean = [trial for trial in trials if trial.planted is None]
    slowest = max(trial.elapsed_s for trial in trials)
    located = _share(sum(trial.is_located for trial in faults), len(faults))
    print(
        f"{name:18} recall {_share(sum(trial.is_found for trial in faults), len(faults))}, located {located}, "
        f"precision {_share(len(right), len(alarms))}, "
        f"alarms of clean jobs {sum(trial.diagnosis is not None for trial in clean)} of {len(clean)}, "
        f"slowest {slowest:.1f} s",
        flush=True,
    )


def _share(number: int, total: int) -> str:
    return f"{number / total:.3f} of {total}" if total else "-"


def _live(num_trials: int, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        trials = try_live(Path(folder), num_trials, seed=seed)
    for trial in trials:
        print(f"stopped {trial.stopped}: named {trial.named} after {trial.elapsed_s:.1f} s")
    stops = [trial for trial in trials if trial.stopped >= 0]
    within = sum(trial.named == (trial.stopped,) and trial.elapsed_s <= 15 for trial in stops)
    print(f"named within 15 s: {within} of {len(stops)}; slowest {max(trial.elapsed_s for trial in stops):.1f} s")


if __name__ == "__main__":
    main()
