"""Program that trains a recipe with a rank on each host of a testbed: torch is imported once, ranks are forks of it.

Run with the file of a job; prints a JSON object a line: the ranks' processes, and on rank 0 each step. Each rank writes
its spans to the job's folder of them, if it has one.
"""

import ctypes
import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

from fabrictune.collectives.startup.launchers import Launched
from fabrictune.collectives.startup.servers import QUICK_RESOLVER
from fabrictune.foundation.children import end_with_parent
from fabrictune.trainer_probe.recipes.files import load_recipe
from fabrictune.trainer_probe.recipes.schema import Recipe
from fabrictune.trainer_probe.training.distributed import train_distributed
from fabrictune.trainer_probe.training.progress import StepReport

PORT = 29_500
STARTUP_TIMEOUT_S = 300.0
_NETWORK, _HOST_NAME = 0x40000000, 0x04000000  # CLONE_NEWNET, CLONE_NEWUTS


def main() -> int:
    """Fork the ranks of a job, and return 0 when all have ended well; the others end with the first that fails."""
    job: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
    import torch  # noqa: F401 - shared by all ranks

    ranks = {}
    for rank in range(len(job["hosts"])):
        parent = os.getpid()
        if (pid := os.fork()) == 0:
            end_with_parent(parent)
            os._exit(_train(job, rank))
        ranks[pid] = rank
    _print({"event": "ranks", "pids": list(ranks)})
    while ranks:
        pid, status = os.wait()
        rank = ranks.pop(pid)
        if status:
            print(f"rank {rank} failed", file=sys.stderr)
            for other in ranks:
                os.kill(other, 9)
            return 1
    return 0


def _train(job: dict[str, Any], rank: int) -> int:
    """Train as one rank on its host."""
    host = job["hosts"][rank]
    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/run/netns", host["namespace"]).open("rb") as place:
        entered = libc.setns(place.fileno(), _NETWORK) or libc.unshare(_HOST_NAME)
    if entered:
        raise OSError(ctypes.get_errno(), "cannot enter", host["namespace"])
    socket.sethostname(host["name"])
    os.environ.update({**QUICK_RESOLVER, "GLOO_SOCKET_IFNAME": host["interface"], "OMP_NUM_THREADS": "1"})
    launched = Launched(
        launcher="testbed",
        rank=rank,
        num_ranks=len(job["hosts"]),
        local_rank=0,
        host=job["hosts"][0]["address"],
        port=PORT,
        attempt="testbed",
        has_store=False,
    )
    train_distributed(
        launched,
        lambda: load_recipe(Path(job["recipe"]), job["settings"]),
        on_step=_print_step,
        startup_timeout_s=STARTUP_TIMEOUT_S,
        spans=lambda _: Path(job["spans"]) if job["spans"] else None,
    )
    return 0


def _print_step(_: Recipe, report: StepReport) -> None:
    _print({"event": "step", "step": report.step, "elapsed_ns": report.elapsed_ns, "ended_s": time.monotonic()})


def _print(event: dict[str, Any]) -> None:
    print(json.dumps(event), flush=True)


if __name__ == "__main__":
    sys.exit(main())
