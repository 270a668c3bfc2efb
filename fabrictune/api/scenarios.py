"""Scenarios: from a file or from Python values, with some keys overridden."""

import json
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from fabrictune.scenario import files
from fabrictune.scenario.overrides import override
from fabrictune.scenario.schema import Scenario

ORIGIN = "overrides"


def load_scenario(
    path: str | PathLike[str], overrides: Mapping[str, Any] | None = None, *, trust_code: bool = False
) -> Scenario:
    """Return the scenario in a YAML file, checked.

    `overrides` maps key paths to values as the file would have them: `{"law": "swift", "engine.ecn.kmin": "100 KB"}`.
    Python files that it names run only with `trust_code`. Raises InputError with every mistake in the file, with its
    line, and in `overrides`.
    """
    return _overridden(files.load_scenario(Path(path), trust_code=trust_code), overrides)


def make_scenario(
    settings: Mapping[str, Any], folder: str | PathLike[str] = ".", *, trust_code: bool = False
) -> Scenario:
    """Return the scenario with these keys, checked; quantities are text with units, as in a file.

    Files that the scenario names are looked for from `folder`; Python files run only with `trust_code`. Raises
    InputError with every mistake.
    """
    text = json.dumps(dict(settings), indent=1, default=str)  # JSON is YAML, and quotes what YAML would guess at
    return files.parse_scenario(text, Path(folder) / "scenario", trust_code=trust_code)


def as_scenario(
    scenario: Scenario | str | PathLike[str], overrides: Mapping[str, Any] | None, *, trust_code: bool = False
) -> Scenario:
    """Return a scenario or the one in a file, with `overrides` and leave to run its files. Raises InputError."""
    if not isinstance(scenario, Scenario):
        return load_scenario(scenario, overrides, trust_code=trust_code)
    return _overridden(replace(scenario, trust_code=trust_code or scenario.trust_code), overrides)


def _overridden(scenario: Scenario, overrides: Mapping[str, Any] | None) -> Scenario:
    return override(scenario, overrides, origin=ORIGIN) if overrides else scenario
