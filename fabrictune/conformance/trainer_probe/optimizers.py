"""Optimizers against torch's own and against what the paper's algorithm implies."""

from typing import TYPE_CHECKING

from fabrictune.foundation.cases import Case, around
from fabrictune.foundation.extras import require_extra
from fabrictune.trainer_probe.optimizers.segments import Segment, Shard
from fabrictune.trainer_probe.optimizers.spec import OptimizerName, OptimizerSpec

if TYPE_CHECKING:
    import torch

_SPECS: dict[OptimizerName, OptimizerSpec] = {name: OptimizerSpec(name=name) for name in ("adamw", "lamb")}
_RATE = 0.01
_NUM_STEPS = 5
_NUM_ELEMENTS = 4096
_ROUNDING = 1e-15  # the last bit of numbers near one in double precision


def cases() -> tuple[Case, ...]:
    """Return the cases; running one raises UnavailableError where torch is missing."""
    return (
        Case(
            name="trainer_probe.adamw-equals-torch",
            source=f"torch.optim.AdamW: {_NUM_STEPS} steps in double precision",
            unit="largest difference",
            expected=0.0,
            low=0.0,
            high=_ROUNDING,
            run=_difference_from_torch,
        ),
        Case(
            name="trainer_probe.lamb-step-length",
            source="You et al. (ICLR 2020), algorithm 2: a step is the learning rate's share of the norm",
            unit="of the parameter's norm",
            **around(_RATE, 1e-12),
            run=_relative_step_length,
        ),
    )


def _difference_from_torch() -> float:
    spec, values = _SPECS["adamw"], _numbers()
    import torch

    parameter = torch.nn.Parameter(values.clone())
    theirs = torch.optim.AdamW(
        [parameter], lr=_RATE, betas=(spec.beta1, spec.beta2), eps=spec.epsilon, weight_decay=spec.weight_decay
    )
    parameter.grad = values.cos()
    for _ in range(_NUM_STEPS):
        theirs.step()
    return float((_step(spec, values, _NUM_STEPS) - parameter.detach()).abs().max())


def _relative_step_length() -> float:
    values = _numbers()
    return float((_step(_SPECS["lamb"], values, 1) - values).norm() / values.norm())


def _numbers() -> "torch.Tensor":
    """Return numbers without a pattern that matters: sines of whole numbers."""
    require_extra("torch", extra="train", where="trainer")
    import torch

    return torch.arange(1, _NUM_ELEMENTS + 1, dtype=torch.float64).sin()


def _step(spec: OptimizerSpec, values: "torch.Tensor", num_steps: int) -> "torch.Tensor":
    """Return the values after some steps by the same gradients, of one process that is alone."""
    from fabrictune.collectives.startup.groups import GroupPlan
    from fabrictune.collectives.startup.process_groups import Member
    from fabrictune.foundation.layout import ParallelLayout
    from fabrictune.trainer_probe.comm import Comm
    from fabrictune.trainer_probe.optimizers.optimizer import make_optimizer

    layout = ParallelLayout()
    comm = Comm(layout, Member(rank=0, plan=GroupPlan.of_layout(layout), process_groups={}, elapsed_s=0.0))
    segment = Segment(name="weight", offset=0, size=_NUM_ELEMENTS, is_replicated_over_tp=False, decays=True)
    stepped = values.clone()
    shard = Shard(name="all", segments=(segment,), first=0, values_E=stepped, gradients_E=values.cos())
    optimizer = make_optimizer([shard], spec, comm)
    for _ in range(num_steps):
        optimizer.step(_RATE)
    return stepped
