"""What a node prints is read, by Python or by its shell, within bounds and without its secrets."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from fabrictune.fleet.collect.collection import Collector, read_collection, write_collection
from fabrictune.fleet.collect.node_reading import CONFIG_DB, NodeReading, encode_reading, parse_reading
from fabrictune.fleet.collect.questions import COUNTERS, SETTINGS, Questions
from fabrictune.fleet.collect.script import node_program, node_script
from fabrictune.fleet.transport.answer import Answer, State
from fabrictune.foundation.errors import InputError


def run_script(questions: Questions, folder: Path, *, with_python: bool) -> NodeReading:
    """Run the script as a node would; without Python by its shell's part alone."""
    script = node_script(questions)
    if not with_python:
        script = script.split("\nelse\n", 1)[1].rsplit("\nfi\n", 1)[0]
    done = subprocess.run(["sh", "-s"], input=script.encode(), capture_output=True, check=True, cwd=folder)
    return parse_reading(done.stdout, Path("node"))


@pytest.mark.parametrize("with_python", [True, False])
def test_python_and_shell_read_the_same(tmp_path: Path, with_python: bool) -> None:
    """A file, a link, a command that works, one that fails, one that is not there."""
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "link").symlink_to(tmp_path / "a.txt")
    asked = Questions(
        files=(f"{tmp_path}/*.txt",),
        links=(f"{tmp_path}/link",),
        commands=("echo hello", "false", "no-such-program -x", "printf '%s' 'two words'"),
    )
    reading = run_script(asked, tmp_path, with_python=with_python)
    assert [(one.kind, one.name.removeprefix(f"{tmp_path}/"), tuple(one.lines)) for one in reading.sections] == [
        ("link", "link", (str(tmp_path / "a.txt"),)),
        ("file", "a.txt", ("one", "two")),
        ("command", "echo hello", ("hello",)),
        ("command", "printf %s two words", ("two words",)),
    ]
    assert reading.unread == [("false", "exit status 1"), ("no-such-program", "not installed")] or reading.unread == (
        ("false", "exit status 1"),
        ("no-such-program", "not installed"),
    )
    assert not reading.is_cut


@pytest.mark.parametrize("questions", [SETTINGS, COUNTERS])
def test_the_script_only_reads(questions: Questions) -> None:
    """No redirection but to nowhere, no file opened for writing, and no command but those that print."""
    script = node_script(questions)
    shell = script.split("\nelse\n", 1)[1]
    assert set(re.findall(r"\d?>+&?\s*\S+", shell)) <= {">/dev/null", "2>/dev/null", "2>/dev/null;", "2>&1;", "2>&1"}
    program = node_program(questions)
    assert "O_RDONLY" in program
    assert not re.search(r"O_WRONLY|O_CREAT|O_RDWR|\"w\"|os\.(remove|unlink|mkdir)", program)
    changing = ("set", "--set", "-s", "-r", "-K", "-A", "-L", "--apply", "add", "del", "replace")
    assert not [line for line in questions.commands if set(line.split()[1:]) & set(changing)]


def test_the_program_is_old_python() -> None:
    """Nodes have Python 3.6: no assignment expression, no match, no newer annotations."""
    import ast

    ast.parse(node_program(SETTINGS), feature_version=(3, 6))


def test_secrets_and_unused_tables_do_not_stay() -> None:
    """A switch's communities and keys are not kept, nor is a token in a file of settings."""
    config = {
        "PORT": {"Ethernet0": {"mtu": "9100"}},
        "SNMP_COMMUNITY": {"x": {}},
        "BGP_NEIGHBOR": {"1": {"auth_password": "p"}},
    }
    tree = {
        "fabrictune_node": 1,
        "name": "leaf1",
        "sections": [
            {"kind": "file", "name": CONFIG_DB, "lines": [json.dumps(config)]},
            {"kind": "environment", "name": "processes", "lines": ["NCCL_X_TOKEN=abcdef"]},
        ],
    }
    reading = parse_reading(json.dumps(tree).encode(), Path("leaf1.json"))
    text = encode_reading(reading).decode()
    assert "9100" in text
    assert not re.search("SNMP|auth_password|abcdef", text)


def test_a_collection_comes_back_as_it_was_written(tmp_path: Path) -> None:
    """One node read, one refused: files, list and exit survive the folder."""
    collector = Collector()
    output = json.dumps({"fabrictune_node": 1, "name": "x", "how": "python3", "sections": []}).encode()
    collector.add(Answer(name="gpu1", state=State.COLLECTED, output=output))
    collector.add(Answer(name="gpu2", state=State.REFUSED))
    made = collector.finish(["gpu1", "gpu2", "gpu3"], is_partial=True)
    read = read_collection(write_collection(made, tmp_path / "fleet"))
    assert [reading.name for reading in read.readings] == ["gpu1"]
    assert [(one.name, one.state) for one in read.missing] == [("gpu2", State.REFUSED), ("gpu3", State.STOPPED)]
    assert read.is_partial


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "node: an empty file"),
        (
            b"Welcome\n{}",
            "node: text that begins with 'Welcome\\n{}'\n  allowed: what `fleet collect` or its script wrote, or the "
            "config_db.json of a switch\n  next: see what the node's login shell prints by itself",
        ),
        (
            b'{"a": 1}',
            "node: JSON of another kind\n  allowed: what `fleet collect` or its script wrote, or the "
            "config_db.json of a switch",
        ),
        (b'{"fabrictune_node": 2}', "node: a reading of another version\n  next: collect it again"),
    ],
)
def test_other_things_are_no_reading(data: bytes, message: str) -> None:
    """The mistake says what was there."""
    with pytest.raises(InputError) as raised:
        parse_reading(data, Path("node"))
    assert str(raised.value) == message
