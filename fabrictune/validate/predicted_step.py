"""A predicted step, with a fit to measured steps of the same system where there are any."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fabrictune.foundation.extras import require_extra
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.records import RunRecord
from fabrictune.hardware.profile import HardwareProfile
from fabrictune.trainer_probe.prediction.intervals import MeasuredStep, StepFit, fit_steps, interval, predict_again
from fabrictune.trainer_probe.prediction.predictor import Prediction, predict
from fabrictune.trainer_probe.prediction.record import PredictionResult, make_record
from fabrictune.trainer_probe.recipes.files import load_recipe
from fabrictune.trainer_probe.recipes.schema import Recipe
from fabrictune.validate.measured_steps import MeasuredRow
from fabrictune.validate.step_on_fabric import step_on_fabric


def predict_recipe(recipe: Recipe, profile: HardwareProfile) -> Prediction:
    """Return the prediction of a recipe's step; raises UnavailableError where torch is missing, and InputError."""
    require_extra("torch", extra="train", where="trainer")
    from fabrictune.trainer_probe.prediction.dry_run import write_program

    return predict(recipe, write_program(recipe), profile)


def fit_rows(path: Path, settings: Mapping[str, Any], rows: Sequence[MeasuredRow], profile: HardwareProfile) -> StepFit:
    """Return the fit to measured steps of the recipe in a file; raises InputError."""
    recipes = [load_recipe(path, {**settings, **row.settings}, origin=row.where) for row in rows]
    steps = [
        MeasuredStep(prediction=predict_recipe(recipe, profile), measured_s=row.step_s)
        for recipe, row in zip(recipes, rows, strict=True)
    ]
    return fit_steps(steps)


def predict_record(
    recipe: Recipe,
    profile: HardwareProfile,
    fit: StepFit | None = None,
    *,
    scenario: Path | None = None,
    started: float | None = None,
    progress: Progress | None = None,
) -> tuple[PredictionResult, RunRecord]:
    """Return the prediction of a recipe's step with its interval and changes, and its record.

    With the file of a `scenario` the step's communication is simulated on its fabric, too. Raises InputError.
    """
    from fabrictune.trainer_probe.prediction.advice import changes

    began = time.perf_counter() if started is None else started
    prediction = predict_recipe(recipe, profile)
    shown = prediction if fit is None else predict_again(prediction, fit)
    simulated = None if scenario is None else step_on_fabric(shown, scenario, progress=progress)
    result = PredictionResult(
        prediction=shown,
        interval=interval(prediction, fit),
        fit=fit,
        changes=changes(shown),
        fabric_step_s=None if simulated is None else simulated.step_s,
    )
    return result, make_record(result, started=began)
