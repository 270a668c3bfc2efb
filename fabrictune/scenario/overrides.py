"""Overrides of a scenario's settings: the same file with other values, and all checks."""

from dataclasses import replace

from pydantic import ValidationError

from fabrictune.foundation.errors import ScenarioError
from fabrictune.foundation.settings.binding import bind
from fabrictune.foundation.settings.changes import Changes, change
from fabrictune.foundation.settings.mistakes import to_mistakes
from fabrictune.scenario.schema import Scenario


def override(scenario: Scenario, changes: Changes, *, origin: str) -> Scenario:
    """Return the scenario with `changes` made; `origin` is their place. Raises ScenarioError, InputError."""
    assert scenario.document is not None, "only what came from a file can be written anew"
    changed = change(scenario.document, changes, origin=origin)
    try:
        bound = bind(Scenario, changed.tree, folder=changed.path.parent)
    except ValidationError as error:
        raise ScenarioError(*to_mistakes(error, changed)) from None
    return replace(bound, document=changed)
