"""Predicted steps against published ones: Table 2 and Table 3 of MegaScale (NSDI'24).

Table 2 with nothing fitted; with one and two numbers fitted to the rows of each system; and with two fitted to the rows
of one batch and tried on the other. Table 3 with the numbers fitted to Table 2: rungs before "problematic code removed"
take Megatron-LM's, the others MegaScale's.

Expected before the first run: docs/decisions/0088-predicted-steps.md, with what was found.

Run: `python -m benchmarks.studies.published_steps`
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from benchmarks.studies.published_steps.systems import (
    MEGATRON,
    RUNG_GPUS,
    TABLE_2,
    TABLE_3,
    PublishedStep,
    predict_row,
    profile_of,
    program_of,
    recipe_of,
)
from fabrictune.trainer_probe.prediction.intervals import (
    NUMBERS,
    MeasuredStep,
    Number,
    StepFit,
    fit_steps,
    interval,
    predict_again,
)
from fabrictune.trainer_probe.prediction.predictor import predict

Rows = Mapping[PublishedStep, MeasuredStep]
SYSTEMS = ("megatron", "megascale")


def main() -> None:
    """Print all tables, line by line."""
    rows = {row: MeasuredStep(prediction=predict_row(row), measured_s=row.step_s) for row in TABLE_2}
    for lines in (table_2(rows), summary(rows), table_3(rows)):
        for line in lines:
            print(line, flush=True)
        print()


def table_2(rows: Rows) -> Iterator[str]:
    """Yield the rows with nothing fitted, and with two numbers fitted to the rows of each system, with intervals."""
    yield "| system | samples | GPUs | published | nothing fitted | error | two numbers | error | interval of 90 % |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    inside = {"nothing": 0, "two": 0}
    for row, measured in rows.items():
        span = interval(measured.prediction)
        fitted = interval(measured.prediction, _fit(rows, row.system, without=row))
        step_s = _fit(rows, row.system).step_of(measured.prediction)
        inside["nothing"] += span.low_s <= row.step_s <= span.high_s
        inside["two"] += fitted.low_s <= row.step_s <= fitted.high_s
        yield (
            f"| {row.system} | {row.num_samples:,} | {row.num_gpus:,} | {row.step_s:.2f} s | "
            f"{span.step_s:.2f} s | {span.step_s / row.step_s - 1:+.1%} | {step_s:.2f} s | "
            f"{step_s / row.step_s - 1:+.1%} | {fitted.low_s:.2f} to {fitted.high_s:.2f} s |"
        )
    yield (
        f"published steps inside the interval: {inside['nothing']} of {len(rows)} with nothing fitted, "
        f"{inside['two']} of {len(rows)} with two numbers fitted to the other rows of the system"
    )


def summary(rows: Rows) -> Iterator[str]:
    """Yield mean and worst errors by what is fitted."""
    yield "| fitted | numbers | mean error | worst |"
    yield "| --- | --- | --- | --- |"
    unfitted = [measured.prediction.step_s / row.step_s - 1 for row, measured in rows.items()]
    yield _summary_row("nothing", "", unfitted)
    choices: tuple[tuple[Number, ...], ...] = (("work_factor",), ("fixed_s",), NUMBERS)
    for numbers in choices:
        fits = {system: _fit(rows, system, numbers=numbers) for system in SYSTEMS}
        said = "; ".join(f"{name} x {fit.work_factor:.3f} {fit.fixed_s:+.2f} s" for name, fit in fits.items())
        yield _summary_row(f"{len(numbers)} a system", said, [e for fit in fits.values() for e in fit.errors()])
    left_out = [_error(_fit(rows, row.system, without=row), measured) for row, measured in rows.items()]
    yield _summary_row("two, each row left out", "", left_out)
    for system in SYSTEMS:
        for num_samples in (768, 6144):
            fit = fit_steps(
                [own for row, own in rows.items() if row.system == system and row.num_samples == num_samples]
            )
            others = [own for row, own in rows.items() if row.system == system and row.num_samples != num_samples]
            said = f"x {fit.work_factor:.3f} {fit.fixed_s:+.2f} s"
            yield _summary_row(f"{system} on {num_samples:,} samples", said, [_error(fit, own) for own in others])


def table_3(rows: Rows) -> Iterator[str]:
    """Yield Table 3 with the numbers fitted to Table 2."""
    yield "| rung | published MFU | predicted | error | published gain | predicted gain |"
    yield "| --- | --- | --- | --- | --- | --- |"
    fits, settings = {system: _fit(rows, system) for system in SYSTEMS}, dict(MEGATRON)
    errors: list[float] = []
    before: tuple[float, float] | None = None  # published and predicted
    for rung in TABLE_3:
        settings |= rung.adds
        recipe = recipe_of(settings, rung.num_samples, RUNG_GPUS)
        kernels = "megascale" if rung.system == "operators" else rung.system
        numbers = "megascale" if rung.system == "megascale" else "megatron"
        unfitted = predict(recipe, program_of(recipe), profile_of(kernels))
        mfu = 100 * predict_again(unfitted, fits[numbers]).mfu_fraction
        errors.append(mfu - rung.mfu)
        gains = "| |" if before is None else f"| {rung.mfu - before[0]:+.1f} | {mfu - before[1]:+.1f} |"
        yield f"| {rung.name} | {rung.mfu} | {mfu:.1f} | {errors[-1]:+.1f} {gains}"
        before = (rung.mfu, mfu)
    yield f"mean error {_mean(errors):.2f} points, worst {max(map(abs, errors)):.1f}"


def _fit(
    rows: Rows, system: str, *, without: PublishedStep | None = None, numbers: Sequence[Number] = NUMBERS
) -> StepFit:
    return fit_steps([own for row, own in rows.items() if row.system == system and row is not without], numbers)


def _error(fit: StepFit, measured: MeasuredStep) -> float:
    return replace(fit, steps=(measured,)).errors()[0]


def _mean(errors: Sequence[float]) -> float:
    return sum(map(abs, errors)) / len(errors)


def _summary_row(what: str, numbers: str, errors: Sequence[float]) -> str:
    return f"| {what} | {numbers} | {_mean(errors):.2%} | {max(map(abs, errors)):.1%} |"


if __name__ == "__main__":
    main()
