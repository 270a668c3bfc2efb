"""`fabrictune validate predict`: the step of a recipe on a cluster, with an interval, and what to change first."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabrictune.cli.framework.options import fail_on_option, hardware_option, json_option, out_option, quiet_option
from fabrictune.cli.framework.output import print_lines, print_table
from fabrictune.cli.framework.progress import progress_bar, say_on_terminal
from fabrictune.cli.framework.records import output_folder, print_record, with_command
from fabrictune.cli.train.recipes import read_recipe, recipe_argument, set_option
from fabrictune.foundation.records import notes_of
from fabrictune.foundation.run_tables.rows import to_rows
from fabrictune.foundation.units import PS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fabrictune.hardware.profile import HardwareProfile
    from fabrictune.trainer_probe.prediction.advice import Change
    from fabrictune.trainer_probe.prediction.intervals import StepFit
    from fabrictune.trainer_probe.prediction.record import PredictionResult

    Span = tuple[float, float]

MAX_CHANGES = 8  # that are printed
MAX_SHARES = 4  # of the interval
_LEAST_SHARE = 0.001  # of the step, for causes and changes that are printed


@click.command()
@recipe_argument
@set_option
@hardware_option()
@click.option(
    "--fit",
    "fit_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Measured steps of the same system (CSV: `step_s`, and recipe keys), to which two numbers are fitted.",
)
@click.option(
    "--scenario",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Scenario on whose fabric, and by whose engine, the communication of the step is simulated too.",
)
@out_option
@fail_on_option
@quiet_option
@json_option
def predict(
    recipe_name: str,
    settings: tuple[str, ...],
    hardware: "HardwareProfile",
    fit_file: Path | None,
    scenario: Path | None,
    out: Path | None,
    fail_on: str,
    quiet: bool,
    as_json: bool,
) -> int:
    """Predict the time of a training step of RECIPE, what it consists of, and what to change first.

    The trainer's dry run says what a step does; the hardware profile says what that costs. Every figure has a 90 %
    interval, from the uncertainty of the profile's values and of the model itself. Needs torch.

    \b
    Example:
      fabrictune validate predict 175b
      fabrictune validate predict 405b --hardware h100 --set degrees.layout.dp=64 --json
      fabrictune validate predict 175b --hardware my-cluster.yaml --fit measured-steps.csv
      fabrictune validate predict tiny --scenario my-fabric.yaml
    """
    from fabrictune.validate.predicted_step import predict_record

    started, recipe = time.perf_counter(), read_recipe(recipe_name, settings)
    place = output_folder(out or Path("runs") / f"{recipe.name}-predict")
    say_on_terminal("running the trainer on tensors without values ...", is_quiet=quiet or as_json)
    fit = None if fit_file is None else _fit(recipe_name, settings, fit_file, hardware)
    with progress_bar("simulating", is_quiet=quiet or as_json or scenario is None) as bar:
        result, record = predict_record(recipe, hardware, fit, scenario=scenario, started=started, progress=bar)
    record = with_command(record)
    directory = record.write(place)
    return print_record(
        record,
        directory,
        lambda: {
            **record.run["outcome"],
            "uncertain_by": [
                {"what": what, "variance_fraction": share} for what, share in result.interval.shares.items()
            ],
            "causes": to_rows(record.tables["step_causes"]),
            "values": to_rows(record.tables["step_values"]),
            "changes": to_rows(record.tables["step_changes"]),
        },
        lambda: _print(result, notes_of(record)),
        as_json=as_json,
        quiet=quiet,
        fail_on=fail_on,
    )


def _fit(recipe_name: str, settings: tuple[str, ...], path: Path, hardware: "HardwareProfile") -> "StepFit":
    from fabrictune.scenario.assignments import parse_setting
    from fabrictune.trainer_probe.recipes.files import find_recipe
    from fabrictune.validate.measured_steps import read_measured_steps
    from fabrictune.validate.predicted_step import fit_rows

    rows = read_measured_steps(path)
    return fit_rows(find_recipe(recipe_name), dict(map(parse_setting, settings)), rows, hardware)


def _print(result: "PredictionResult", notes: list[str]) -> None:
    from fabrictune.foundation.wording import count
    from fabrictune.trainer_probe.prediction.intervals import part_intervals

    prediction, span = result.prediction, result.interval
    recipe, tokens = prediction.recipe, prediction.num_tokens
    layout = recipe.degrees.layout
    print_lines(
        [
            f"{recipe.name} on {prediction.profile.name}: {count(layout.world_size, 'GPU')}, {layout.describe()}; "
            f"overlap {recipe.overlap}",
            f"step {_seconds(span.step_s)}, 90 % interval {_seconds(span.low_s)} to {_seconds(span.high_s)}",
            f"tokens/s {tokens / span.step_s:,.0f}, {tokens / span.high_s:,.0f} to {tokens / span.low_s:,.0f}",
            f"MFU {prediction.mfu_of(span.step_s):.1%}, "
            f"{prediction.mfu_of(span.high_s):.1%} to {prediction.mfu_of(span.low_s):.1%}",
            f"uncertain by {_shares(span.shares)}",
        ]
    )
    if result.fabric_step_s is not None:
        ratio = result.fabric_step_s / span.step_s
        print_lines(
            [
                f"step with its communication simulated on the scenario's fabric {_seconds(result.fabric_step_s)}, "
                f"{_seconds(span.low_s * ratio)} to {_seconds(span.high_s * ratio)} where it is as far off"
            ]
        )
    if result.fit is not None:
        errors = result.fit.errors()
        print_lines(
            [
                f"fitted to {len(errors)} measured steps: work x {result.fit.work_factor:.3f}, "
                f"{result.fit.fixed_s:+.2f} s a step; worst error {max(map(abs, errors)):.1%}",
            ]
        )
    print_lines(["", "critical path"])
    spans = part_intervals(prediction)
    print_table(("cause", "time", "90 %", "of the step"), _cause_cells(result, spans), indent=2)
    if prediction.without_axis_s:
        print_lines(["", "communication"])
        headings = ("axis", "waited for on the critical path", "90 %", "added to the step", "90 %")
        print_table(headings, _axis_cells(result, spans), indent=2)
    print_lines(["", "what to change first"])
    shown = [change for change in result.changes if change.gain_fraction > _LEAST_SHARE][:MAX_CHANGES]
    print_table(("change", "step", "gain", "90 %"), [_change_cells(change) for change in shown], indent=2)
    print_lines(["", *notes])


def _cause_cells(result: "PredictionResult", spans: "Mapping[str, Span]") -> list[tuple[str, ...]]:
    causes = sorted(result.prediction.causes().items(), key=lambda cause: -cause[1])
    step_s = result.prediction.step_s
    return [
        (name, _seconds(seconds), _span(spans.get(name)), f"{seconds / step_s:.1%}")
        for name, seconds in causes
        if seconds > _LEAST_SHARE * step_s
    ]


def _axis_cells(result: "PredictionResult", spans: "Mapping[str, Span]") -> list[tuple[str, ...]]:
    from fabrictune.trainer_probe.prediction.predictor import ADDED_BY

    prediction, causes = result.prediction, result.prediction.causes()
    return [
        (
            axis,
            _seconds(causes[axis]),
            _span(spans.get(axis)),
            _seconds(prediction.step_s - step_s),
            _span(spans.get(f"{ADDED_BY} {axis}")),
        )
        for axis, step_s in prediction.without_axis_s.items()
    ]


def _change_cells(change: "Change") -> tuple[str, ...]:
    low, high = change.gain_interval
    return change.what, _seconds(change.step_s), f"{-change.gain_fraction:+.1%}", f"{-high:+.1%} to {-low:+.1%}"


def _span(ends: "Span | None") -> str:
    return "" if ends is None else f"{_seconds(ends[0])} to {_seconds(ends[1])}"


def _shares(shares: dict[str, float]) -> str:
    return "; ".join(f"{share:.0%} {name}" for name, share in list(shares.items())[:MAX_SHARES])


def _seconds(seconds: float) -> str:
    from fabrictune.foundation.units import format_duration

    return format_duration(round(seconds * PS_PER_S))
