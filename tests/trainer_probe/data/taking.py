"""A worker in a process of its own: takes one batch, says its first id, and waits to be killed."""

import sys

from fabrictune.trainer_probe.data.loader import Loader

if __name__ == "__main__":
    with Loader(sys.argv[1], int(sys.argv[2])) as loader:
        print(loader.take()[0, 0], flush=True)
        sys.stdin.read()
