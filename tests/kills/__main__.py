"""`python -m tests.kills`: kills every command that writes, and prints what came of it."""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tests.kills.commands import UNTRIED, WRITINGS
from tests.kills.driver import kill_often
from tests.kills.inputs import make_inputs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="of each command")
    parser.add_argument("--only", action="append", help="a command; repeatable")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    top = Path(tempfile.mkdtemp(prefix="kills-"))
    (top / "inputs").mkdir()
    inputs = make_inputs(top / "inputs")
    num_faults = 0
    for name, reason in UNTRIED.items():
        print(f"{name}: not tried: {reason}")
    for number, writing in enumerate(WRITINGS):
        if options.only and writing.name not in options.only:
            continue
        if lack := writing.needs():
            print(f"{writing.name}: not tried: {lack}")
            continue
        place = top / str(number)
        place.mkdir()
        tally = kill_often(writing, inputs, place, kills=options.kills, seed=options.seed)
        num_faults += len(tally.faults)
        states = ", ".join(f"{state}: {count}" for state, count in sorted(tally.states.items()))
        print(f"{tally.name}: {tally.kills} killed, {tally.too_late} over before; {states}; {len(tally.faults)} faults")
        for fault in tally.faults:
            print(f"  {fault}")
        sys.stdout.flush()
    shutil.rmtree(top)
    return 1 if num_faults else 0


if __name__ == "__main__":
    sys.exit(main())
