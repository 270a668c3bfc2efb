"""How many parameters a GPT has and how many floating-point operations a token costs, counted as the papers do.

A multiplication and an addition are two operations; a backward pass costs two forward passes; only matrix products
count. Causality is not deducted: a token is charged for every place of its span, as the published figures are.

Source: Narayanan et al., "Efficient large-scale language model training on GPU clusters using Megatron-LM", SC 2021,
equations 2 and 3; Korthikanti et al., "Reducing activation recomputation in large transformer models", appendix A.
Left out: what the head would save by sharing the embedding's weights.
"""

from fabrictune.trainer_probe.model.spec import FEED_FORWARD, ModelSpec

FORWARD_AND_BACKWARD = 3  # forward passes


def published_parameters(spec: ModelSpec) -> int:
    """Return 12 l h^2 (1 + 13/(12 h) + (V + s)/(12 l h)), the papers' count.

    It is that of the serial block with learned positions, the embedding shared with the head, and no last norm.
    """
    width, depth = spec.width, spec.depth
    return 12 * depth * width**2 + 13 * depth * width + (spec.vocabulary + spec.sequence) * width


def num_parameters(spec: ModelSpec) -> int:
    """Return the weights that are trained here: the head has its own, and there is a norm before it."""
    width = spec.width
    positions = spec.sequence * width if spec.positions == "learned" else 0
    return 2 * spec.vocabulary * width + positions + spec.depth * layer_parameters(spec) + 2 * width


def layer_parameters(spec: ModelSpec) -> int:
    """Return the weights of one layer: 12 h^2 + 13 h, less a norm of 2 h and a bias of h in the parallel block."""
    width = spec.width
    matrices = (4 + 2 * FEED_FORWARD) * width**2
    input_biases = (3 + FEED_FORWARD) * width
    norm_and_output_bias = 3 * width * (2 if spec.block == "serial" else 1)
    return matrices + input_biases + norm_and_output_bias


def flops_per_token(spec: ModelSpec) -> float:
    """Return 72 l h^2 (1 + s/(6 h) + V/(12 h l)), a window in the place of s where there is one.

    MegaScale's own figures count the window's operations only; the window is not published.
    """
    products = 2 * (4 + 2 * FEED_FORWARD) * spec.width**2
    attention = 4 * spec.attention_span * spec.width  # scores, and the weighted sum of values
    head = 2 * spec.width * spec.vocabulary
    return float(FORWARD_AND_BACKWARD * (spec.depth * (products + attention) + head))


def flops_per_token_recomputed(spec: ModelSpec) -> float:
    """Return 96 l h^2 (1 + s/(6 h) + V/(16 l h)), which a GPU executes where each layer's forward pass is run twice."""
    head = 2 * spec.width * spec.vocabulary
    forward = flops_per_token(spec) / FORWARD_AND_BACKWARD
    return flops_per_token(spec) + forward - head


def model_flops_utilisation(spec: ModelSpec, *, tokens_per_s: float, num_gpus: int, peak_flops_per_s: float) -> float:
    """Return the share of the GPUs' peak that the model's operations take (MFU), 0 to 1."""
    return tokens_per_s * flops_per_token(spec) / (num_gpus * peak_flops_per_s)
