"""Files that no reader should survive badly: one message each, exit code 2, no traceback, bounded memory."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fabrictune.foundation.documents import MAX_BYTES, MAX_NODES
from fabrictune.scenario.files import MAX_SCENARIO_BYTES

Cli = Callable[..., "subprocess.CompletedProcess[str]"]

MAX_MEMORY_BYTES = 2 * 2**30  # address space of the whole process, libraries included
NOISE_BYTES = 100 * 2**20

# Ten anchors of ten aliases each unfold to 10**10 values.
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 11)
)


def write_noise(path: Path) -> None:
    block = bytes(range(256)) * 4096
    with path.open("wb") as file:
        for _ in range(NOISE_BYTES // len(block)):
            file.write(block)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "input.yaml: an empty file\n"),
        ("# nothing but a comment\n", "input.yaml: an empty file\n"),
        ("name: [1\n", "input.yaml:2: no YAML: did not find expected ',' or ']'\n"),
        ("name: a\nname: b\n", "input.yaml:2: the key 'name' a second time\n  allowed: each key once, as text\n"),
        (
            "name: !!python/object/apply:os.system [id]\n",
            "input.yaml:1: the tag 'tag:yaml.org,2002:python/object/apply:os.system'\n  allowed: values without tags\n",
        ),
        (
            BOMB,
            "input.yaml:6: more values than can be used, counting what aliases unfold to\n"
            f"  allowed: {MAX_NODES} values\n  next: leave out what is not needed, or split it\n",
        ),
        ("[" * 100_000, "input.yaml:1: values nested too deeply\n  allowed: 64 levels\n"),
    ],
    ids=["empty", "comment", "torn", "repeated key", "tag", "bomb", "deep"],
)
@pytest.mark.parametrize("command", [["sim", "run"], ["ecmp", "analyze"]], ids=" ".join)
def test_a_broken_file_is_one_message(command: list[str], content: str, message: str, cli: Cli, tmp_path: Path) -> None:
    """The message names the file and the line, and what would be allowed."""
    (tmp_path / "input.yaml").write_text(content)
    ran = cli(*command, "input.yaml", max_memory_bytes=MAX_MEMORY_BYTES)
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", message)


@pytest.mark.parametrize(
    ("command", "max_bytes"),
    [
        (["sim", "run", "noise.yaml"], MAX_SCENARIO_BYTES),
        (["topo", "import", "noise.clab.yml"], MAX_BYTES),
        (["topo", "show", "--format", "sonic", "noise.json"], MAX_BYTES),
    ],
    ids=["scenario", "containerlab", "json"],
)
def test_a_hundred_megabytes_of_noise_are_refused_unread(
    command: list[str], max_bytes: int, cli: Cli, tmp_path: Path
) -> None:
    """The size is known before the first byte is read, so the limit costs no memory."""
    write_noise(tmp_path / command[-1])
    ran = cli(*command, max_memory_bytes=MAX_MEMORY_BYTES)
    (tmp_path / command[-1]).unlink()
    allowed = f"at most {max_bytes} bytes\n  next: leave out what is not needed, or split it"
    message = f"{command[-1]}: a file of {NOISE_BYTES} bytes\n  allowed: {allowed}\n"
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", message)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.yaml", "missing.yaml: no such file\n  next: check the path\n"),
        ("folder", "folder: not a file\n"),
        ("binary.yaml", "binary.yaml: not text: byte 0 is no UTF-8\n  allowed: text in UTF-8\n"),
    ],
)
def test_what_is_no_text_file_is_refused(name: str, message: str, cli: Cli, tmp_path: Path) -> None:
    """A missing file, a folder and a binary file are three different mistakes."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary.yaml").write_bytes(b"\x80\x81\x82" * 100)
    ran = cli("sim", "run", name, max_memory_bytes=MAX_MEMORY_BYTES)
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", message)
