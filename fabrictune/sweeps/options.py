"""A small sweep from a command line: a scenario, some keys with their values, and what is good."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fabrictune.foundation.documents import Key, key_path
from fabrictune.foundation.errors import InputError, Mistake, ScenarioError
from fabrictune.foundation.settings.binding import bind
from fabrictune.foundation.settings.mistakes import to_mistakes
from fabrictune.scenario.files import load_scenario
from fabrictune.sweeps.axes import SweepAxis
from fabrictune.sweeps.schema import Sweep, load_sweep

SEPARATOR = ";"  # between the values of one key
DEFAULT_OBJECTIVE = "completion_time.p99"
DEFAULT_SEEDS = 3


def sweep_named(
    path: Path, axes: Sequence[str], metrics: Sequence[str], num_seeds: int | None, *, trust_code: bool = False
) -> Sweep:
    """Return the sweep in a file; with `axes`, the file is a scenario, and they make the sweep. Raises InputError."""
    if axes:
        scenario = load_scenario(path, trust_code=trust_code)
        return _sweep_of(path, scenario.name, axes, metrics, num_seeds or DEFAULT_SEEDS)
    for option, is_given in (("--objective", bool(metrics)), ("--seeds", num_seeds is not None)):
        if is_given:
            next_step = f"set it in {path}, or give --vary"
            raise InputError(Mistake(where=option, found="given without --vary", next_step=next_step))
    return load_sweep(path)


def _sweep_of(scenario: Path, name: str, axes: Sequence[str], metrics: Sequence[str], num_seeds: int) -> Sweep:
    """Return the grid over `axes`, each `KEY=VALUE;VALUE`; raises InputError with every mistake found."""
    tree = {
        "name": f"{name}-sweep",
        "scenario": scenario.name,
        "vary": [_axis(text) for text in axes],
        "seeds": num_seeds,
        "objectives": list(metrics or (DEFAULT_OBJECTIVE,)),
    }
    try:
        return bind(Sweep, tree, folder=scenario.parent)
    except ValidationError as error:
        raise ScenarioError(*to_mistakes(error, _CommandLine())) from None


class _CommandLine:
    """The place of such a sweep's keys."""

    def where(self, *keys: Key) -> str:
        """Return the option, and the key in it."""
        return f"{'--objective' if keys[:1] == ('objectives',) else '--vary'}: {key_path(keys)}"

    def line(self, *_keys: Key) -> int:
        """Return the one line there is."""
        return 1


def axis_of(text: str) -> SweepAxis:
    """Return the axis that a text `KEY=VALUE;VALUE` of a command line describes; raises InputError."""
    entry = _axis(text)
    try:
        return SweepAxis(key=entry["key"], values=tuple(entry["values"]))
    except InputError as error:
        raise InputError(*(replace(mistake, where=f"--vary {text}") for mistake in error.mistakes)) from None


def _axis(text: str) -> dict[str, Any]:
    key, is_there, values = (part.strip() for part in text.partition("="))
    if not is_there:
        raise InputError(Mistake(where=f"--vary {text}", found="no values", allowed="KEY=VALUE;VALUE"))
    return {"key": key, "values": [_value(value.strip()) for value in values.split(SEPARATOR)]}


def _value(text: str) -> Any:
    """Return a number, truth or list as JSON writes it, anything else as text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
