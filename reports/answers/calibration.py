"""Answer of a fit: how many parameters the measurements determine, and how far the model is off."""

import numpy as np

from fabrictune.foundation.units import format_fraction
from fabrictune.reports.answers.answer import Answer, Settings
from fabrictune.reports.blocks import plural
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

PARAMETERS = select("fitted_parameters", "parameter", "verdict", "next_step")
TIMES = select("fitted_times", "error_fraction")
GOOD = "well determined"


def fit_answer(run: Run) -> Answer | None:
    """Return how well the parameters are determined, and what to measure next."""
    parameters, times = run.rows(PARAMETERS), run.rows(TIMES)
    if parameters is None:
        return None
    good = int((parameters["verdict"] == GOOD).sum())
    sentence = f"{good} of {plural(len(parameters['parameter']), 'parameter')} well determined."
    if times is not None:
        errors = np.abs(times["error_fraction"])
        middle, most = (format_fraction(float(error)) for error in (np.median(errors), errors.max()))
        sentence += f" The model is off by {middle} in the median, {most} at most."
    names = zip(parameters["parameter"].tolist(), parameters["next_step"].tolist(), strict=True)
    steps = [f"{name}: {step}" for name, step in names if step]
    return Answer(sentence=sentence, settings=(Settings.of("To measure next", steps),) if steps else ())
