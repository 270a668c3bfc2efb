"""Bytes of operations counted on tensors without values, against counts by hand."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

pytest.importorskip("torch")

import torch
from torch.nn import functional

from fabrictune.foundation.layout import ParallelLayout
from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.planning.dry_run import join_alone
from fabrictune.trainer_probe.planning.hardware import HardwareSpec
from fabrictune.trainer_probe.planning.operation_clock import OperationClock
from fabrictune.trainer_probe.planning.operation_costs import RooflineCosts

SIZE = 12 * 10 * 4  # bytes of `matrix`


def matrix() -> torch.Tensor:
    return torch.empty(12, 10, device="meta")


@contextmanager
def counting() -> Iterator[OperationClock]:
    """Yield a clock of products of 1 Tflop/s and a memory of 1 GB/s."""
    clock = OperationClock(RooflineCosts(HardwareSpec(achieved_flops_per_s=1e12, memory_bytes_per_s=1e9)))
    with clock:
        yield clock


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (lambda x, y: x.view(120), 0),
        (lambda x, y: x.t()[2:].unsqueeze(0).expand(5, -1, -1), 0),
        (lambda x, y: torch.empty_like(x), 0),
        (lambda x, y: x + y, 3 * SIZE),
        (lambda x, y: x + y[0], 2 * SIZE + 40),
        (lambda x, y: x.add_(y), 3 * SIZE),
        (lambda x, y: x.mul_(2.0), 2 * SIZE),
        (lambda x, y: x.copy_(y), 2 * SIZE),
        (lambda x, y: x.zero_(), SIZE),
        (lambda x, y: torch.zeros_like(x), SIZE),
        (lambda x, y: x.t().contiguous(), 2 * SIZE),
        (lambda x, y: torch.cat([x, y]), 4 * SIZE),
        (lambda x, y: x.bfloat16(), SIZE * 3 // 2),
        (lambda x, y: torch.add(x, y, out=y.clone()), (3 + 2) * SIZE),
        (lambda x, y: x.sum(0), SIZE + 40),
        (lambda x, y: y[:1].expand(12, 10) * x, 40 + 2 * SIZE),
    ],
)
def test_an_operation_reads_operands_and_writes_results_once(
    operation: Callable[[torch.Tensor, torch.Tensor], object], expected: int
) -> None:
    """Matrices of 12 x 10 numbers, rows of 10; views and allocations are free, what is overwritten is not read."""
    x, y = matrix(), matrix()
    with counting() as clock:
        operation(x, y)
    assert clock.bytes.total() == expected
    assert clock.elapsed_ps == expected * 1000


def test_a_lookup_reads_the_rows_it_returns() -> None:
    """Three ids of 8 bytes, three rows of 40 bytes read and written, of a table of 12."""
    ids = torch.empty(3, dtype=torch.int64, device="meta")
    with counting() as clock:
        functional.embedding(ids, matrix())
    assert clock.bytes.total() == 3 * 8 + 2 * 3 * 40


def test_a_product_takes_the_longer_of_its_operations_and_its_bytes() -> None:
    """10 x 12 by 12 x 10: 2400 operations are 2.4 ns, and 480 + 480 + 400 bytes at a GB/s are 1360 ns."""
    x, y = matrix(), matrix()
    with counting() as clock:
        x.t() @ y
    assert (clock.flops.total(), clock.bytes.total(), clock.elapsed_ps) == (2400, 1360, 1_360_000)
    with OperationClock(RooflineCosts(HardwareSpec(achieved_flops_per_s=1e9, memory_bytes_per_s=1e12))) as slow:
        x.t() @ y
    assert slow.elapsed_ps == 2_400_000


@pytest.mark.parametrize(("window", "span"), [(None, 64), (16, 16)])
def test_attention_is_one_operation(window: int | None, span: int) -> None:
    """Forward it reads q, k, v and writes o and a statistic a query; backward reads o, its gradient and these again and
    writes three gradients. 4 operations a query, feature and place of the span forward, 8 backward."""
    from fabrictune.trainer_probe.model.attention import attend

    size = 2 * 4 * 64 * 8
    parts = [torch.empty(2, 4, 64, 8, device="meta", dtype=torch.bfloat16, requires_grad=True) for _ in range(3)]
    with counting() as clock:
        result = attend(parts[0], parts[1], parts[2], window)
        forward = {key[1]: (clock.flops[key], clock.bytes[key]) for key in clock.calls}
        result.backward(torch.empty_like(result))
    flops, num_bytes = forward["_flash_attention_forward"]
    assert set(forward) == {"_flash_attention_forward"}
    assert flops == 4 * size * span
    assert num_bytes == pytest.approx(4 * size * 2 + 2 * 4 * 64 * 4, abs=64)  # and the state of dropout's randomness
    backward = {name: key for key in clock.calls if (name := key[1]) == "_flash_attention_backward"}
    (key,) = backward.values()
    assert clock.flops[key] == 2 * flops
    assert clock.bytes[key] == pytest.approx(8 * size * 2 + 2 * 4 * 64 * 4, abs=64)


def test_a_gather_and_a_reduce_scatter_copy_nothing() -> None:
    """Into one tensor and out of one; into a list of 4 parts NCCL's backend would read and write each once more."""
    layout = ParallelLayout(tp=4)
    with join_alone(layout, 0) as member:
        comm, part, whole = Comm(layout, member), matrix(), torch.empty(4, 12, 10, device="meta")
        with counting() as clock:
            comm.all_gather(whole, part, axis="tp", tag="gather").wait()
        assert clock.bytes.total() == 0
        with counting() as clock:
            comm.reduce_scatter(part, whole, axis="tp", tag="scatter").wait()
        assert clock.bytes.total() == 0
