"""Scenario files: read, checked as a whole, every mistake reported at once."""

from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from fabrictune.foundation.documents import Document, load_yaml, parse_yaml
from fabrictune.foundation.errors import ScenarioError
from fabrictune.foundation.settings.binding import bind
from fabrictune.foundation.settings.mistakes import to_mistakes
from fabrictune.scenario.schema import Scenario

MAX_SCENARIO_BYTES = 2**20


def load_scenario(path: Path) -> Scenario:
    """Return the scenario in a YAML file; raises InputError, or ScenarioError with every mistake found.

    Nothing the scenario names is opened: that happens when it is composed.
    """
    return _bound(load_yaml(path, max_bytes=MAX_SCENARIO_BYTES))


def parse_scenario(text: str, path: Path) -> Scenario:
    """Return the scenario in YAML text; `path` is what mistakes name, and files are looked up relative to it.

    Raises InputError, or ScenarioError with every mistake found.
    """
    return _bound(parse_yaml(text, path))


def _bound(document: Document) -> Scenario:
    try:
        scenario = bind(Scenario, document.tree, folder=document.path.parent)
    except ValidationError as error:
        raise ScenarioError(*to_mistakes(error, document)) from None
    return replace(scenario, document=document)
