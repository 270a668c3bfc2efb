"""The lists of keys of scenarios and recipes, which must be the keys that the check of a file knows."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from fabrictune.foundation.settings.binding import bind
from fabrictune.foundation.settings.keys import KeyLine, list_keys, sections
from fabrictune.foundation.settings.quantities import key_of
from fabrictune.scenario.schema import Scenario
from fabrictune.topology.builders import BUILDERS
from fabrictune.trainer_probe.recipes.schema import Recipe

SCENARIO, RECIPE = sections(Scenario, "scenario"), sections(Recipe, "recipe")
EACH = [pytest.param(known, name, id=name) for known in (SCENARIO, RECIPE) for name in known]


@pytest.mark.parametrize(("known", "section"), EACH)
def test_the_list_is_what_an_unknown_key_is_compared_with(known: dict[str, type], section: str) -> None:
    """A mapping with one unknown key is refused with the names of all keys, the same as are listed, in their order."""
    with pytest.raises(ValidationError) as raised:
        bind(known[section], {"no_such_key": 1}, folder=Path())
    unknown = next(error for error in raised.value.errors() if error["type"] == "unknown_key")
    listed = dict.fromkeys(line.key.partition(".")[0] for line in list_keys(known, section))
    assert unknown["ctx"]["allowed"] == list(listed)


@pytest.mark.parametrize(("known", "section"), EACH)
def test_what_is_listed_as_required_is_missed(known: dict[str, type], section: str) -> None:
    """An empty mapping lacks just the keys that have no default."""
    required = {line.key for line in list_keys(known, section) if line.default == "required" and "." not in line.key}
    try:
        bind(known[section], {}, folder=Path())
        missed = set()
    except ValidationError as error:
        missed = {detail["loc"][0] for detail in error.errors() if detail["type"] == "missing"}
    assert missed == required


def test_a_key_says_what_it_takes_and_what_it_is_without() -> None:
    """`mtu` is a size, 4.096 KB unless set; what gives the default of `ecn.kmin` is in its meaning."""
    lines = {line.key: line for line in list_keys(SCENARIO, "engine")}
    assert lines["mtu"] == KeyLine(key="mtu", takes="size", default="4.096 KB", meaning="payload of a full packet")
    assert lines["ecn.kmin"] == KeyLine(
        key="ecn.kmin",
        takes="size",
        default="",
        meaning="queue above which packets may be marked; by default the law's for the NICs' rate: 400 KB at 100 Gbps",
    )


def test_the_scenario_itself_points_to_its_sections() -> None:
    """A key that is a mapping of its own names the section that lists it."""
    lines = {line.key: line for line in list_keys(SCENARIO, "scenario")}
    assert lines["engine"].takes == "name: packet | fluid"
    assert lines["expect"].takes == "list of keys, see `expect`"
    assert lines["fabric"].takes == f"builder: {' | '.join([*BUILDERS, 'file'])}"
    assert set(lines) | {"document", "notes", "trust_code"} == {key_of(name) for name in Scenario.__dataclass_fields__}
