"""Operations that the hardware runs, beside those of the model: with what recomputation repeats.

A utilisation by them (HFU) says how busy the hardware is, and one by the model's (MFU) how far the training comes.

Source: Korthikanti et al., "Reducing activation recomputation in large transformer models", 2022, section 6 and
appendix A; Chowdhery et al., "PaLM", 2022, appendix B, for the two utilisations.
"""

from fabrictune.trainer_probe.model.attention_costs import attention_flops
from fabrictune.trainer_probe.model.spec import ModelSpec, flops_per_token, flops_per_token_recomputed
from fabrictune.trainer_probe.policies import Recompute


def hardware_flops_per_token(spec: ModelSpec, recompute: Recompute) -> float:
    """Return the operations of a token with what is repeated: nothing, attention's own, or every layer's."""
    if recompute == "full":
        return flops_per_token_recomputed(spec)
    return flops_per_token(spec) + (spec.depth * attention_flops(spec) if recompute == "selective" else 0)
