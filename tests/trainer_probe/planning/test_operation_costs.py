"""Costs of operations: the roofline at best rates, and what a profile expects."""

from dataclasses import replace

import pytest

pytest.importorskip("torch")

import torch

from fabrictune.hardware.files import bundled_profile
from fabrictune.hardware.gemm import Product, product_s
from fabrictune.trainer_probe.planning.hardware import HardwareSpec
from fabrictune.trainer_probe.planning.operation_clock import OperationClock
from fabrictune.trainer_probe.planning.operation_costs import ExpectedCosts, RooflineCosts, Work
from fabrictune.trainer_probe.planning.operation_work import work_of
from fabrictune.trainer_probe.planning.plan import expect_plan, make_plan
from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe

A100 = bundled_profile("a100")
MM = torch.ops.aten.mm.default


def empty(*sizes: int) -> torch.Tensor:
    return torch.empty(*sizes, device="meta", dtype=torch.bfloat16)


def product_of(left: torch.Tensor, right: torch.Tensor) -> Product:
    found = work_of(MM, (left, right), {}, MM(left, right)).product
    assert found is not None
    return found


def test_a_layout_is_named_by_how_operands_are_stored() -> None:
    """A weight by outputs: forward TN, data gradient NN, weight gradient NT; 4 tokens of 8 inputs, 16 outputs."""
    x, weight, gradient = empty(4, 8), empty(16, 8), empty(4, 16)
    assert product_of(x, weight.t()) == Product(m=4, n=16, k=8, layout="TN")
    assert product_of(gradient, weight) == Product(m=4, n=8, k=16, layout="NN")
    assert product_of(gradient.t(), x) == Product(m=16, n=8, k=4, layout="NT")


def test_a_batch_of_products_is_one_kernel() -> None:
    """Three products of 4 x 8 by 8 x 16."""
    left, right = empty(3, 4, 8), empty(3, 8, 16)
    bmm = torch.ops.aten.bmm.default
    work = work_of(bmm, (left, right), {}, bmm(left, right))
    assert work.product == Product(m=4, n=16, k=8, batch=3, layout="NN")
    assert work.flops == work.product.flops


def test_an_expected_product_takes_its_shapes_time_or_its_bytes_and_a_launch() -> None:
    """A large one by its tiles; of one row by the weight's bytes at the achieved rate."""
    costs = ExpectedCosts(profile=A100)
    shape = Product(m=4096, n=8192, k=8192, layout="TN")
    large = costs.cost(Work(flops=shape.flops, bytes=1, product=shape))
    assert (large.bound, large.work_ps) == ("products", round(product_s(A100.gpu, shape) * 1e12))
    assert large.launch_ps == A100.gpu.launch_ps
    row = Product(m=1, n=8192, k=8192, layout="TN")
    small = costs.cost(Work(flops=row.flops, bytes=2 * 8192 * 8192, product=row))
    memory = A100.gpu.memory
    assert small.bound == "memory"
    assert small.work_ps == pytest.approx(2 * 8192 * 8192 / (memory.rate_bytes_per_s * memory.achieved_fraction) * 1e12)


def test_a_norm_reads_and_writes_at_the_rate_of_reductions() -> None:
    """Of as many bytes as an operation on entries."""
    costs, memory = ExpectedCosts(profile=A100), A100.gpu.memory
    x = empty(1024, 4096)
    norm, relu = torch.ops.aten.native_layer_norm.default, torch.ops.aten.relu.default
    arguments = (x, [4096], None, None, 1e-5)
    assert work_of(norm, arguments, {}, norm(*arguments)).is_reduction
    assert not work_of(relu, (x,), {}, relu(x)).is_reduction
    slow, fast = (costs.cost(Work(flops=0, bytes=10**9, is_reduction=reduces)).work_ps for reduces in (True, False))
    assert slow / fast == pytest.approx(memory.achieved_fraction / memory.reduced_fraction)


def test_small_kernels_wait_for_the_host() -> None:
    """A host that takes 100 us an operation: three of them end at 300 us, and the work of the last."""
    slow = replace(A100, host=replace(A100.host, issue_ps=100_000_000))
    x = empty(8)
    with OperationClock(ExpectedCosts(profile=slow)) as clock:
        for _ in range(3):
            x.add_(x)
    work_ps = clock.duration_ps["rest", "add_", "memory"] // 3
    assert clock.elapsed_ps == 300_000_000 + work_ps + slow.gpu.launch_ps


def test_fused_operations_read_once_and_write_what_is_kept() -> None:
    """x * y + x of 1000 bfloat16 numbers: the product is gone by the end, so three times 2000 bytes remain of five."""
    x, y = empty(1000), empty(1000)
    with OperationClock(ExpectedCosts(profile=A100, fuses=True)) as fused, fused.in_part("forward"):
        result = x * y + x
    with OperationClock(ExpectedCosts(profile=A100)) as apart, apart.in_part("forward"):
        result = x * y + x
    assert result.shape == (1000,)
    assert (fused.bytes.total(), apart.bytes.total()) == (3 * 2000, 6 * 2000)
    assert (fused.calls.total(), apart.calls.total()) == (1, 2)


def test_a_product_ends_a_fused_kernel() -> None:
    """What it reads must be in memory."""
    x = empty(16, 16)
    with OperationClock(ExpectedCosts(profile=A100, fuses=True)) as clock, clock.in_part("forward"):
        result = (x + x).mm(x) + x
    assert result.shape == (16, 16)
    assert [key[1] for key in clock.calls] == ["add", "mm"]
    assert clock.calls["forward", "add", "memory"] == 2


def test_without_costs_a_plan_is_the_roofline() -> None:
    """Byte for byte: the same counts and times."""
    recipe = load_recipe(find_recipe("tiny"))
    plain, given = make_plan(recipe, HardwareSpec()), make_plan(recipe, HardwareSpec(), RooflineCosts(HardwareSpec()))
    assert plain.operations == given.operations
    assert not any(row.bound in ("attention", "launch") for rows in plain.operations for row in rows)


def test_an_expected_step_is_longer_than_the_lower_bound_and_its_passes_add_up() -> None:
    """To all operations: each pass times its number, the optimizer and the rest."""
    recipe = load_recipe(find_recipe("tiny"))
    expected = expect_plan(recipe, A100)
    assert expected.without_network.step_ps > make_plan(recipe, HardwareSpec()).without_network.step_ps
    times = {"forward": recipe.degrees.num_batches, "backward": recipe.degrees.num_batches, "weights": 1}
    for rows, passes in zip(expected.operations, expected.passes, strict=True):
        total_ps = sum(one.duration_ps * times.get(one.part, 1) for one in passes)
        assert total_ps == sum(row.duration_ps for row in rows)


def test_compiled_layers_are_expected_to_take_less_time() -> None:
    """Their operations on entries are fewer kernels that move less."""
    tiny = find_recipe("tiny")
    plain, compiled = (expect_plan(load_recipe(tiny, {"compile": how}), A100) for how in ("none", "layers"))
    assert compiled.without_network.step_ps < plain.without_network.step_ps
