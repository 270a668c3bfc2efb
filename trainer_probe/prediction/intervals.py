"""The interval of a predicted step, and the fit of two numbers to measured steps.

Log of a step is taken as linear in the log of the profile's values near the profile. Values with one source are off
together, those of different sources apart; each by its uncertainty, half of a 90 % interval of a normal law. On top the
model itself is off. Where nothing is fitted, a training system has a spread of its own: what its host, its kernels and
its clocks add. Where steps of the system were measured, a factor on work and seconds a step are fitted to them by least
squares of relative errors; the interval is the one of the linear model, given the rows.

`MODEL_SPREAD` and `SYSTEM_SPREAD` are fitted, as root mean squares of errors: of the 16 rows of MegaScale's Table 2
(NSDI'24), each row left out of the fit of its system; and of 46 published steps with nothing fitted, those 16 and the
30 of `benchmarks/studies/published_steps/held_out.py`, of which 39 lie inside their intervals.

Source: Rasmussen and Williams, "Gaussian processes for machine learning", section 2.7, for the interval with a fit.

Shapes: N measured rows, G sources of values, F fitted numbers, V values of the profile.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.units import PS_PER_S
from fabrictune.hardware.cluster import FixedSpec
from fabrictune.hardware.software import SoftwareSpec
from fabrictune.trainer_probe.prediction.predictor import Part, Prediction, predict
from fabrictune.trainer_probe.prediction.stragglers import mean_s

MODEL_SPREAD = 0.028
SYSTEM_SPREAD = 0.138
Z_90 = 1.645  # half of a 90 % interval over a standard deviation

Number = Literal["work_factor", "fixed_s"]
NUMBERS: tuple[Number, ...] = ("work_factor", "fixed_s")


@dataclass(frozen=True, kw_only=True)
class MeasuredStep:
    """A step that was measured, and its prediction with nothing fitted."""

    prediction: Prediction
    measured_s: float


@dataclass(frozen=True, kw_only=True)
class StepFit:
    """One or two numbers fitted to measured steps of one system."""

    steps: tuple[MeasuredStep, ...]
    numbers: tuple[Number, ...]  # that were fitted
    work_factor: float
    fixed_s: float

    def step_of(self, prediction: Prediction) -> float:
        """Return a predicted step with the fitted numbers."""
        return prediction.step_s + (self.work_factor - 1) * prediction.work_s + self.fixed_s

    def errors(self) -> list[float]:
        """Return the relative error of each step."""
        return [self.step_of(step.prediction) / step.measured_s - 1 for step in self.steps]


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A predicted step with its 90 % interval."""

    step_s: float
    low_s: float
    high_s: float
    shares: dict[str, float]  # of the variance, by what is uncertain


def fit_steps(steps: Sequence[MeasuredStep], numbers: Sequence[Number] = NUMBERS) -> StepFit:
    """Return the fit of some of the two numbers by least squares of relative errors; raises InputError.

    A step is affine in both numbers, up to changes of the critical path. Where seconds a step would be negative, the
    factor alone is fitted.
    """
    if len(steps) < len(numbers):
        raise InputError(
            Mistake(
                where="measured steps",
                found=f"{len(steps)}",
                allowed=f"at least {len(numbers)}, one for each fitted number",
            )
        )
    rows_NF = np.array([_row(step.prediction, step.measured_s) for step in steps])
    columns = [NUMBERS.index(name) for name in numbers]
    unfitted_N = np.array([1 - step.prediction.step_s / step.measured_s for step in steps])
    found_F, _, rank, _ = np.linalg.lstsq(rows_NF[:, columns], unfitted_N)
    if rank < len(numbers):
        raise InputError(
            Mistake(
                where="measured steps",
                found="steps whose work is the same share of each",
                allowed="steps that determine both numbers",
                next_step="add steps with other numbers of GPUs or micro-batches",
            )
        )
    change = dict(zip(numbers, found_F.tolist(), strict=True))
    if change.get("fixed_s", 0.0) < 0 and "work_factor" in change:
        return fit_steps(steps, ("work_factor",))
    if (work_factor := 1 + change.get("work_factor", 0.0)) <= 0:
        raise InputError(
            Mistake(
                where="measured steps",
                found=f"a factor of {work_factor:.3g} on work fits them best",
                allowed="a factor above 0",
                next_step="check that the recipe keys beside each step are those it was measured with",
            )
        )
    return StepFit(
        steps=tuple(steps),
        numbers=tuple(numbers),
        work_factor=work_factor,
        fixed_s=change.get("fixed_s", 0.0),
    )


def interval(prediction: Prediction, fit: StepFit | None = None) -> Interval:
    """Return the interval of a predicted step, with or without a fit to steps of the same system.

    With a fit, `prediction` is that of the profile without it.
    """
    of_values = value_spreads(prediction)
    variances = {source: spread**2 for source, spread in of_values.items()}
    variances |= {"the model": MODEL_SPREAD**2, "where slow hosts are": _slow_variance(prediction)}
    if fit is None:
        variances["the training system"] = _own_variance(prediction) - MODEL_SPREAD**2
        return _interval(prediction.step_s, variances)
    for source in of_values:
        del variances[source]
    variances["values and fitted numbers"] = _variance_given(prediction, fit)
    return _interval(predict_again(prediction, fit).step_s, variances)


def part_intervals(prediction: Prediction) -> dict[str, tuple[float, float]]:
    """Return the 90 % interval of each part of a step in seconds: of values, the model and the training system.

    Values count as linear. Measured steps of a fit do not narrow it.
    """
    found = {}
    for part in prediction.parts:
        of_values = sum(spread**2 for spread in _by_source(prediction, part.slope_V).values())
        half_s = Z_90 * math.sqrt(of_values + _own_variance(prediction) * part.seconds**2)
        found[part.name] = max(part.seconds - half_s, 0.0), part.seconds + half_s
    return found


def share_interval(prediction: Prediction, part: Part) -> tuple[float, float]:
    """Return the 90 % interval of a part's share of the step over the share that is predicted.

    What the step and the part have in common, as a slower clock of the whole system, leaves the share as it is.
    """
    elasticity_V = np.array([value.elasticity for value in prediction.elasticities])
    spreads = _by_source(prediction, part.slope_V / part.seconds - elasticity_V)
    width = math.exp(Z_90 * math.sqrt(sum(spread**2 for spread in spreads.values()) + MODEL_SPREAD**2))
    return 1 / width, width


def predict_again(prediction: Prediction, fit: StepFit) -> Prediction:
    """Return a prediction with the fitted numbers."""
    profile, fitted = prediction.profile, f"fitted: {len(fit.steps)} measured steps"
    software = replace(profile.software, work_factor=profile.software.work_factor * fit.work_factor)
    fixed = replace(profile.fixed, step_ps=profile.fixed.step_ps + round(fit.fixed_s * PS_PER_S))
    sources = {
        **profile.sources,
        **({"software": fitted} if software != SoftwareSpec() else {}),
        **({"fixed": fitted} if fixed != FixedSpec() else {}),
    }
    with_both = replace(profile, software=software, fixed=fixed, sources=sources)
    return predict(prediction.recipe, prediction.program, with_both)


def value_spreads(prediction: Prediction) -> dict[str, float]:
    """Return the relative standard deviation of a step by the source of values; its sign is that of its elasticity."""
    keys: dict[str, list[str]] = {}
    for value in prediction.elasticities:
        keys.setdefault(value.source, []).append(value.key)
    spreads = _by_source(prediction, np.array([value.elasticity for value in prediction.elasticities]))
    return {_named(keys[source]): spread for source, spread in spreads.items()}


def _by_source(prediction: Prediction, slope_V: FloatArray) -> dict[str, float]:
    """Return the standard deviation that values of each source give to what has these slopes."""
    spreads: dict[str, float] = {}
    for value, slope in zip(prediction.elasticities, slope_V.tolist(), strict=True):
        spreads[value.source] = spreads.get(value.source, 0.0) + slope * value.uncertainty / Z_90
    return spreads


def _own_variance(prediction: Prediction) -> float:
    """Return the relative variance of the model, and of a training system that nothing is fitted to."""
    is_fitted = prediction.profile.software.work_factor != 1
    return MODEL_SPREAD**2 + (0.0 if is_fitted else SYSTEM_SPREAD**2)


def _named(keys: Sequence[str]) -> str:
    """Return a name of the values of one source, which no other has."""
    first, *others = keys
    return f"{first} and {len(others)} more" if others else first


def _row(prediction: Prediction, step_s: float) -> list[float]:
    """Return the relative change of a step for a change of one of each fitted number."""
    return [prediction.work_s / step_s, 1 / step_s]


def _slow_variance(prediction: Prediction) -> float:
    mean = mean_s(prediction.distribution)
    return sum(outcome.probability * (outcome.step_s / mean - 1) ** 2 for outcome in prediction.distribution)


def _variance_given(prediction: Prediction, fit: StepFit) -> float:
    """Return the variance that values and fitted numbers leave, given the fitted rows."""
    everything = [*(step.prediction for step in fit.steps), prediction]
    sources = sorted({source for one in everything for source in value_spreads(one)})
    spread_NG = np.array([[value_spreads(one).get(source, 0.0) for source in sources] for one in everything])
    columns = [NUMBERS.index(name) for name in fit.numbers]
    row_NF = np.array([_row(one, fit.step_of(one)) for one in everything])[:, columns]
    covariance_NN = spread_NG @ spread_NG.T
    known_NN = covariance_NN[:-1, :-1] + MODEL_SPREAD**2 * np.eye(len(fit.steps))
    weights_N = np.linalg.solve(known_NN, covariance_NN[:-1, -1])
    left_F = row_NF[-1] - row_NF[:-1].T @ weights_N
    precision_FF = row_NF[:-1].T @ np.linalg.solve(known_NN, row_NF[:-1])
    of_values = covariance_NN[-1, -1] - covariance_NN[:-1, -1] @ weights_N
    return float(max(of_values, 0.0) + left_F @ np.linalg.solve(precision_FF, left_F))


def _interval(step_s: float, variances: dict[str, float]) -> Interval:
    total = sum(variances.values())
    half = Z_90 * math.sqrt(total)
    shares = {name: variance / total for name, variance in variances.items() if variance > 0}
    return Interval(
        step_s=step_s,
        low_s=step_s * math.exp(-half),
        high_s=step_s * math.exp(half),
        shares=dict(sorted(shares.items(), key=lambda share: -share[1])),
    )
