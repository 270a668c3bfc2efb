"""Scenarios: from a file or from Python values, with some keys overridden."""

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from fabrictune.scenario import files
from fabrictune.scenario.overrides import override
from fabrictune.scenario.schema import Scenario

ORIGIN = "overrides"


def load_scenario(path: str | PathLike[str], overrides: Mapping[str, Any] | None = None) -> Scenario:
    """Return the scenario in a YAML file, checked.

    `overrides` maps key paths to values as the file would have them: `{"law": "swift", "engine.ecn.kmin": "100 KB"}`.
    Raises InputError with every mistake in the file, with its line, and in `overrides`.
    """
    return _overridden(files.load_scenario(Path(path)), overrides)


def make_scenario(settings: Mapping[str, Any], folder: str | PathLike[str] = ".") -> Scenario:
    """Return the scenario with these keys, checked; quantities are text with units, as in a file.

    Files that the scenario names are looked for from `folder`. Raises InputError with every mistake.
    """
    text = json.dumps(dict(settings), indent=1, default=str)  # JSON is YAML, and quotes what YAML would guess at
    return files.parse_scenario(text, Path(folder) / "scenario")


def as_scenario(scenario: Scenario | str | PathLike[str], overrides: Mapping[str, Any] | None) -> Scenario:
    """Return a scenario or the one in a file, with `overrides`. Raises InputError."""
    if not isinstance(scenario, Scenario):
        return load_scenario(scenario, overrides)
    return _overridden(scenario, overrides)


def _overridden(scenario: Scenario, overrides: Mapping[str, Any] | None) -> Scenario:
    return override(scenario, overrides, origin=ORIGIN) if overrides else scenario
