"""Entries from files: leave, type, checks, digest, and the place of what goes wrong."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError, Mistake, UntrustedCodeError
from fabrictune.foundation.extensions.kinds import Extension, Kind, is_path
from fabrictune.foundation.extensions.tables import Table


@dataclass(frozen=True, kw_only=True)
class Part:
    """A function in a dataclass in a mapping."""

    work: Callable[[int], float]


@dataclass(frozen=True, kw_only=True)
class Tool:
    """An entry with a function, and others further in."""

    work: Callable[[int], float]
    parts: Mapping[str, Part]


def check(tool: Tool) -> Iterator[Mistake]:
    """A tool has parts."""
    if not tool.parts:
        yield Mistake(where="parts", found="none")


TOOLS = Table(
    Kind(what="tool", group="fabrictune.tests.none", value_type=Tool, attribute="TOOL", check=check),
    {"hammer": Tool(work=float, parts={})},
)
FILE = """\
def work(number):
    return 1 / number

TOOL = TOOL_CLASS(work=work, parts={"one": PART_CLASS(work=work)})
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Return a function that saves a file with the classes at hand, as an import would bring them."""
    monkeypatch.setattr("builtins.TOOL_CLASS", Tool, raising=False)
    monkeypatch.setattr("builtins.PART_CLASS", Part, raising=False)

    def save(text: str) -> Path:
        path = tmp_path / "my_tool.py"
        path.write_text(text)
        return path

    return save


def refusal(path: Path) -> str:
    """Return the message of a file that cannot be used."""
    with pytest.raises(InputError) as raised:
        TOOLS.load(path, trust_code=True)
    return str(raised.value)


def test_a_file_without_leave_is_not_run(write: Callable[[str], Path], tmp_path: Path) -> None:
    """Nothing of it is executed."""
    path = write(f"open({str(tmp_path / 'ran')!r}, 'w')\n{FILE}")
    with pytest.raises(UntrustedCodeError) as raised:
        TOOLS.load(path, trust_code=False)
    assert str(raised.value) == (
        f"{path}: a tool in a file outside the project, which may do anything on this machine\n"
        "  next: read it, then run again with --trust-code"
    )
    assert not (tmp_path / "ran").exists()


def test_a_trusted_file_gives_its_entry_and_digest(write: Callable[[str], Path]) -> None:
    """The digest is that of the bytes, as sha256sum prints it."""
    path = write(FILE)
    loaded = TOOLS.load(path, trust_code=True)
    assert (loaded.value.work(4), str(loaded)) == (0.25, str(path))
    assert loaded.sha256 == hashlib.sha256(FILE.encode()).hexdigest()
    assert loaded == Extension(file=path, sha256=loaded.sha256, value=loaded.value)


def test_a_changed_file_is_read_again(write: Callable[[str], Path]) -> None:
    """Entries are kept by content, not by name."""
    assert TOOLS.load(write(FILE), trust_code=True).value.work(4) == 0.25
    assert TOOLS.load(write(FILE.replace("1 / number", "2 / number")), trust_code=True).value.work(4) == 0.5


@pytest.mark.parametrize("of_part", [False, True])
def test_what_a_function_raises_is_placed(write: Callable[[str], Path], of_part: bool) -> None:
    """Wherever the entry holds the function: file, line and name."""
    path = write(FILE)
    tool = TOOLS.load(path, trust_code=True).value
    with pytest.raises(InputError) as raised:
        (tool.parts["one"].work if of_part else tool.work)(0)
    assert str(raised.value) == f"{path}:2: work: raised ZeroDivisionError: division by zero"


def test_a_users_own_mistake_passes_unchanged(write: Callable[[str], Path]) -> None:
    """An extension raises InputError as the project does."""
    text = "from fabrictune.foundation.errors import InputError, Mistake\n" + FILE.replace(
        "return 1 / number", "raise InputError(Mistake(where='port', found='none'))"
    )
    tool = TOOLS.load(write(text), trust_code=True).value
    with pytest.raises(InputError, match=r"^port: none$"):
        tool.work(1)


def test_a_file_without_the_entry_says_which_name(write: Callable[[str], Path]) -> None:
    """The constant, and what it is made of."""
    path = write("tool = 1\n")
    assert refusal(path) == f"{path}: no TOOL\n  allowed: TOOL = Tool(...)"


def test_an_entry_of_another_type_is_refused_at_its_line(write: Callable[[str], Path]) -> None:
    """A function in the place of the entry."""
    path = write("def helper():\n    pass\n\nTOOL = helper\n")
    assert refusal(path) == f"{path}:4: TOOL is of the type function\n  allowed: TOOL = Tool(...)"


def test_an_entry_that_breaks_a_rule_is_refused(write: Callable[[str], Path]) -> None:
    """The table's own check."""
    assert refusal(write("TOOL = TOOL_CLASS(work=float, parts={})\n")) == "parts: none"


def test_a_missing_file_lists_the_names(tmp_path: Path) -> None:
    """It may have been meant as a name."""
    path = tmp_path / "hamer.py"
    assert refusal(path) == f"{path}: no such file\n  allowed: a Python file, or one of hammer"


@pytest.mark.parametrize(("text", "expected"), [("a.py", True), ("./a", True), ("mixer", False), ("crc16", False)])
def test_a_path_is_known_by_its_form(text: str, expected: bool) -> None:
    """An ending or a slash."""
    assert is_path(text) is expected
