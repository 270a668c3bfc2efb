"""Scenario files: read, checked as a whole, every mistake reported at once."""

from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from fabrictune.foundation.documents import Document, load_yaml, parse_yaml
from fabrictune.foundation.errors import ScenarioError
from fabrictune.foundation.settings.binding import bind
from fabrictune.foundation.settings.mistakes import to_mistakes
from fabrictune.scenario.extensions import load_extensions
from fabrictune.scenario.schema import Scenario

MAX_SCENARIO_BYTES = 2**20


def load_scenario(path: Path, *, trust_code: bool = False) -> Scenario:
    """Return the scenario in a YAML file; raises InputError, or ScenarioError with every mistake found.

    Python files of topologies, importers, hash functions and collectives that it names are run, with `trust_code`
    only: without, they raise UntrustedCodeError. Nothing else that the scenario names is opened before it is composed.
    """
    return scenario_in(load_yaml(path, max_bytes=MAX_SCENARIO_BYTES), trust_code=trust_code)


def parse_scenario(text: str, path: Path, *, trust_code: bool = False) -> Scenario:
    """Return the scenario in YAML text; `path` is what mistakes name, and files are looked up relative to it.

    Raises InputError, or ScenarioError with every mistake found.
    """
    return scenario_in(parse_yaml(text, path), trust_code=trust_code)


def scenario_in(document: Document, *, trust_code: bool) -> Scenario:
    """Return the scenario in a document; raises InputError, or ScenarioError with every mistake found."""
    try:
        scenario = bind(Scenario, document.tree, folder=document.path.parent)
    except ValidationError as error:
        raise ScenarioError(*to_mistakes(error, document)) from None
    return load_extensions(replace(scenario, document=document), document, trust_code=trust_code)
