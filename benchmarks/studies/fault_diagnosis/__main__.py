"""How often the rules name the fault of a modelled job, and how soon; and how often they end a healthy one.

Recall: faults whose cause and entity are named, of all. Precision: of the diagnoses that end a generation, those that
are right; healthy jobs are among them.

Run: `python -m benchmarks.studies.fault_diagnosis [--trials N] [--seed N]` (N of each fault and trouble; 100 are
a minute or two)
"""

import argparse

from benchmarks.studies.fault_diagnosis.faults import FAULTS, TROUBLES
from benchmarks.studies.fault_diagnosis.trials import Trial, try_fault, try_trouble


def main() -> None:
    """Run the trials and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.trials)
    trials: list[Trial] = []
    print(f"{'':18}{'named':>12}{'median s':>10}{'p90 s':>8}{'p90 steps':>11}")
    for name in FAULTS:
        rows = [try_fault(name, seed) for seed in seeds]
        trials += rows
        after_s, steps = sorted(row.after_s for row in rows), sorted(row.after_steps for row in rows)
        right = sum(row.is_right for row in rows)
        last = int(0.9 * (len(rows) - 1))
        print(
            f"{name:18}{right:>6} of {len(rows):<3}"
            f"{after_s[len(rows) // 2]:>9.1f}{after_s[last]:>8.1f}{steps[last]:>11.1f}"
        )
        for row in [row for row in rows if not row.is_right][:3]:
            print(f"    seed {row.seed}: {_outcome(row)}, not {row.truth and row.truth.entities}")
    print(f"{'':18}{'not ended':>12}{'named slow':>12}")
    for name in TROUBLES:
        rows = [try_trouble(name, seed) for seed in seeds]
        trials += rows
        print(
            f"{name:18}{sum(row.is_right for row in rows):>6} of {len(rows):<3}"
            f"{sum(bool(row.slow) for row in rows):>11}"
        )
        for row in [row for row in rows if not row.is_right][:3]:
            print(f"    seed {row.seed}: {_outcome(row)}")
    faults = [row for row in trials if row.truth is not None]
    diagnosed = [row for row in trials if row.diagnosis is not None]
    print(
        f"recall {sum(row.is_right for row in faults) / len(faults):.2%} of {len(faults)} faults, "
        f"precision {sum(row.is_right for row in diagnosed) / len(diagnosed):.2%} of {len(diagnosed)} diagnoses"
    )


def _outcome(row: Trial) -> str:
    if row.diagnosis is None:
        return "nothing"
    return f"{row.diagnosis.cause}, {row.diagnosis.entity}"


if __name__ == "__main__":
    main()
