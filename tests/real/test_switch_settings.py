"""Settings of public SONiC configurations, word for word; and thousands of damaged ones."""

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.errors import InputError
from fabrictune.scenario.files import parse_scenario
from fabrictune.scenario.switch_settings import Marking, switch_keys
from fabrictune.scenario.switch_settings.changes import fabric_changes
from fabrictune.scenario.switch_settings.draft import fragment, scenario_text
from fabrictune.topology.switch_qos import read_fabric_qos
from tests.fuzz.damage import damaged

pytestmark = pytest.mark.real

GOLDEN = Path(__file__).parents[1] / "golden" / "topology"
FILES = ("t0-s6000.config_db.json", "asic0.config_db.json")
DYNAMIC = "buffers-mellanox4600c-t1-dynamic.json"
NUM_MUTATIONS = 2_500
MAX_SECONDS = 10.0  # of processor time for one file


@pytest.mark.parametrize("name", FILES)
def test_the_settings_of_public_files(
    real_data: Path, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole T0, and one ASIC of several in flat form."""
    monkeypatch.chdir(real_data / "sonic")
    assert run(["topo", "import", name, "--with-qos"]) == 0
    assert capsys.readouterr().out == (GOLDEN / f"qos-{name.partition('.')[0]}.txt").read_text()


def test_the_dynamic_buffer_model(real_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Public tables of the dynamic model, with ports of their names; queue 3 is made lossless."""
    tree: dict[str, Any] = json.loads((real_data / "sonic" / DYNAMIC).read_text())
    ports = sorted({key.partition("|")[0] for key in tree["BUFFER_PG"]})
    head = {
        "DEVICE_METADATA": {"localhost": {"hostname": "t1", "type": "LeafRouter"}},
        "PORT": {port: {"speed": "100000"} for port in ports},
        "PORT_QOS_MAP": {port: {"pfc_enable": "3,4"} for port in ports},
    }
    path = tmp_path / "t1.config_db.json"
    path.write_text(json.dumps({**head, **tree}, indent=4))
    monkeypatch.chdir(tmp_path)
    keys = switch_keys(read_fabric_qos([Path(path.name)]), Marking())
    text = "\n".join((*fragment(keys), "", *keys.remarks, "", *keys.unused, ""))
    assert text == (GOLDEN / "qos-dynamic.txt").read_text()


def _drafted(path: Path) -> str:
    """Return what becomes of a file: the scenario drafted from it is read, and compared with the file."""
    qos, marking = read_fabric_qos([path]), Marking(dscp=26)
    text = scenario_text(switch_keys(qos, marking), name="pod", fabric=Path("pod.json"), files=[path], marking=marking)
    scenario = parse_scenario(text, path.with_name("pod.yaml"))
    assert fabric_changes(qos, marking, scenario).switches == ()
    return type(scenario).__name__


@pytest.mark.slow
def test_damaged_files_are_settings_or_errors(real_data: Path, tmp_path: Path) -> None:
    """Both outcomes occur: the damage is neither harmless nor always fatal."""
    contents = [(real_data / "sonic" / name).read_bytes() for name in FILES]
    contents += [(GOLDEN / f"qos-{name}.config_db.json").read_bytes() for name in ("leaf1", "spine1")]
    path = tmp_path / "damaged.config_db.json"
    outcomes: dict[str, int] = {}
    for row in range(NUM_MUTATIONS):
        chance = random.Random(f"switch settings {row}")
        path.write_bytes(damaged(chance.choice(contents), chance))
        started = time.process_time()
        try:
            outcome = _drafted(path)
        except InputError as error:
            outcome = type(error).__name__
        assert time.process_time() - started < MAX_SECONDS, f"row {row}"
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    assert outcomes.keys() == {"Scenario", "FabricError", "InputError"}, outcomes
