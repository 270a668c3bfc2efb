"""`python -m tests.skip`: random runs with and without exact skip, and every result that differs."""

import argparse
import sys
import time

from tests.skip.runs import LAWS, compare, random_run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the first run")
    options = parser.parse_args()
    started, num_events, num_skipped, num_repeating, num_different = time.monotonic(), 0, 0, 0, 0
    for number, seed in enumerate(range(options.seed, options.seed + options.runs), 1):
        run = random_run(seed)
        got = compare(run.inputs(), LAWS[run.law])
        num_events += got.num_events
        num_skipped += got.num_skipped
        num_repeating += got.num_skipped > 0
        if got.differences:
            num_different += 1
            print(f"seed {seed}, {run.law}: different: {', '.join(got.differences)}")
        if number % 20 == 0 or number == options.runs:
            share = num_skipped / max(num_events, 1)
            print(
                f"{number} runs in {time.monotonic() - started:.0f} s: {num_repeating} skipped something, "
                f"{share:.1%} of {num_events:,} events; {num_different} different",
                flush=True,
            )
    return 1 if num_different else 0


if __name__ == "__main__":
    sys.exit(main())
