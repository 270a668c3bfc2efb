"""`topo import --with-qos`: the settings of switches on the screen, and as a scenario that runs."""

import json
import shutil
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.scenario.compilation import assemble
from fabrictune.scenario.composition import compose
from fabrictune.scenario.files import load_scenario
from fabrictune.scenario.overrides import override
from fabrictune.scenario.switch_settings.report import reporter

GOLDEN = Path(__file__).parents[2] / "golden" / "topology"
SWITCHES = ("qos-leaf1.config_db.json", "qos-spine1.config_db.json")


@pytest.fixture
def switches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the configurations of a leaf and a spine, which is the current one."""
    for name in SWITCHES:
        shutil.copy(GOLDEN / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_settings_are_shown_with_their_lines(switches: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every value's file and line, what most have, what is assumed, and what is not used."""
    assert run(["topo", "import", *SWITCHES, "--with-qos", "--dscp", "26"]) == 0
    assert capsys.readouterr().out == (GOLDEN / "qos.txt").read_text()


def test_a_scenario_is_drafted_beside_the_fabric(switches: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is a scenario as it stands, which runs; its files are named from its own folder."""
    (switches / "drafts").mkdir()
    out = Path("drafts") / "pod.json"
    assert run(["topo", "import", *SWITCHES, "--with-qos", "--dscp", "26", "--out", str(out)]) == 0
    assert "scenario: drafts/pod.yaml\n" in capsys.readouterr().out
    scenario = load_scenario(out.with_suffix(".yaml"))
    assert scenario.switches
    assert [path.resolve() for path in scenario.switches.files] == [switches / name for name in SWITCHES]
    assert (scenario.name, scenario.switches.dscp) == ("sonic-2-switches-qos", 26)
    config = assemble(compose(scenario), None).config
    assert [entry.priority for entry in config.queues.priorities] == [3, 6]
    assert (config.buffer.size_bytes, config.queues.priorities[0].ecn.kmin_bytes) == (68_000_000, 1_000_000)


def test_the_settings_as_json(switches: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One value, with the keys as a scenario has them."""
    assert run(["topo", "import", *SWITCHES, "--with-qos", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["engine"]["pfc"]["watchdog"] == {"detect": "200 ms", "restore": "400 ms", "action": "drop"}
    assert (shown["priority"], shown["scenario"], shown["routing"]["function"]) == (3, None, "crc16")
    assert len(shown["unused"]) == 5


def test_dscps_are_for_qos(capsys: pytest.CaptureFixture[str]) -> None:
    """A setting without effect is refused."""
    assert run(["topo", "import", SWITCHES[0], "--dscp", "26"]) == 2
    assert "--dscp is for --with-qos" in capsys.readouterr().err


def test_a_file_that_is_no_switch_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is written."""
    out = tmp_path / "pod.json"
    assert run(["topo", "import", str(GOLDEN / "lab.cabling.csv"), "--with-qos", "--out", str(out)]) == 2
    assert "no configuration of a SONiC switch" in capsys.readouterr().err
    assert not out.exists()


def test_buffers_of_the_running_switch(switches: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A dump of APPL_DB beside the configuration is no file of the cabling; what it computed cannot be patched."""
    profile = {"pool": "ingress_lossless_pool", "size": "0", "xoff": "77777", "dynamic_th": "2"}
    rows = {f"BUFFER_PG_TABLE:Ethernet{8 * port}:3": {"profile": "made"} for port in range(5)}
    dump = {**rows, "BUFFER_PROFILE_TABLE:made": profile}
    (switches / "leaf1.appl_db.json").write_text(json.dumps(dump, indent=1))
    files = [SWITCHES[0], "leaf1.appl_db.json"]
    assert run(["topo", "import", *files, "--with-qos", "--dscp", "26", "--out", "pod.json"]) == 0
    assert "leaf1: 4 hosts" in capsys.readouterr().out
    scenario = load_scenario(Path("pod.yaml"))
    assert scenario.packet_config().pfc.headroom_bytes == 77777
    report = reporter(scenario)(override(scenario, {"engine.queues.priorities[0].alpha": 1}, origin="test"))
    assert report
    assert (report.groups, report.remarks) == (
        (),
        ("BUFFER_PROFILE made of leaf1 is computed by the switch: no patch",),
    )


def test_a_scenario_that_is_there_is_kept(switches: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Somebody may have worked in it; nothing is written."""
    Path("pod.yaml").write_text("mine")
    assert run(["topo", "import", *SWITCHES, "--with-qos", "--out", "pod.json"]) == 2
    told = "pod.yaml: a file that is there already\n  next: move it, or name another file with --out\n"
    assert capsys.readouterr().err.endswith(told)
    assert (Path("pod.yaml").read_text(), Path("pod.json").exists()) == ("mine", False)


def test_both_databases_of_a_techsupport_folder(switches: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`dump/CONFIG_DB.json` has the settings, `dump/APPL_DB.json` the buffers, and both the cabling."""
    tree = json.loads((switches / SWITCHES[0]).read_text())
    folder = switches / "dump"
    folder.mkdir()
    config = {f"{table}|{key}": {"value": row} for table, rows in tree.items() for key, row in rows.items()}
    (folder / "CONFIG_DB.json").write_text(json.dumps(config, indent=1))
    pool = {"size": "9000000", "xoff": "1000000"}
    dump = {"PORT_TABLE:Ethernet0": {"speed": "400000"}, "BUFFER_POOL_TABLE:ingress_lossless_pool": pool}
    (folder / "APPL_DB.json").write_text(json.dumps({key: {"value": row} for key, row in dump.items()}, indent=1))
    assert run(["topo", "import", "dump", "--with-qos", "--dscp", "26", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["hosts"], shown["engine"]["buffer"]["size"]) == (4, "10000000 B")
