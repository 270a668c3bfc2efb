"""One test of a node in a process of its own, so that a device that hangs costs no more than the test's limit.

`python -m fabrictune.diagnostics.node_process TEST FOLDER` prints the result as JSON.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fabrictune.diagnostics.node_tests.table import NODE_TESTS
from fabrictune.diagnostics.results import NodeResult
from fabrictune.foundation.children import ending_with_parent, module_command
from fabrictune.foundation.time_limits import scaled

_MAX_OUTPUT = 2**16
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # a core against a core


def run_apart(test: str, folder: Path, *, prefix: Sequence[str] = ()) -> NodeResult:
    """Run a test in a process that is ended at its limit; `prefix` are words before its command, such as a namespace's.

    A test that cannot be made is a fault of the node.
    """
    limit_s = scaled(NODE_TESTS[test].limit_s)
    began_s = time.monotonic()
    command = [*ending_with_parent(), *prefix, *module_command(__name__, test, str(folder))]
    try:
        done = subprocess.run(  # noqa: S603  # this interpreter and this module
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit_s,
            check=False,
            env={**os.environ, **_ONE_THREAD},
        )
        result = NodeResult.from_json(json.loads(done.stdout[:_MAX_OUTPUT]))
    except subprocess.TimeoutExpired:
        result = NodeResult(test=test, faults=(f"not over after {limit_s:g} s",))
    except (ValueError, TypeError, KeyError, AttributeError):
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        result = NodeResult(test=test, faults=(f"ended with exit code {done.returncode}: {last[-200:]}",))
    return replace(result, elapsed_s=time.monotonic() - began_s)


def main() -> None:
    """Run the test that the command line names."""
    test, folder = sys.argv[1:]
    json.dump(NODE_TESTS[test].run(Path(folder)).as_json(), sys.stdout)


if __name__ == "__main__":
    main()
