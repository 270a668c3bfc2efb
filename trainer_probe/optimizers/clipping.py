"""Clipping of gradients by their norm over all parameters of the model, whichever rank holds them.

Source: Pascanu et al., "On the difficulty of training recurrent neural networks", ICML 2013, algorithm 1.
Left out: parameters that two pipeline stages share, whose gradients would count twice.
"""

from collections.abc import Sequence

import torch

from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.optimizers.norms import own_square_sums, replicated
from fabrictune.trainer_probe.optimizers.segments import Shard

_TAG = "optimizer.gradient-norm"
_EPSILON = 1e-6  # torch.nn.utils.clip_grad_norm_'s


def gradient_norm(shards: Sequence[Shard], comm: Comm) -> torch.Tensor:
    """Return the norm of all gradients of the model, in double precision, the same on every rank of the layout.

    Parameters replicated over tp count once. Three requests: over dp, tp and pp.
    """
    sums_S = own_square_sums(shards, [shard.gradients_E for shard in shards])
    is_replicated_S = replicated(shards, sums_S.device)
    split_and_replicated = torch.stack([sums_S[~is_replicated_S].sum(), sums_S[is_replicated_S].sum()])
    comm.all_reduce(split_and_replicated, axis="dp", tag=_TAG).wait()
    comm.all_reduce(split_and_replicated[:1], axis="tp", tag=_TAG).wait()
    total = split_and_replicated.sum()
    comm.all_reduce(total, axis="pp", tag=_TAG).wait()
    return total.sqrt()


def clip(shards: Sequence[Shard], max_norm: float, comm: Comm, *, loss_scale: float = 1.0) -> torch.Tensor:
    """Bring the gradients' norm down to `max_norm` where it is above; returns what it was.

    Gradients of a scaled loss are unscaled in the same pass, and the norm is that of the unscaled ones. Where it is not
    finite the gradients are of no use, and the step must be left out.
    """
    norm = gradient_norm(shards, comm) / loss_scale
    factor = (max_norm / (norm + _EPSILON)).clamp(max=1.0) / loss_scale
    for shard in shards:
        shard.gradients_E.mul_(factor)
    return norm
