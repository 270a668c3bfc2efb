"""Drafts: every shape with every workload runs as it is written, and uncommenting a default changes nothing."""

import re
from pathlib import Path
from typing import Any

import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.errors import InputError
from fabrictune.scenario.drafts import BUILDERS, WORKLOADS, Choices, draft, questions
from fabrictune.scenario.files import parse_scenario

SMALL = {  # hosts of the shapes whose defaults are whole clusters
    "megascale": {"fabric.num_hosts": 128},
    "barre": {"fabric.num_hosts": 128},
    "hpn": {"fabric.num_hosts": 128},
    "rail_only": {"fabric.num_hosts": 128},
}


def choices(fabric: str = "clos", traffic: str = "all_reduce", **settings: Any) -> Choices:
    """Return choices with settings of the fabric and the traffic, `fabric_radix` for `fabric.radix`."""
    own = {key.replace("_", ".", 1): value for key, value in settings.items()}
    return Choices(
        file="my.yaml", fabric=fabric, traffic=traffic, law="swift", settings={**SMALL.get(fabric, {}), **own}
    )


@pytest.mark.parametrize("traffic", WORKLOADS)
def test_every_workload_runs_as_it_is_written(traffic: str, tmp_path: Path) -> None:
    text, composed = draft(choices(traffic=traffic), tmp_path)
    assert len(composed.traffic) > 0
    assert composed.scenario.law.name == "swift"
    assert all(len(line) <= 120 for line in text.splitlines())


@pytest.mark.parametrize("fabric", sorted(set(BUILDERS) - {"meta24k"}))
def test_every_shape_has_a_layout_over_all_its_nics(fabric: str, tmp_path: Path) -> None:
    """Tensor parallelism in hosts, data parallelism between them; meta24k has thousands and is left out."""
    _, composed = draft(choices(fabric), tmp_path)
    layout = composed.scenario.traffic.spec.layout
    assert layout.tp * layout.dp == composed.network.fabric.num_nics


def test_defaults_in_comments_are_the_defaults(tmp_path: Path) -> None:
    """With each commented setting that has a value put into force the scenario is the same."""
    text, composed = draft(choices(), tmp_path)
    forced = re.sub(r"^  # (\w+: +\S)", r"  \1", text, flags=re.M)
    forced = re.sub(r"^  (\w+: +#.*)$", r"  # \1", forced, flags=re.M)  # a default that follows from others
    assert forced.count("# ") < text.count("# ") + 5
    assert parse_scenario(forced, tmp_path / "my.yaml").fabric == composed.scenario.fabric
    assert parse_scenario(forced, tmp_path / "my.yaml").traffic == composed.scenario.traffic


def test_settings_take_the_place_of_suggestions(tmp_path: Path) -> None:
    """Also one that nobody would be asked for, and one inside another."""
    others: dict[str, Any] = {"traffic_expansion.pxn": False}
    text, composed = draft(choices(fabric_num_hosts=8, fabric_oversubscription=2, **others), tmp_path)
    assert re.search(r"^  num_hosts: 8 +# hosts", text, re.M)
    assert re.search(r"^  oversubscription: 2 +# capacity", text, re.M)
    assert composed.scenario.traffic.spec.expansion.pxn is False


def test_a_topology_file_is_a_fabric(tmp_path: Path) -> None:
    """Its layout is that of its hosts and NICs."""
    fabric = str(tmp_path / "fabric.json")
    assert run(["topo", "build", "clos", "num_hosts=4", "hosts_per_tor_set=4", "nics_per_host=2", "--out", fabric]) == 0
    assert [question.key for question in questions(choices(fabric))] == ["traffic.message"]
    _, composed = draft(choices(fabric), tmp_path)
    assert (composed.scenario.traffic.spec.layout.tp, composed.scenario.traffic.spec.layout.dp) == (2, 4)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (choices("cloz"), "--fabric: no builder 'cloz'\n  did you mean 'clos'?"),
        (choices(traffic="incasts"), "did you mean 'incast'?"),
        (choices(fabric_num_host=8), "--set: no key 'fabric.num_host'\n  did you mean 'fabric.num_hosts'?"),
        (choices(engine_mtu="1 KB"), "next: write other keys into the file that init makes"),
    ],
)
def test_what_is_not_known_is_refused(wrong: Choices, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        draft(wrong, tmp_path)
    assert message in str(raised.value)
