"""Overrides of a scenario's settings: the same file with other values, and all checks."""

from fabrictune.foundation.settings.changes import Changes, change
from fabrictune.scenario.files import scenario_in
from fabrictune.scenario.schema import Scenario


def override(scenario: Scenario, changes: Changes, *, origin: str) -> Scenario:
    """Return the scenario with `changes` made; `origin` is their place. Raises ScenarioError, InputError."""
    assert scenario.document is not None, "only what came from a file can be written anew"
    return scenario_in(change(scenario.document, changes, origin=origin), trust_code=scenario.trust_code)
