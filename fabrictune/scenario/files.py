"""From a scenario file to a checked Scenario, with every mistake of the file reported at once."""

from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from fabrictune.foundation.documents import load_yaml
from fabrictune.foundation.errors import ScenarioError
from fabrictune.foundation.settings.binding import bind
from fabrictune.foundation.settings.mistakes import explain
from fabrictune.scenario.schema import Scenario

MAX_SCENARIO_BYTES = 2**20


def load_scenario(path: Path) -> Scenario:
    """Return the scenario in a YAML file; raises InputError, or ScenarioError with every mistake found.

    Nothing the scenario names is opened: that happens when it is composed.
    """
    document = load_yaml(path, max_bytes=MAX_SCENARIO_BYTES)
    try:
        scenario = bind(Scenario, document.tree, folder=path.parent)
    except ValidationError as error:
        raise ScenarioError(*explain(error, document)) from None
    return replace(scenario, document=document)
