"""How often a planted lossy link is found and located, and how often a healthy one is named.

Run: `python -m benchmarks.studies.gray_loss [--trials N] [--seed N] [--hosts N ...]` (20 of each loss and size are
about seven minutes). Expectations, written before the first run, are in docs/decisions/0109-gray-loss.md.
"""

import argparse

from benchmarks.studies.gray_loss.trials import FABRICS, Bench

LOSSES = (0.005, 0.01, 0.02)


def main() -> None:
    """Run the trials and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hosts", type=int, nargs="*", choices=[*FABRICS], default=[64, 128, 432, 1024])
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.trials)
    total = found = located = wrong = alarms = clean = 0
    print(f"{'hosts':>6}{'links':>7}{'loss':>8}{'packets a host':>16}{'found':>10}{'located':>10}{'wrong names':>13}")
    for num_hosts in options.hosts:
        bench = Bench(num_hosts, options.seed)
        for loss in LOSSES:
            packets = bench.packets(loss)
            rows = [bench.trial(loss, seed, packets=packets) for seed in seeds]
            here = [sum(row.is_found for row in rows), sum(row.is_located for row in rows)]
            wrong_here = sum(row.num_wrong for row in rows)
            print(
                f"{num_hosts:>6}{len(bench.inner):>7}{loss:>8.1%}{packets:>16,}"
                f"{here[0]:>6} of {len(rows)}{here[1]:>6} of {len(rows)}{wrong_here:>13}"
            )
            total, found, located = total + len(rows), found + here[0], located + here[1]
            wrong += wrong_here
        healthy = [bench.trial(0.005, seed, packets=bench.packets(0.005), is_clean=True) for seed in seeds]
        num_alarms = sum(bool(row.report.lossy) for row in healthy)
        print(f"{num_hosts:>6}{len(bench.inner):>7}{'clean':>8}{bench.packets(0.005):>16,}{num_alarms:>6} alarms")
        alarms, clean = alarms + num_alarms, clean + len(healthy)
    named = found + wrong + alarms
    print(
        f"recall {found / total:.2%} and located {located / total:.2%} of {total}, precision "
        f"{found / max(1, named):.2%} of {named} names, alarms in {alarms} of {clean} clean runs"
    )


if __name__ == "__main__":
    main()
