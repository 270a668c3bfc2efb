"""Which form of a layer's small operations, of windowed attention and of a whole layer is the fastest, and by how much.

Each contest runs its forms in turn, forward and backward, on one thread of a CPU in single precision (processor time),
or on a GPU in bfloat16 where torch finds one (wall time). A form is first compiled and warmed up. The trainer uses
those named `torch`, the band on a CPU, the fused kernel on a GPU, and layers that are not compiled.

Run: `python -m benchmarks.run trainer_kernels`
"""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.nn import functional

from fabrictune.trainer_probe.model.attention import attend, attend_in_band, attend_in_window
from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.forward import run_layer
from fabrictune.trainer_probe.model.gpt import EPSILON, Block, GptSpec
from fabrictune.trainer_probe.model.initialization import make_weights
from fabrictune.trainer_probe.model.operators import SingleProcess

NUM_ROUNDS, NUM_WARM_UPS = 15, 2

Form = Callable[..., torch.Tensor]


@dataclass(frozen=True, kw_only=True)
class Size:
    """The shapes of a device's contests: sequence, samples, width, heads, window."""

    sequence: int
    batch: int
    width: int
    num_heads: int
    window: int


SIZES = {
    "cpu": Size(sequence=512, batch=2, width=512, num_heads=8, window=128),
    "cuda": Size(sequence=2048, batch=4, width=4096, num_heads=32, window=512),
}


def benchmarks() -> list[dict[str, Any]]:
    """Return milliseconds of a forward and a backward pass, as rows of benchmarks/results.json."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_num_threads(1)
    torch.set_default_device(device)
    torch.set_default_dtype(torch.bfloat16 if device == "cuda" else torch.float32)
    size = SIZES[device]
    return [
        *_contest(f"{device}.layer-norm", _norms(), _tokens(size, size.width), _row(size.width), _row(size.width)),
        *_contest(f"{device}.bias-and-gelu", _gelus(), _tokens(size, 4 * size.width), _row(4 * size.width)),
        *_contest(f"{device}.attention", _attentions(size, device), *(_heads(size) for _ in range(3))),
        *_contest(f"{device}.serial-layer", _layers(size, "serial"), _tokens(size, size.width)),
        *_contest(f"{device}.parallel-layer", _layers(size, "parallel"), _tokens(size, size.width)),
    ]


def _norms() -> Mapping[str, Form]:
    def by_torch(x_SBD: torch.Tensor, gain_D: torch.Tensor, shift_D: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(x_SBD, x_SBD.shape[-1:], gain_D, shift_D, EPSILON)

    def written_out(x_SBD: torch.Tensor, gain_D: torch.Tensor, shift_D: torch.Tensor) -> torch.Tensor:
        variance, mean = torch.var_mean(x_SBD, -1, correction=0, keepdim=True)
        return (x_SBD - mean) * (variance + EPSILON).rsqrt() * gain_D + shift_D

    return {"torch": by_torch, "written-out": written_out, "compiled": torch.compile(written_out, dynamic=False)}


def _gelus() -> Mapping[str, Form]:
    def by_torch(x_SBI: torch.Tensor, bias_I: torch.Tensor) -> torch.Tensor:
        return functional.gelu(x_SBI + bias_I, approximate="tanh")

    def by_error_function(x_SBI: torch.Tensor, bias_I: torch.Tensor) -> torch.Tensor:
        return functional.gelu(x_SBI + bias_I)

    return {"torch": by_torch, "erf": by_error_function, "compiled": torch.compile(by_torch, dynamic=False)}


def _attentions(size: Size, device: str) -> Mapping[str, Form]:
    forms: dict[str, Form] = {
        "full": partial(attend, window=None),
        "band": partial(attend_in_band, window=size.window),
    }
    if device == "cuda":  # torch has its backward pass there alone
        forms["fused"] = partial(attend_in_window, window=size.window)
    return forms


def _layers(size: Size, block: Block) -> Mapping[str, Form]:
    model = GptSpec(width=size.width, depth=1, num_heads=size.num_heads, sequence=size.sequence, block=block)
    weights = {
        name: values.to(torch.get_default_device(), torch.get_default_dtype()).requires_grad_()
        for name, values in make_weights(ChunkSpec(model=model)).items()
        if name.startswith("layers.")
    }

    def layer(x_SBD: torch.Tensor) -> torch.Tensor:
        return run_layer(model, weights, SingleProcess(), 0, x_SBD, "")

    return {"eager": layer, "compiled": torch.compile(layer, dynamic=False)}


def _tokens(size: Size, width: int) -> torch.Tensor:
    return torch.randn(size.sequence, size.batch, width).requires_grad_()


def _row(width: int) -> torch.Tensor:
    return torch.randn(width).requires_grad_()


def _heads(size: Size) -> torch.Tensor:
    return torch.randn(size.batch, size.num_heads, size.sequence, size.width // size.num_heads).requires_grad_()


def _contest(name: str, forms: Mapping[str, Form], *inputs: torch.Tensor) -> Iterator[dict[str, Any]]:
    took_ms: dict[str, list[float]] = {form: [] for form in forms}
    for number in range(NUM_WARM_UPS + NUM_ROUNDS):
        for form, function in forms.items():
            took = _time_ms(function, inputs)
            if number >= NUM_WARM_UPS:
                took_ms[form].append(took)
    for form, values in took_ms.items():
        yield {
            "name": f"trainer_probe.kernels.{name}.{form}",
            "value": statistics.median(values),
            "unit": "ms",
            "spread": f"{min(values):,.2f} to {max(values):,.2f} over {NUM_ROUNDS} rounds",
        }


def _time_ms(form: Form, inputs: tuple[torch.Tensor, ...]) -> float:
    """Return the time of a forward and a backward pass, all kernels ended."""
    started_ms = _now_ms()
    found = form(*inputs)
    torch.autograd.backward(found, torch.ones_like(found))
    return _now_ms() - started_ms


def _now_ms() -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        return time.perf_counter() * 1e3
    return time.process_time() * 1e3
