"""A process that starts a loader, says its address and process, and takes batches until it is killed."""

import sys

from fabrictune.trainer_probe.data.loader import Loader, LoaderProcess
from fabrictune.trainer_probe.data.service import Service

if __name__ == "__main__":
    with LoaderProcess(Service.from_json(sys.argv[1])) as owned, Loader(owned.address, 0) as loader:
        loader.take()
        print(owned.address, owned.process.pid, flush=True)
        sys.stdin.read()
