"""A node's test with a fault planted in it: `python plants.py PLANT ... TEST FOLDER` runs it as its process would."""

import os
import sys
import time
from typing import Any

import numpy as np

from fabrictune.diagnostics import node_process
from fabrictune.diagnostics.node_tests import products
from fabrictune.trainer_probe.operation.self_check import whole_number_matrices


def _wrong_bits() -> None:
    left, right, expected = whole_number_matrices()
    expected = expected.copy()
    expected[17, 5] += 1
    setattr(products, "whole_number_matrices", lambda: (left, right, expected))  # noqa: B010  # it is not exported


def _slow_disk() -> None:
    sync = os.fsync

    def slow_sync(fd: Any) -> None:
        time.sleep(0.5)
        sync(fd)

    os.fsync = slow_sync


def _slow_processor() -> None:
    """Compute each product five times."""
    rounds = products._rounds

    def slow_rounds(run: Any, between: Any = lambda: None) -> Any:
        return rounds(lambda: [run() for _ in range(5)], between)

    products._rounds = slow_rounds


def _other_bits() -> None:
    from fabrictune.trainer_probe.model import initialization

    make = initialization.make_weights

    def flipped(*arguments: Any, **more: Any) -> Any:
        weights = make(*arguments, **more)
        [*weights.values()][-1].view(-1)[0] += 2**-20
        return weights

    initialization.make_weights = flipped


PLANTS = {"wrong bits": _wrong_bits, "slow disk": _slow_disk, "slow": _slow_processor, "other bits": _other_bits}


if __name__ == "__main__":
    np.seterr(all="raise")
    PLANTS[sys.argv[1]]()
    sys.argv = [sys.argv[0], *sys.argv[-2:]]
    node_process.main()
