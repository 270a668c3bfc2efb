"""`python -m tests.fuzz`: damages files, gives them to every command that reads, and prints what came of it.

All doors are tried in turn, ROUND inputs at a time. A run that is stopped prints what it has and says how it goes on.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests.fuzz.doors import Door, make_doors
from tests.fuzz.driver import Tally, try_door
from tests.fuzz.samples import make_samples

ROUND = 100  # inputs of a door


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000, help="of all doors")
    parser.add_argument("--first", type=int, default=0, help="the first input of each door, to go on from")
    parser.add_argument("--only", action="append", help="a door; repeatable")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    top = Path(tempfile.mkdtemp(prefix="fuzz-"))
    (top / "samples").mkdir()
    real_data = os.environ.get("FABRICTUNE_REAL_DATA")
    doors = make_doors(make_samples(top / "samples"), Path(real_data) if real_data else None)
    inputs = range(options.first, -(-options.inputs // len(doors)))
    doors = [door for door in doors if not options.only or door.name in options.only]
    tallies = {door.name: Tally(name=door.name) for door in doors}
    try:
        _try_all(doors, top, inputs, options.seed, tallies)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
    num_faults = sum(len(tally.faults) for tally in tallies.values())
    for tally in tallies.values():
        endings = ", ".join(f"{name} {count}" for name, count in tally.endings.most_common())
        print(f"{tally.name}: {endings}; slowest {tally.slowest_s:.2f} s, peak {tally.peak_bytes / 2**20:.0f} MiB")
    print(f"{num_faults} faults; the inputs of those that ended a process are kept in {top}")
    return 1 if num_faults else 0


def _try_all(doors: list[Door], top: Path, inputs: range, seed: int, tallies: dict[str, Tally]) -> None:
    for first in inputs[::ROUND]:
        for number, door in enumerate(doors):
            folder = top / str(number)
            folder.mkdir(exist_ok=True)
            tally = try_door(door, folder, inputs=range(first, min(first + ROUND, inputs.stop)), seed=seed)
            for fault in tally.faults:
                print(f"{door.name}: {fault}", flush=True)
            tallies[door.name].add(tally)
        print(f"--first {min(first + ROUND, inputs.stop)} goes on; {inputs.stop} inputs of each door", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
