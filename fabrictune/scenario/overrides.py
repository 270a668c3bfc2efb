"""Overrides of a scenario's settings: the same file with other values, and all checks."""

from collections.abc import Sequence

from fabrictune.foundation.settings.changes import Changes, change
from fabrictune.scenario.assignments import parse_setting
from fabrictune.scenario.files import scenario_in
from fabrictune.scenario.schema import Scenario

SEPARATOR = ";"  # between the settings in one text


def override(scenario: Scenario, changes: Changes, *, origin: str) -> Scenario:
    """Return the scenario with `changes` made; `origin` is their place. Raises ScenarioError, InputError."""
    assert scenario.document is not None, "only what came from a file can be written anew"
    return scenario_in(change(scenario.document, changes, origin=origin), trust_code=scenario.trust_code)


def override_texts(scenario: Scenario, texts: Sequence[str], *, origin: str) -> Scenario:
    """Return the scenario with the settings of texts such as `law=swift; seed=3`, the last of a key.

    `origin` is their place. Raises ScenarioError, InputError.
    """
    changes = dict(parse_setting(setting) for text in texts for setting in text.split(SEPARATOR))
    return override(scenario, changes, origin=origin) if changes else scenario
