"""A virtual machine with real RDMA devices, one for all tests, where there is a way to make it."""

from collections.abc import Iterator

import pytest

from fabrictune.foundation.errors import UnavailableError
from fabrictune.rdma_bench.measurement.pair import WorkerPair
from fabrictune.rdma_bench.soft_roce.image import get_image
from fabrictune.rdma_bench.soft_roce.machine import VirtualMachine
from fabrictune.rdma_bench.soft_roce.programs import require_programs
from fabrictune.rdma_bench.soft_roce.workers import (
    RECEIVER_PORT,
    SENDER_PORT,
    running_workers,
    soft_roce_machine,
    soft_roce_pair,
)


@pytest.fixture(scope="session")
def machine() -> Iterator[VirtualMachine]:
    """Give the machine; skip, saying why, where QEMU or a package cannot be had."""
    try:
        require_programs(["qemu-system-x86_64"])
        image = get_image()
    except UnavailableError as error:
        pytest.skip(str(error))
    with soft_roce_machine(image) as machine:
        yield machine


@pytest.fixture(scope="session")
def places(machine: VirtualMachine) -> Iterator[tuple[str, ...]]:
    """Give where workers listen, the sender's first."""
    with running_workers(machine, SENDER_PORT, RECEIVER_PORT) as places:
        yield places


@pytest.fixture
def pair(machine: VirtualMachine, places: tuple[str, str]) -> Iterator[WorkerPair]:
    """Give the workers at both ends of the wire."""
    with soft_roce_pair(machine, *places) as pair:
        yield pair
