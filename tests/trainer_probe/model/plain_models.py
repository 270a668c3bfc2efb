"""Each family's model written a second time: plain torch over whole weights, dense masks, one head after another.

Nothing of the trainer's arithmetic is used. Rotary positions multiply complex numbers; softmax is over all places with
a mask; experts run one after another for each token.

Shapes: B batch, S sequence, D width, E features of a head.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial

import torch

from fabrictune.trainer_probe.model.gpt import GptSpec
from fabrictune.trainer_probe.model.llama import LlamaSpec
from fabrictune.trainer_probe.model.moe import MoeSpec
from fabrictune.trainer_probe.model.spec import ModelSpec

Tensors = Mapping[str, torch.Tensor]


def plain_loss(
    spec: ModelSpec, weights: Tensors, tokens_BS: torch.Tensor, targets_BS: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return minus the logarithms of the targets' probabilities, and the balance losses, summed over all tokens."""
    added: list[torch.Tensor] = [torch.zeros((), dtype=torch.float64)]
    layer_of: Mapping[str, Callable[..., torch.Tensor]] = {
        "gpt": gpt_layer,
        "llama": llama_layer,
        "moe": partial(moe_layer, added),
    }
    norm: Callable[..., torch.Tensor] = layer_norm if isinstance(spec, GptSpec) else rms_norm
    x_BSD = weights["embedding.weight"][tokens_BS]
    if "positions.weight" in weights:
        x_BSD = x_BSD + weights["positions.weight"]
    for layer in range(spec.depth):
        own = {
            name.removeprefix(f"layers.{layer}."): value
            for name, value in weights.items()
            if name.startswith(f"layers.{layer}.")
        }
        x_BSD = layer_of[spec.family](spec, own, x_BSD)
    logits_BSV = norm(spec, weights, "last_norm", x_BSD) @ weights["head.weight"]
    probability_BSV = logits_BSV.exp() / logits_BSV.exp().sum(-1, keepdim=True)
    return -probability_BSV.gather(-1, targets_BS[..., None]).log().sum(), torch.stack(added).sum()


def gpt_layer(spec: GptSpec, own: Tensors, x_BSD: torch.Tensor) -> torch.Tensor:
    """Attention and feed-forward beside one another, or one after the other."""
    if spec.block == "parallel":
        normal = layer_norm(spec, own, "norm", x_BSD)
        inputs = product_by_heads(normal, own["input.weight"], own["input.bias"])  # B S H 7 E
        results = [gpt_heads(spec, inputs[..., :3, :]), gelu(inputs[..., 3:, :])]
        return x_BSD + sum_over_heads(torch.cat(results, dim=3), own["output.weight"]) + own["output.bias"]
    for part, function in (("attention", gpt_heads), ("feed_forward", lambda _, inputs: gelu(inputs))):
        normal = layer_norm(spec, own, f"{part}.norm", x_BSD)
        inputs = product_by_heads(normal, own[f"{part}.input.weight"], own[f"{part}.input.bias"])
        result = sum_over_heads(function(spec, inputs), own[f"{part}.output.weight"])
        x_BSD = x_BSD + result + own[f"{part}.output.bias"]
    return x_BSD


def gpt_heads(spec: GptSpec, inputs_BSH3E: torch.Tensor) -> torch.Tensor:
    """Each head's attention, B S H 1 E."""
    heads = []
    for head in range(spec.num_heads):
        query, key, value = inputs_BSH3E[:, :, head].unbind(2)
        if spec.positions == "rotary":
            query, key = turn(query, 10_000.0), turn(key, 10_000.0)
        heads.append(attend(spec, query, key, value))
    return torch.stack(heads, dim=2).unsqueeze(3)


def llama_layer(spec: LlamaSpec, own: Tensors, x_BSD: torch.Tensor) -> torch.Tensor:
    """Attention, then the feed-forward part."""
    x_BSD = x_BSD + llama_attention(spec, own, rms_norm(spec, own, "attention.norm", x_BSD))
    normal = rms_norm(spec, own, "feed_forward.norm", x_BSD)
    gate, up = own["feed_forward.input.weight"].unbind(1)
    return x_BSD + swiglu(normal, gate, up, own["feed_forward.output.weight"])


def moe_layer(added: list[torch.Tensor], spec: MoeSpec, own: Tensors, x_BSD: torch.Tensor) -> torch.Tensor:
    """Attention, then the experts of each token; a group's choice beyond an expert's capacity is skipped."""
    x_BSD = x_BSD + llama_attention(spec, own, rms_norm(spec, own, "attention.norm", x_BSD))
    normal = rms_norm(spec, own, "experts.norm", x_BSD)
    rows = []
    for sample in normal:
        probability_SX = (sample @ own["experts.router.weight"]).softmax(-1)
        group_size = spec.sequence // spec.token_groups
        wanted = torch.zeros(spec.token_groups, spec.num_experts, dtype=torch.float64)
        for place in range(spec.sequence):
            if place % group_size == 0:
                used = [0] * spec.num_experts
            probability_X = probability_SX[place]
            order = probability_X.argsort(descending=True)
            chosen = order.tolist()[: spec.num_choices]
            row = torch.zeros_like(sample[place])
            for expert in chosen:
                wanted[place // group_size, expert] += 1
                if used[expert] < spec.capacity.num_slots:
                    used[expert] += 1
                    gate, up = own["experts.input.weight"][expert].unbind(1)
                    down = own["experts.output.weight"][expert]
                    share = probability_X[expert] / probability_X[chosen].sum()
                    row = row + share * swiglu(sample[place], gate, up, down)
            rows.append(row)
        load_SX = (wanted / (group_size * spec.num_choices)).repeat_interleave(group_size, 0)
        added.append(spec.balance_coefficient * spec.num_experts * (load_SX * probability_SX).sum())
    return x_BSD + torch.stack(rows).view_as(x_BSD)


def llama_attention(spec: LlamaSpec, own: Tensors, normal_BSD: torch.Tensor) -> torch.Tensor:
    """Each query head meets the key and the value of its group."""
    result = torch.zeros_like(normal_BSD)
    matrix_DGIE, output_GJED = own["attention.input.weight"], own["attention.output.weight"]
    for group in range(spec.num_key_value_heads):
        key = turn(normal_BSD @ matrix_DGIE[:, group, -2], spec.rotary_base)
        value = normal_BSD @ matrix_DGIE[:, group, -1]
        for number in range(spec.num_heads // spec.num_key_value_heads):
            query = turn(normal_BSD @ matrix_DGIE[:, group, number], spec.rotary_base)
            result = result + attend(spec, query, key, value) @ output_GJED[group, number]
    return result


def swiglu(x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    """Down(Gate(x) * sigmoid(Gate(x)) * Up(x))."""
    opened = x @ gate
    return (opened / (1 + (-opened).exp()) * (x @ up)) @ down


def attend(spec: ModelSpec, query_BSE: torch.Tensor, key_BSE: torch.Tensor, value_BSE: torch.Tensor) -> torch.Tensor:
    """Softmax of all scores, of which those outside the window are minus infinity."""
    places = torch.arange(spec.sequence)
    distance_SS = places[:, None] - places[None]
    is_seen_SS = (distance_SS >= 0) & (distance_SS < spec.attention_span)
    scores_BSS = torch.einsum("bse,bte->bst", query_BSE, key_BSE) / math.sqrt(spec.head_width)
    share_BSS = scores_BSS.masked_fill(~is_seen_SS, -math.inf).softmax(-1)
    return torch.einsum("bst,bte->bse", share_BSS, value_BSE)


def turn(x_BSE: torch.Tensor, base: float) -> torch.Tensor:
    """Multiply the complex numbers of features i and i + E/2 by exp(1j * place * base ** (-2 i / E))."""
    half = x_BSE.shape[-1] // 2
    rate_E = base ** (-torch.arange(half, dtype=x_BSE.dtype) * 2 / x_BSE.shape[-1])
    angle_SE = torch.arange(x_BSE.shape[1], dtype=x_BSE.dtype)[:, None] * rate_E
    turned = torch.complex(x_BSE[..., :half], x_BSE[..., half:]) * torch.polar(torch.ones_like(angle_SE), angle_SE)
    return torch.cat([turned.real, turned.imag], dim=-1)


def layer_norm(spec: ModelSpec, weights: Tensors, name: str, x_BSD: torch.Tensor) -> torch.Tensor:
    """Mean 0 and variance 1, scaled and shifted."""
    centred = x_BSD - x_BSD.mean(-1, keepdim=True)
    deviation = ((centred**2).mean(-1, keepdim=True) + 1e-5).sqrt()
    return centred / deviation * weights[f"{name}.gain"] + weights[f"{name}.shift"]


def rms_norm(spec: LlamaSpec, weights: Tensors, name: str, x_BSD: torch.Tensor) -> torch.Tensor:
    """Mean square 1, scaled."""
    return x_BSD / ((x_BSD**2).mean(-1, keepdim=True) + spec.norm_epsilon).sqrt() * weights[f"{name}.gain"]


def gelu(x: torch.Tensor) -> torch.Tensor:
    """Gaussian error linear unit, by its approximation with a hyperbolic tangent."""
    return x / 2 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def product_by_heads(x_BSD: torch.Tensor, weight_DHIE: torch.Tensor, bias_HIE: torch.Tensor) -> torch.Tensor:
    """B S H I E."""
    return torch.einsum("bsd,dhie->bshie", x_BSD, weight_DHIE) + bias_HIE


def sum_over_heads(x_BSHIE: torch.Tensor, weight_HIED: torch.Tensor) -> torch.Tensor:
    """B S D."""
    return torch.einsum("bshie,hied->bsd", x_BSHIE, weight_HIED)
