"""`python -m tests.fuzz`: damages files, gives them to every command that reads, and prints what came of it."""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests.fuzz.doors import make_doors
from tests.fuzz.driver import try_door
from tests.fuzz.samples import make_samples


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000, help="in all")
    parser.add_argument("--only", action="append", help="a door; repeatable")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    top = Path(tempfile.mkdtemp(prefix="fuzz-"))
    (top / "samples").mkdir()
    real_data = os.environ.get("FABRICTUNE_REAL_DATA")
    doors = make_doors(make_samples(top / "samples"), Path(real_data) if real_data else None)
    doors = [door for door in doors if not options.only or door.name in options.only]
    num_faults = 0
    for number, door in enumerate(doors):
        folder = top / str(number)
        folder.mkdir()
        tally = try_door(door, folder, inputs=range(-(-options.inputs // len(doors))), seed=options.seed)
        num_faults += len(tally.faults)
        endings = ", ".join(f"{name} {count}" for name, count in tally.endings.most_common())
        print(f"{door.name}: {endings}; slowest {tally.slowest_s:.2f} s, peak {tally.peak_bytes / 2**20:.0f} MiB")
        for fault in tally.faults:
            print(f"  {fault}")
        sys.stdout.flush()
    print(f"{num_faults} faults; the inputs of those that ended a process are kept in {top}")
    return 1 if num_faults else 0


if __name__ == "__main__":
    sys.exit(main())
