"""The tests of a node, in the order in which they run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fabrictune.diagnostics.node_tests.adapters import measure_adapters
from fabrictune.diagnostics.node_tests.disk import measure_disk
from fabrictune.diagnostics.node_tests.gpu_health import check_gpu_health
from fabrictune.diagnostics.node_tests.loopback import measure_loopback
from fabrictune.diagnostics.node_tests.memory import measure_memory
from fabrictune.diagnostics.node_tests.products import measure_gpus, measure_products
from fabrictune.diagnostics.node_tests.training_step import measure_training_step
from fabrictune.diagnostics.results import NodeResult


@dataclass(frozen=True, kw_only=True)
class NodeTest:
    """One test of a node."""

    name: str
    meaning: str
    run: Callable[[Path], NodeResult]  # with the folder that may be written to
    expected_s: float
    limit_s: float
    takes_turns: bool = True  # whether ranks of one host would disturb one another
    is_of_host: bool = False  # whether one rank tests for all of its host


_TESTS = (
    NodeTest(
        name="products",
        meaning="matrix products: bits and speed",
        run=measure_products,
        expected_s=0.9,
        limit_s=20.0,
    ),
    NodeTest(
        name="memory", meaning="copies in memory: bits and speed", run=measure_memory, expected_s=0.9, limit_s=20.0
    ),
    NodeTest(name="disk", meaning="writes to disk: bits and speed", run=measure_disk, expected_s=0.9, limit_s=30.0),
    NodeTest(
        name="loopback",
        meaning="TCP on the loopback device: rate and round trip",
        run=measure_loopback,
        expected_s=1.0,
        limit_s=20.0,
    ),
    NodeTest(
        name="adapters",
        meaning="RDMA from each adapter to each: PCIe faults by inference",
        run=measure_adapters,
        expected_s=0.4,
        limit_s=120.0,
        is_of_host=True,
    ),
    NodeTest(
        name="GPU health",
        meaning="NVML and the kernel's log: ECC errors, Xids, clocks held down",
        run=check_gpu_health,
        expected_s=0.4,
        limit_s=30.0,
        is_of_host=True,
    ),
    NodeTest(
        name="gpus",
        meaning="products and copies on each GPU: bits and speed",
        run=measure_gpus,
        expected_s=0.4,
        limit_s=60.0,
        is_of_host=True,
    ),
    NodeTest(
        name="training step",
        meaning="a training step, repeated and compared bit for bit between nodes",
        run=measure_training_step,
        expected_s=6.0,
        limit_s=60.0,
        takes_turns=False,
    ),
)
NODE_TESTS: Mapping[str, NodeTest] = {test.name: test for test in _TESTS}
