"""A virtual machine with real RDMA devices, one for all tests, where there is a way to make it."""

from collections.abc import Iterator

import pytest

from foundation.errors import UnavailableError
from rdma_bench.measuring.pair import Pair
from rdma_bench.soft_roce.machine import Machine
from rdma_bench.soft_roce.workers import soft_roce_machine, soft_roce_pair


@pytest.fixture(scope="session")
def machine() -> Iterator[Machine]:
    """Give the machine; skip, saying why, where QEMU or a package cannot be had."""
    starting = soft_roce_machine()
    try:
        machine = starting.__enter__()
    except UnavailableError as error:
        pytest.skip(str(error))
    yield machine
    starting.__exit__(None, None, None)


@pytest.fixture(scope="session")
def pair(machine: Machine) -> Iterator[Pair]:
    """Give workers at both ends of its wire."""
    with soft_roce_pair(machine) as pair:
        yield pair
