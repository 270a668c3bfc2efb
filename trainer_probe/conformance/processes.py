"""Real processes on this machine, against one process and arithmetic."""

import numpy as np

from foundation.cases import Case, exactly
from trainer_probe.config import PerceptronSpec, Policy, TrainingSpec
from trainer_probe.training import train

_NUM_STEPS = 2
_TOLERANCE = 1e-12  # double precision: only the order of additions differs


def cases() -> tuple[Case, ...]:
    """Return the cases; running one raises UnavailableError where torch is missing."""
    return (_equality("none"), _equality("overlap"), _ledger_bytes())


def _spec(policy: Policy) -> TrainingSpec:
    return TrainingSpec(model=PerceptronSpec(width=32, depth=3), batch_size=16, bucket_bytes=10_000, policy=policy)


def _equality(policy: Policy) -> Case:
    return Case(
        name=f"trainer_probe.two-processes-equal-one-{policy}",
        source="closed form: the sum of the ranks' gradients is the gradient of the whole batch, in double precision",
        unit="largest difference",
        expected=0.0,
        low=0.0,
        high=_TOLERANCE,
        run=lambda: _largest_difference(_spec(policy)),
    )


def _largest_difference(spec: TrainingSpec) -> float:
    """Return the largest difference of any gradient or parameter between two processes and one."""
    one, two = train(spec, 1, _NUM_STEPS), train(spec, 2, _NUM_STEPS)
    return max(
        float(np.abs(values - expected[0][name]).max())
        for expected, found in ((one.gradients, two.gradients), (one.parameters, two.parameters))
        for rank in found
        for name, values in rank.items()
    )


def _ledger_bytes() -> Case:
    spec = _spec("none")
    return Case(
        name="trainer_probe.ledger-bytes",
        source="closed form: ranks * steps * parameters * 8 B",
        unit="B",
        **exactly(2 * _NUM_STEPS * spec.model.num_parameters * 8),
        run=lambda: float(train(spec, 2, _NUM_STEPS).trace.bytes_N.sum()),
    )
