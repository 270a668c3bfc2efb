"""The command line as a user and a script meet it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from fabrictune.cc.laws import LAWS
from fabrictune.cli.main import COMMANDS, fabrictune, run
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.settings.keys import sections
from fabrictune.scenario.schema import Scenario
from fabrictune.topology.builders import BUILDERS

Cli = Callable[..., "subprocess.CompletedProcess[str]"]

INCAST = """
name: incast
fabric: {builder: clos, num_hosts: 3, hosts_per_tor_set: 3, nics_per_host: 1, tiers: 2, uplinks_per_tor: 1}
traffic: {workload: incast, senders: 2, message: 100 KB}
"""


@pytest.fixture
def incast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two senders into one port of a small fabric, in a folder that the command runs in."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "incast.yaml"
    path.write_text(INCAST)
    return path


def test_help_imports_nothing_heavy(cli: Cli) -> None:
    """Listing the commands needs click and the errors; torch, numba, pandas and their like cost seconds."""
    code = (
        "import sys; from fabrictune.cli.main import run; run(['--help']); print(sorted(sys.modules), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"torch", "numba", "pandas", "matplotlib", "pyarrow", "numpy", "pydantic", "yaml", "rich", "networkx"}
    assert not heavy & set(ran.stderr.strip("[]\n").replace("'", "").split(", "))
    assert all(name in ran.stdout for name in COMMANDS)


def commands() -> Iterator[list[str]]:
    """Give the words that call each command, groups looked into."""
    context = click.Context(fabrictune)

    def within(command: click.Command | None, words: list[str]) -> Iterator[list[str]]:
        if not isinstance(command, click.Group):
            yield words
            return
        for name in command.list_commands(context):
            yield from within(command.get_command(context, name), [*words, name])

    for name in COMMANDS:
        yield from within(fabrictune.get_command(context, name), [name])


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_every_command_has_help_with_an_example(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Each command shows how it is called; the example begins with its own name."""
    assert run([*words, "--help"]) == 0
    assert f"fabrictune {' '.join(words)}" in capsys.readouterr().out.partition("Example:")[2]


@pytest.mark.parametrize(("words", "inner"), [([], "demo"), (["topo"], "import")])
def test_a_group_without_a_command_says_what_there_is(
    words: list[str], inner: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`fabrictune` alone is a question, not a mistake."""
    assert run(words) == 0
    assert inner in capsys.readouterr().out.partition("Commands:")[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["sin"],
            "fabrictune: unknown command 'sin'\n  did you mean 'sim'?\n"
            "  allowed: init, scenario, topo, ecmp, sim, trace, coll, train, hardware, rdma, fleet, diagnose, report, "
            "law, rules, validate, conformance, doctor, demo, completion, manual\n",
        ),
        (["sim", "rum"], "fabrictune sim: unknown command 'rum'\n  did you mean 'run'?\n  allowed: run, sweep\n"),
        (
            ["law", "list", "--jsn"],
            "fabrictune law list: unknown option '--jsn'\n  did you mean '--json'?\n  allowed: --json\n"
            "  next: fabrictune law list --help\n",
        ),
        (
            ["sim", "run"],
            "fabrictune sim run: give a SCENARIO, or --trace and --fabric in its place\n"
            "  next: fabrictune sim run --help\n",
        ),
        (
            ["sim", "run", "x", "--fail-on", "warnin"],
            "fabrictune sim run: --fail-on: 'warnin'\n  did you mean 'warning'?\n"
            "  allowed: info, warning, error, critical, never\n  next: fabrictune sim run --help\n",
        ),
        (["law", "list", "extra"], "fabrictune law list: got unexpected extra argument (extra)\n"
            "  next: fabrictune law list --help\n"),
        (["sim", "run", "x", "--out"], "fabrictune: option '--out' requires an argument\n  next: fabrictune --help\n"),
        (["law", "show", "dcqcm"], "law: unknown law 'dcqcm'\n  did you mean 'dcqcn'?\n"
            f"  allowed: {', '.join(LAWS)}\n"),
        (
            ["topo", "build", "fat_tre"],
            "BUILDER: unknown builder 'fat_tre'\n  did you mean 'fat_tree'?\n"
            f"  allowed: {', '.join(BUILDERS)}\n",
        ),
        (
            ["topo", "build", "fat_tree", "raddix=4", "link_rate=100"],
            "fat_tree: link_rate: '100': a rate needs its unit\n"
            "  allowed: a number and one of bps, Kbps, Mbps, Gbps, Tbps; for example '400 Gbps'\n"
            "fat_tree: raddix: unknown key 'raddix'\n  did you mean 'radix'?\n  allowed: radix, link_rate, cable\n",
        ),
        (
            ["topo", "build", "fat_tree", "radix"],
            "radix: no setting\n  allowed: KEY=VALUE, for example radix=8\n",
        ),
        (
            ["topo", "build", "fat_tree", "radix=4", "--out", "k4.xml"],
            "k4.xml: unknown file ending '.xml'\n  allowed: .json, .graphml\n",
        ),
        (["report", "build", "nowhere"], "nowhere: no run.json, so no run record\n"
            "  next: give the folder that a run wrote, such as runs/incast\n"),
        (
            ["scenario", "keys", "fabric.clso"],
            "SECTION: unknown section 'fabric.clso'\n  did you mean 'fabric.clos'?\n"
            f"  allowed: {', '.join(sections(Scenario, 'scenario'))}\n",
        ),
        (["conformance", "nosuch."], "PREFIX: no case begins with nosuch.\n"),
    ],
)  # fmt: skip
def test_a_mistake_on_the_command_line_is_one_message(
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where, what was found, the nearest guess, what is allowed, what to do next; exit code 2."""
    monkeypatch.chdir(tmp_path)
    code = run(arguments)
    printed = capsys.readouterr()
    assert (code, printed.out, printed.err) == (2, "", message)


def test_json_gives_errors_as_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    """A script that asked for JSON gets one value on stdout and nothing on stderr, whatever happens."""
    assert run(["sim", "run", "nowhere.yaml", "--json"]) == 2
    printed = capsys.readouterr()
    assert printed.err == ""
    assert json.loads(printed.out) == {
        "error": {
            "kind": "InputError",
            "exit_code": 2,
            "mistakes": [
                {
                    "where": "nowhere.yaml",
                    "found": "no such file",
                    "allowed": "",
                    "nearest": "",
                    "next_step": "check the path",
                }
            ],
        }
    }


def test_a_scenario_is_checked_without_being_run(incast: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two senders are two queue pairs with a transfer each; no record is written."""
    assert run(["scenario", "check", "incast.yaml", "--json"]) == 0
    counts = {"nics": 3, "queue_pairs": 2, "transfers": 2}
    assert json.loads(capsys.readouterr().out) == {"name": "incast", **counts, "notes": [], "findings": []}
    assert not Path("runs").exists()


def test_a_run_writes_its_record_and_says_where(incast: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The record lies in runs/NAME; stdout has the JSON and nothing else. An incast that was asked for is a warning."""
    assert run(["sim", "run", "incast.yaml", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["record"] == "runs/incast"
    assert result["num_transfers"] == 2
    assert result["metrics"]["drops"] == {"value": 0, "unit": "packets"}
    assert {path.name for path in Path("runs/incast").iterdir()} >= {"run.json", "transfers.parquet", "findings.jsonl"}


@pytest.mark.parametrize(("fail_on", "code"), [("info", 1), ("error", 1), ("critical", 0), ("never", 0)])
def test_a_broken_expectation_is_exit_code_1_from_its_severity_on(
    fail_on: str, code: int, incast: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A broken bound is an error: `--fail-on critical` lets it pass."""
    incast.write_text(INCAST + "expect: [{metric: makespan, at_most: 1 ns}]\n")
    assert run(["sim", "run", "incast.yaml", "--fail-on", fail_on, "--quiet"]) == code
    assert "error: makespan: " in capsys.readouterr().out


def test_ecmp_names_the_links_and_the_flows_that_meet_there(
    scenarios: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The badly placed job overloads links between switches; each finding names both ends and the queue pairs."""
    out = tmp_path / "record"
    assert run(["ecmp", "analyze", str(scenarios / "demo-interleaved.yaml"), "--out", str(out), "--json"]) == 1
    result = json.loads(capsys.readouterr().out)
    worst = result["findings"][0]
    assert worst["id"] == "ecmp.link-overloaded"
    assert " -> " in worst["entity"]
    assert worst["evidence"][0].startswith("queue pair ")
    assert result["num_overloaded_links"] > 0
    assert json.loads((out / "run.json").read_text())["kind"] == "ecmp analyze"


def test_a_fabric_survives_build_export_and_import(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A k=4 fat tree has 16 hosts, 20 switches and 48 links, before it is saved and after."""
    saved, graph = tmp_path / "k4.json", tmp_path / "k4.graphml"
    assert run(["topo", "build", "fat_tree", "radix=4", "--out", str(saved), "--json"]) == 0
    built = json.loads(capsys.readouterr().out)
    assert (built["hosts"], built["switches"], built["links"]) == (16, 20, 48)
    assert run(["topo", "show", str(saved), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == built
    assert run(["topo", "export", str(saved), "--out", str(graph)]) == 0
    assert graph.read_text().count("<edge ") == 48


def test_a_report_is_built_from_a_record(incast: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`report build` after `sim run` writes one page beside the record."""
    assert run(["sim", "run", "incast.yaml", "--quiet", "--fail-on", "never"]) == 0
    capsys.readouterr()
    assert run(["report", "build", "runs/incast", "--json"]) == 0
    page = Path(json.loads(capsys.readouterr().out)["page"])
    assert page.read_text().lower().lstrip().startswith("<!doctype html>")


def test_a_folder_that_cannot_be_written_is_named(incast: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file where the record's parent folder should be is a mistake of the user's, not a traceback."""
    Path("taken").write_text("")
    assert run(["sim", "run", "incast.yaml", "--out", "taken/record", "--quiet"]) == 2
    assert capsys.readouterr().err.startswith("taken")


def test_a_name_from_a_file_never_commands_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An escape sequence in a node's name is shown as text: \\x1b[2J clears no screen."""
    lab = tmp_path / "lab.clab.yml"
    lab.write_text(
        'name: "lab\\e[2J"\ntopology:\n  nodes: {leaf1: {kind: linux}, leaf2: {kind: linux}}\n'
        '  links: [{endpoints: ["leaf1:e1", "leaf2:e1"]}]\n'
    )
    run(["topo", "show", str(lab), "--links"])
    printed = capsys.readouterr()
    assert "\x1b" not in printed.out + printed.err


def test_a_reader_that_goes_away_is_no_error(cli: Cli, scenarios: Path) -> None:
    """`fabrictune law show dcqcn | head -1` must not end in a traceback."""
    reader, writer = os.pipe()
    os.close(reader)
    ran = subprocess.run(
        [sys.executable, "-m", "fabrictune", "law", "show", "dcqcn"],
        cwd=scenarios.parent,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert (ran.returncode, ran.stderr) == (141, "")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_error(closed: str, incast: Path) -> None:
    """`>&-` was an AttributeError, and the first file opened would have been taken for stdout."""
    arguments = "sim run incast.yaml --out rec --fail-on never"
    command = f'"$0" -c "from fabrictune.cli.main import main; main()" {arguments} {closed}'
    ran = subprocess.run(["sh", "-c", command, sys.executable], capture_output=True, text=True, cwd=incast.parent)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert RunRecord.read(incast.parent / "rec").kind == "sim run"


def test_an_argument_that_is_no_utf_8_is_refused_before_the_work(
    incast: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder named by the byte 0xff was a UnicodeEncodeError after the run."""
    assert run(["sim", "run", str(incast), "--out", "bad\udcff"]) == 2
    expected = "fabrictune: the argument 'bad\\udcff', which is no UTF-8\n  next: rename the file, or name another\n"
    assert capsys.readouterr().err == expected
    assert list(incast.parent.iterdir()) == [incast]
