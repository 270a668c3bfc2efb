"""The data-parallel step against one process that sees the whole batch."""

from collections import Counter

import numpy as np
import pytest

from foundation.traces import Operation
from trainer_probe.config import PerceptronSpec, Policy, TrainingSpec
from trainer_probe.training import Training, train

pytest.importorskip("torch")

NUM_STEPS = 2


def train_small(dp: int, policy: Policy) -> Training:
    """Train three layers of 24 in buckets of at most 8,000 B."""
    spec = TrainingSpec(model=PerceptronSpec(width=24, depth=3), batch_size=12, bucket_bytes=8_000, policy=policy)
    return train(spec, dp, NUM_STEPS)


@pytest.fixture(scope="module")
def one_process() -> Training:
    return train_small(1, "none")


@pytest.fixture(scope="module")
def two_processes() -> Training:
    return train_small(2, "none")


@pytest.mark.parametrize("policy", ["none", "overlap"])
@pytest.mark.parametrize("dp", [2, 3])
def test_gradients_and_parameters_equal_one_process(dp: int, policy: Policy, one_process: Training) -> None:
    """A mean over the whole batch is a sum over ranks, so in double precision only the order of additions differs."""
    training = train_small(dp, policy)
    for rank in range(dp):
        for name, expected in one_process.gradients[0].items():
            np.testing.assert_allclose(training.gradients[rank][name], expected, rtol=0, atol=1e-12, err_msg=name)
        for name, expected in one_process.parameters[0].items():
            np.testing.assert_allclose(training.parameters[rank][name], expected, rtol=0, atol=1e-12, err_msg=name)


def test_training_changes_the_parameters(one_process: Training) -> None:
    """Were every gradient nought, the test above would hold for any reduction."""
    assert all(np.abs(gradient).max() > 1e-6 for gradient in one_process.gradients[0].values())


def test_the_ledger_counts_every_gradient_once_a_step(two_processes: Training) -> None:
    """3 layers of 24 * 24 weights and 24 biases, 8 bytes each: 14,400 bytes a rank and step, in buckets of 8,000 B."""
    trace = two_processes.trace
    assert 3 * (24 * 24 + 24) * 8 == 14_400
    bytes_of = Counter[tuple[int, int]]()
    for rank, step, num_bytes in zip(trace.rank_N.tolist(), trace.step_N.tolist(), trace.bytes_N.tolist(), strict=True):
        bytes_of[rank, step] += num_bytes
    assert bytes_of == {(rank, step): 14_400 for rank in range(2) for step in range(NUM_STEPS)}
    assert trace.bytes_N.max() <= 8_000
    assert set(trace.operation_N.tolist()) == {Operation.ALL_REDUCE}
    assert set(trace.axis_N) == {"dp"}


def test_without_overlap_every_request_waits_for_the_one_before(two_processes: Training) -> None:
    """The ledger's dependencies are the waits: one bucket after another, step after step, on each rank."""
    trace = two_processes.trace
    for rank in range(2):
        rows = np.nonzero(trace.rank_N == rank)[0].tolist()
        assert [trace.dependencies.of(row).tolist() for row in rows] == [[], *([row] for row in rows[:-1])]


def test_with_overlap_a_step_waits_for_the_step_before() -> None:
    """Buckets of one step are all under way before the first is waited for, so none of them waits for another."""
    trace = train_small(2, "overlap").trace
    first = np.nonzero((trace.rank_N == 0) & (trace.step_N == 0))[0].tolist()
    second = np.nonzero((trace.rank_N == 0) & (trace.step_N == 1))[0].tolist()
    assert len(first) == len(second) > 1
    assert all(trace.dependencies.of(row).tolist() == [] for row in first)
    assert all(trace.dependencies.of(row).tolist() == first for row in second)
