"""Intervals and fits against arithmetic: what is known makes them narrow, and the two numbers are found again."""

from collections.abc import Sequence

import numpy as np
import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.hardware.files import bundled_profile
from fabrictune.trainer_probe.model.gpt import GptSpec
from fabrictune.trainer_probe.parallel.degrees import Degrees
from fabrictune.trainer_probe.prediction.intervals import (
    MeasuredStep,
    fit_steps,
    interval,
    part_intervals,
    predict_again,
    share_interval,
    value_spreads,
)
from fabrictune.trainer_probe.prediction.predictor import Prediction, predict
from fabrictune.trainer_probe.recipes.schema import Recipe

pytest.importorskip("torch")

MODEL = GptSpec(width=4096, depth=16, num_heads=32, vocabulary=32768, sequence=2048)
PROFILE = bundled_profile("a100")


def prediction(num_batches: int, dp: int) -> Prediction:
    from fabrictune.trainer_probe.prediction.dry_run import write_program

    degrees = Degrees(layout=ParallelLayout(tp=8, pp=4, dp=dp), num_batches=num_batches)
    recipe = Recipe(name="play", model=MODEL, degrees=degrees, precision="bfloat16")
    return predict(recipe, write_program(recipe), PROFILE)


@pytest.fixture(scope="module")
def predictions() -> list[Prediction]:
    return [prediction(num_batches, 64 // num_batches) for num_batches in (4, 8, 16, 32)]


def measured(predictions: Sequence[Prediction], work_factor: float, fixed_s: float) -> list[MeasuredStep]:
    return [
        MeasuredStep(prediction=own, measured_s=own.step_s + (work_factor - 1) * own.work_s + fixed_s)
        for own in predictions
    ]


def test_two_numbers_are_found_again(predictions: list[Prediction]) -> None:
    """From steps that they made; the step with them in the profile is that of the affine form within 0.1 %."""
    fit = fit_steps(measured(predictions[:3], 1.07, 0.02))
    assert [fit.work_factor, fit.fixed_s] == pytest.approx([1.07, 0.02])
    assert max(map(abs, fit.errors())) < 1e-9
    again = predict_again(predictions[3], fit)
    assert again.step_s == pytest.approx(fit.step_of(predictions[3]), rel=1e-3)


def test_seconds_below_zero_are_not_fitted(predictions: list[Prediction]) -> None:
    """The factor alone is."""
    fit = fit_steps(measured(predictions, 1.2, -0.01))
    assert (fit.numbers, fit.fixed_s) == (("work_factor",), 0.0)


def test_fewer_steps_than_numbers_are_refused(predictions: list[Prediction]) -> None:
    """And so are steps that do not tell the numbers apart."""
    with pytest.raises(InputError) as raised:
        fit_steps(measured(predictions[:1], 1.0, 0.0))
    assert str(raised.value) == "measured steps: 1\n  allowed: at least 2, one for each fitted number"
    with pytest.raises(InputError, match="steps whose work is the same share of each"):
        fit_steps(measured([predictions[0], predictions[0]], 1.0, 0.0))


def test_an_interval_contains_its_step_and_measurements_narrow_it(predictions: list[Prediction]) -> None:
    """Shares of its variance sum to one."""
    wide = interval(predictions[3])
    narrow = interval(predictions[3], fit_steps(measured(predictions[:3], 1.07, 0.02)))
    for span in (wide, narrow):
        assert span.low_s < span.step_s < span.high_s
        assert sum(span.shares.values()) == pytest.approx(1.0)
    assert narrow.high_s / narrow.low_s < wide.high_s / wide.low_s


def test_values_of_one_source_are_off_together(predictions: list[Prediction]) -> None:
    """A spread is the sum of elasticities times uncertainties, over 1.645; data sheets have none."""
    values = predictions[0].elasticities
    expected = {
        source: sum(value.elasticity * value.uncertainty for value in values if value.source == source) / 1.645
        for source in {value.source for value in values}
    }
    assert sorted(value_spreads(predictions[0]).values()) == pytest.approx(sorted(expected.values()))


def test_elasticities_predict_small_changes(predictions: list[Prediction]) -> None:
    """Of products: all three layouts together change a step by at most as much as the products' share of it."""
    own = predictions[3]
    layouts = {f"gpu.gemm.{layout}" for layout in ("tn", "nn", "nt")}
    of_products = [value.elasticity for value in own.elasticities if value.key in layouts]
    share = own.causes()["products"] / own.step_s
    assert -share == pytest.approx(np.sum(of_products), rel=0.1)


def test_parts_change_with_values_as_the_step_does(predictions: list[Prediction]) -> None:
    """Slopes of all causes sum to the step's elasticity, in seconds; a data sheet's value gives no width."""
    own = predictions[1]
    causes = [part for part in own.parts if part.name in own.causes()]
    changes_V = np.expm1(np.log(1.1) * np.array([value.elasticity for value in own.elasticities])) * own.step_s
    assert np.sum([part.slope_V for part in causes], axis=0) * np.log(1.1) == pytest.approx(changes_V, abs=1e-9)


def test_intervals_of_parts_contain_them(predictions: list[Prediction]) -> None:
    """What is assumed is less known than what is measured: launches less than products."""
    own = predictions[1]
    parts, spans = {part.name: part for part in own.parts}, part_intervals(own)
    assert {"products", "launches", "tp", "added by tp", "added by dp", "added by pp"} <= spans.keys()
    for name, (low_s, high_s) in spans.items():
        assert 0 <= low_s <= parts[name].seconds <= high_s
    width = {name: (high_s - low_s) / parts[name].seconds for name, (low_s, high_s) in spans.items()}
    assert width["launches"] > width["products"]
    low, high = share_interval(own, parts["products"])
    assert low < 1 < high
    assert high - low < width["products"], "a share does not know what the step is off by"
