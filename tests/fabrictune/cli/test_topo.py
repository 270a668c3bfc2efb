"""`topo validate` and `topo diff` as a user and a script meet them."""

import json
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.topology.importers import IMPORTERS

GOLDEN = Path(__file__).parents[2] / "golden" / "topology"
HEADING = "a_device,a_port,a_role,b_device,b_port,b_role,rate\n"
GOOD = "h1,nic0,host,t1,1,leaf,400G\nh2,nic0,host,t1,2,leaf,400G\nh3,nic0,host,t1,3,leaf,400G\n"
MONDAY = HEADING + GOOD
FRIDAY = MONDAY.replace("h2,nic0,host,t1,2,leaf,400G", "h2,nic0,host,t1,2,leaf,100G")


NOT_BOTH_ENDS = (  # a list of cables has each once
    "    not run: cabling.speed-mismatch: no link has a speed at both ends\n"
    "    not run: cabling.one-sided: no link leads to a device whose own table was read\n"
)


@pytest.fixture
def dates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cabling list of two dates, in the folder that the command runs in: on Friday a link came up slower."""
    monkeypatch.chdir(tmp_path)
    Path("monday.csv").write_text(MONDAY)
    Path("friday.csv").write_text(FRIDAY)


@pytest.mark.usefixtures("dates")
def test_a_good_fabric_has_no_findings(capsys: pytest.CaptureFixture[str]) -> None:
    """Only the notes of what was filled in."""
    assert run(["topo", "validate", "monday.csv", "--fail-on", "info"]) == 0
    assert capsys.readouterr().out == (
        "note: links without a cable length, taken as 10 m: 3\n9 checks: 7 passed, 2 not run\n"
        f"{NOT_BOTH_ENDS}monday: no findings\n"
    )


@pytest.mark.usefixtures("dates")
def test_findings_are_printed_and_decide_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    """A slow link is a warning, twice: of the link, and of the host whose capacity it is."""
    assert run(["topo", "validate", "friday.csv"]) == 0
    assert capsys.readouterr().out == (
        "note: links without a cable length, taken as 10 m: 3\n"
        "warning: h2:nic0 -> t1:2: 100 Gbps; expected 400 Gbps, as on 2 of 3 links between tier 0 and "
        "tier 1 [fabric.unequal-rate]\n"
        "warning: h2: 1 uplink (100 Gbps); 2 of 3 hosts have 1 uplink (400 Gbps); "
        "expected equal uplinks within a tier [fabric.unequal-uplinks]\n"
        "    uplinks to: t1\n"
        "next: look for a cable, module or setting of the wrong speed at either end\n"
        "next: check for uplinks that are missing, down, or in the wrong port\n"
        "about a rule: fabrictune rules ID\n"
        "9 checks: 5 passed, 2 found something, 2 not run\n"
        f"{NOT_BOTH_ENDS}"
        "friday: 2 findings\n"
    )
    assert run(["topo", "validate", "friday.csv", "--fail-on", "warning"]) == 1


@pytest.mark.usefixtures("dates")
def test_findings_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """One value, with the notes."""
    assert run(["topo", "validate", "friday.csv", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["name"] == "friday"
    assert len(result["notes"]) == 1
    assert [finding["id"] for finding in result["findings"]] == ["fabric.unequal-rate", "fabric.unequal-uplinks"]
    assert [check["result"] for check in result["checks"]].count("passed") == 5


@pytest.mark.usefixtures("dates")
def test_two_dates_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    """A slower link is an error; a fabric has no change from itself."""
    assert run(["topo", "diff", "monday.csv", "friday.csv"]) == 1
    assert capsys.readouterr().out == (
        "note: monday.csv: links without a cable length, taken as 10 m: 3\n"
        "note: friday.csv: links without a cable length, taken as 10 m: 3\n"
        "severity  change        of                     before     after\n"
        "error     rate-changed  link h2:nic0 - t1:2  400 Gbps  100 Gbps\n"
        "next: look for a lane, module or setting that changed the speed\n"
        "9 checks: 8 passed, 1 found something\n"
    )
    assert run(["topo", "diff", "monday.csv", "friday.csv", "--fail-on", "never"]) == 0
    capsys.readouterr()
    assert run(["topo", "diff", "monday.csv", "monday.csv", "--fail-on", "info"]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == ["no changes", "9 checks: 9 passed"]


@pytest.mark.usefixtures("dates")
def test_changes_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """What was before is expected, what is now actual."""
    assert run(["topo", "diff", "friday.csv", "monday.csv", "--json"]) == 0
    (change,) = json.loads(capsys.readouterr().out)["changes"]
    assert (change["severity"], change["expected"], change["actual"]) == ("info", "100 Gbps", "400 Gbps")


def test_a_folder_is_a_fabric_of_one_file_a_switch(tmp_path: Path) -> None:
    """The configurations of two switches, in a folder with nothing else that counts."""
    for name in ("tor1.config_db.json", "leaf1.config_db.json"):
        (tmp_path / name).write_bytes((GOLDEN / name).read_bytes())
    (tmp_path / ".backup").write_text("not read")
    assert run(["topo", "diff", str(tmp_path), str(GOLDEN / "sonic.fabric.json"), "--fail-on", "info"]) == 0


def test_import_says_what_was_filled_in_and_where_to_look_further(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Below the description; one cable is told with two speeds."""
    path = tmp_path / "list.csv"
    path.write_text(HEADING + "h1,nic0,host,t1,1,leaf,400G\nt1,1,leaf,h1,nic0,host,100G\n")
    assert run(["topo", "import", str(path)]) == 0
    assert capsys.readouterr().out.endswith(
        "note: links without a cable length, taken as 10 m: 1\n"
        "next: the files contradict one another in 1 places; fabrictune topo validate FILE... lists them\n"
    )
    assert run(["topo", "validate", str(path)]) == 1
    assert "error: h1:nic0 -> t1:1: 400 Gbps at h1:nic0 and 100 Gbps at t1:1" in capsys.readouterr().out


def test_the_help_lists_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    """It is written out, so that help imports nothing heavy."""
    assert run(["topo", "import", "--help"]) == 0
    listed = capsys.readouterr().out.partition("Formats:")[2].partition("Example:")[0]
    assert listed.replace(",", " ").split() == list(IMPORTERS)


def test_an_unusable_file_is_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, with the line; an empty folder is no file."""
    path = tmp_path / "list.csv"
    path.write_text(HEADING + "h1,nic0,host,,,,\n")
    assert run(["topo", "validate", str(path)]) == 2
    assert "list.csv:2: no b_device, b_port" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert run(["topo", "diff", str(tmp_path / "empty"), str(path)]) == 2
    assert "empty: a folder without files" in capsys.readouterr().err


LEAF = """-------------------------------------------------------------------------------
LLDP neighbors:
-------------------------------------------------------------------------------
Interface:    swp50, via: LLDP
  Chassis:
    ChassisID:    mac 02:00:00:00:00:02
    SysName:      spine1
    Capability:   Bridge, on
  Port:
    PortID:       ifname swp2
"""
SPINE = LEAF.replace("swp50", "swp1").replace("ifname swp2", "ifname swp49").replace("spine1", "leaf1")


@pytest.mark.parametrize("saved", ["fabric.json", "fabric.graphml"])
def test_what_is_known_of_the_files_travels_with_the_saved_fabric(
    saved: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A one-sided link and assumed speeds: every command on the saved fabric says what the files themselves said."""
    monkeypatch.chdir(tmp_path)
    Path("leaf1.lldp").write_text(LEAF)
    Path("spine1.lldp").write_text(SPINE.replace("02:00:00:00:00:02", "02:00:00:00:00:01"))
    assert run(["topo", "validate", "leaf1.lldp", "spine1.lldp", "--fail-on", "never", "--json"]) == 0
    read = json.loads(capsys.readouterr().out)
    assert {"2 links have no speed; assuming 100 Gbps"} <= set(read["notes"])
    assert "cabling.one-sided" in [finding["id"] for finding in read["findings"]]
    assert run(["topo", "export", "leaf1.lldp", "spine1.lldp", "--out", saved]) == 0
    for command in (["topo", "show"], ["topo", "import"], ["topo", "export", "--out", f"again-{saved}"]):
        capsys.readouterr()
        assert run([*command, saved]) == 0
        shown = capsys.readouterr().out
        assert all(f"note: {note}\n" in shown for note in read["notes"])
        assert "next: the files contradict one another in 2 places" in shown
        assert run([*command, saved, "--json"]) == 0
        described = json.loads(capsys.readouterr().out)
        assert described["notes"] == read["notes"]
        assert [finding["id"] for finding in described["findings"]] == ["cabling.one-sided"] * 2
    assert run(["topo", "validate", f"again-{saved}", "--fail-on", "never", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert (again["notes"], again["findings"]) == (read["notes"], read["findings"])


@pytest.mark.usefixtures("dates")
def test_an_import_takes_rates_and_cables_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    """By tier after all; the fabric's own file keeps what was replaced as notes."""
    command = ["topo", "import", "friday.csv", "--rate", "0-1=200G", "--rate", "800 Gbps", "--cable", "3m"]
    assert run([*command, "--out", "lab.json"]) == 0
    notes = [
        "note: links without a cable length, taken as 10 m: 3",
        "note: rate of 3 links overridden: 800 Gbps in place of 400 Gbps (2), 100 Gbps (1)",
        "note: delay of 3 links overridden: 15 ns in place of 50 ns",
        "note: rate of 3 links between tiers 0 and 1 overridden: 200 Gbps in place of 800 Gbps",
    ]
    assert capsys.readouterr().out.splitlines()[-4:] == notes
    assert run(["topo", "show", "lab.json"]) == 0
    assert capsys.readouterr().out.splitlines()[-4:] == notes


@pytest.mark.usefixtures("dates")
@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--rate", "01=4G", "--rate: '01=4G'\n  allowed: two tiers and a value, 0 for hosts: 0-1=200G"),
        ("--cable", "3", "--cable: '3': a length needs its unit"),
        ("--delay", "4-5=3us", "TIERS: no link between tiers 4 and 5\n  allowed: [0, 1]"),
    ],
)
def test_an_override_that_cannot_be_is_refused(
    option: str, value: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each with what is allowed."""
    assert run(["topo", "import", "friday.csv", option, value]) == 2
    assert capsys.readouterr().err.startswith(message)
