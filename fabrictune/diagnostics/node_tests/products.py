"""Matrix products: their bits and their speed, on the processor and on each GPU.

Products of whole numbers have known bits on every device and in every order of summation, as those of the self-check.
The speed is the best of several rounds, so that what else runs for a moment does not count.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from fabrictune.diagnostics.results import NodeResult
from fabrictune.trainer_probe.operation.self_check import whole_number_matrices

ROUNDS_S = 0.3
_SIDE = 512  # of the products that are timed on a processor
_GPU_SIDE = 8192


def measure_products(folder: Path) -> NodeResult:
    """Multiply on the processor."""
    left, right, expected = whole_number_matrices()
    faults, wide = [], (left.astype(np.float32), right.astype(np.float32))
    random = np.random.default_rng(0)
    a, b = (random.random((_SIDE, _SIDE), np.float32) for _ in range(2))
    num_wrong, num_elements = 0, 0

    def check() -> None:
        nonlocal num_wrong, num_elements
        num_wrong += int((wide[0] @ wide[1] != expected).sum())
        num_elements += expected.size

    rounds = list(_rounds(lambda: a @ b, between=check))
    if num_wrong:
        faults.append(f"{num_wrong:,} of {num_elements:,} elements of products are wrong")
    return NodeResult(
        test="products", figures={"product_flops_per_s": 2 * _SIDE**3 / min(rounds)}, faults=tuple(faults)
    )


def measure_gpus(folder: Path) -> NodeResult:
    """Multiply and copy on each GPU, where there are some."""
    if not any(Path("/dev").glob("nvidia[0-9]*")):
        return NodeResult(test="gpus", skipped="no NVIDIA GPU on this node")
    import torch

    if not torch.cuda.is_available():
        return NodeResult(test="gpus", faults=("the node has GPUs, and torch can use none",))
    left, right, expected = (torch.from_numpy(values) for values in whole_number_matrices())
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False  # partial sums stay exact
    flops, copies, faults = [], [], []
    for number in range(torch.cuda.device_count()):
        device = torch.device("cuda", number)
        exact = left.to(device, torch.bfloat16) @ right.to(device, torch.bfloat16)
        num_wrong = int((exact != expected.float().to(torch.bfloat16).to(device)).sum())
        if num_wrong:
            faults.append(f"{device}: {num_wrong:,} of {expected.numel():,} elements of products are wrong")
        a = torch.rand(_GPU_SIDE, _GPU_SIDE, device=device).to(torch.bfloat16)
        b, target = torch.rand_like(a), torch.empty_like(a)

        def run(start: Callable[[], object], device: torch.device = device) -> None:
            start()
            torch.cuda.synchronize(device)

        flops.append(2 * _GPU_SIDE**3 / min(_rounds(lambda a=a, b=b: run(lambda: a @ b))))  # type: ignore[misc]
        num_bytes = 2 * a.numel() * a.element_size()
        copies.append(num_bytes / min(_rounds(lambda a=a, t=target: run(lambda: t.copy_(a)))))  # type: ignore[misc]
    figures = {"gpu_product_flops_per_s": min(flops), "gpu_copy_bytes_per_s": min(copies)}
    return NodeResult(test="gpus", figures=figures, faults=tuple(faults))


def _rounds(run: Callable[[], object], between: Callable[[], object] = lambda: None) -> Iterator[float]:
    """Yield the time of each round, after one that does not count."""
    run()
    end_s = time.perf_counter() + ROUNDS_S
    while True:
        began_s = time.perf_counter()
        run()
        yield time.perf_counter() - began_s
        between()
        if time.perf_counter() > end_s:
            return
