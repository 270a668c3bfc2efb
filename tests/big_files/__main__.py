"""`python -m tests.big_files`: gives a large file of each format to the command that reads it, and prints a table."""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tests.big_files.driver import try_reading
from tests.big_files.readings import make_readings
from tests.fuzz.doors import GOLDEN
from tests.kills.inputs import make_inputs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=50, help="of each file")
    parser.add_argument("--only", action="append", help="a reading; repeatable")
    options = parser.parse_args()
    top = Path(tempfile.mkdtemp(prefix="big-files-"))
    (top / "inputs").mkdir()
    num_faults = 0
    print(f"{'reading':24} {'MB':>6} {'user s':>7} {'MiB':>6}  result")
    for number, reading in enumerate(make_readings(make_inputs(top / "inputs"), GOLDEN / "lab.fabric.json")):
        if options.only and reading.name not in options.only:
            continue
        folder = top / str(number)
        folder.mkdir()
        result = try_reading(reading, folder, int(options.megabytes * 1e6))
        num_faults += bool(result.fault)
        fault = f"  FAULT: {result.fault}" if result.fault else ""
        megabytes, mebibytes = result.num_bytes / 1e6, result.peak_bytes / 2**20
        said = result.ending[:160].replace(f"{folder}/", "")
        print(f"{reading.name:24} {megabytes:6.1f} {result.cpu_s:7.2f} {mebibytes:6.0f}  {said}{fault}", flush=True)
        shutil.rmtree(folder)
    shutil.rmtree(top)
    print(f"{num_faults} faults")
    return 1 if num_faults else 0


if __name__ == "__main__":
    sys.exit(main())
