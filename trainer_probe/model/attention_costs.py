"""Operations of causal attention, and what autograd keeps of it, for any family's heads.

Attention to everything keeps a logarithm a query instead of the scores; the banded window keeps its blocks and scores.
"""

from fabrictune.trainer_probe.model.spec import ModelSpec
from fabrictune.trainer_probe.model.sublayers import Share


def attention_flops(spec: ModelSpec) -> int:
    """Return the operations of a token's scores, and of the weighted sum of values."""
    return 4 * spec.attention_span * spec.width


def is_banded(spec: ModelSpec, share: Share) -> bool:
    """Return whether attention runs by blocks of a window: of one rank's, where a token does not attend to all."""
    return share.cp == 1 and spec.attention_span < spec.sequence


def log_sum_bytes(spec: ModelSpec, share: Share, num_heads: int) -> int:
    """Return the bytes of each query's logarithm of its sum of exponentials, in at least single precision."""
    return num_heads // share.tp * share.tokens * share.sum_bytes


def banded_bytes(spec: ModelSpec, share: Share, num_heads: int) -> int:
    """Return the bytes kept of a banded window: queries, twice the keys and values, and scores."""
    padded = -(-spec.sequence // spec.attention_span) * spec.attention_span
    of_head = padded * (5 * spec.head_width + 2 * spec.attention_span)
    return num_heads // share.tp * share.batch_size * of_head * share.element_bytes


def rotary_factors_bytes(spec: ModelSpec, share: Share) -> int:
    """Return the bytes of cosines and sines, for queries and for keys."""
    return 2 * share.sequence * spec.head_width * share.element_bytes
