"""JSON Schemas take every bundled file and every default, and mark keys and choices that are not known."""

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from fabrictune.foundation.settings.json_schema import json_schema
from fabrictune.scenario.bundled import bundled_names, bundled_path
from fabrictune.scenario.drafts import BUILDERS, WORKLOADS, Choices, draft
from fabrictune.scenario.schema import Scenario
from fabrictune.sweeps.schema import Sweep
from fabrictune.trainer_probe.recipes.schema import Recipe

ROOT = Path(__file__).parents[3] / "fabrictune"
RECIPES = sorted((ROOT / "trainer_probe" / "recipes").glob("*.yaml"))
SWEEPS = sorted((ROOT / "scenarios" / "sweeps").glob("*.yaml"))
SCHEMAS: dict[type, dict[str, Any]] = {spec: json_schema(spec, spec.__name__) for spec in (Scenario, Recipe, Sweep)}
FABRIC = {"builder": "clos", "num_hosts": 4, "hosts_per_tor_set": 4}
TRAFFIC = {"workload": "incast", "senders": 3, "message": "1 MB"}


def mistakes(spec: type, tree: Any) -> list[str]:
    """Return where a file breaks its schema."""
    return [error.json_path for error in jsonschema.Draft7Validator(SCHEMAS[spec]).iter_errors(tree)]


@pytest.mark.parametrize("spec", SCHEMAS)
def test_it_is_a_schema(spec: type) -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMAS[spec])


@pytest.mark.parametrize("name", bundled_names())
def test_bundled_scenarios_keep_to_it(name: str) -> None:
    assert not mistakes(Scenario, yaml.safe_load(bundled_path(name).read_text()))


@pytest.mark.parametrize(("spec", "path"), [*((Recipe, path) for path in RECIPES), *((Sweep, path) for path in SWEEPS)])
def test_bundled_recipes_and_sweeps_keep_to_theirs(spec: type, path: Path) -> None:
    assert not mistakes(spec, yaml.safe_load(path.read_text()))


@pytest.mark.parametrize("traffic", WORKLOADS)
def test_drafts_keep_to_it(traffic: str, tmp_path: Path) -> None:
    text, _ = draft(Choices(file="x.yaml", fabric="clos", traffic=traffic, law="none", settings={}), tmp_path)
    assert not mistakes(Scenario, yaml.safe_load(text))


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"sed": 3}, "$"),
        ({"fabric": {**FABRIC, "num_host": 3}}, "$.fabric"),
        ({"fabric": {**FABRIC, "builder": "cloz"}}, "$.fabric"),
        ({"traffic": {"workload": "incast", "message": "1 MB"}}, "$.traffic"),
        ({"engine": {"mtuu": "1 KB"}}, "$.engine"),
        ({"seed": "three"}, "$.seed"),
    ],
)
def test_what_the_check_refuses_for_its_name_or_type_is_marked(change: dict[str, Any], place: str) -> None:
    good = {"name": "x", "fabric": FABRIC, "traffic": TRAFFIC}
    assert not mistakes(Scenario, good)
    assert mistakes(Scenario, {**good, **change}) == [place]


def test_meanings_and_choices_are_there_for_an_editor() -> None:
    """Every builder can be completed, and a key has what `scenario keys` says of it."""
    schema = SCHEMAS[Scenario]
    (reference,) = [one["$ref"].rsplit("/", 1)[1] for one in [schema] if "$ref" in one]
    fabric = schema["definitions"][reference]["properties"]["fabric"]
    assert set(BUILDERS) <= {option["properties"]["builder"].get("const") for option in fabric["anyOf"]}
    clos = next(name for name in schema["definitions"] if name.endswith(".ClosSpec"))
    assert schema["definitions"][clos]["properties"]["num_hosts"]["description"] == "hosts (servers) in all"
