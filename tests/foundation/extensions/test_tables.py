"""Entries of installed packages: found by entry points, imported when asked for, hidden by the project's names."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.extensions.kinds import Kind
from fabrictune.foundation.extensions.tables import Derived, Table

KIND = Kind(what="tool", group="fabrictune.tests.tools", value_type=dict)
MODULE = "TOOL = {'work': lambda number: 1 / number}\n"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Return a function that installs a package of one module with some entry points."""
    monkeypatch.syspath_prepend(str(tmp_path))
    names: list[str] = []

    def write(package: str, module: str, **points: str) -> None:
        names.append(package)
        (tmp_path / f"{package}.py").write_text(module)
        info = tmp_path / f"{package}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
        lines = [f"{name} = {package}:{target}" for name, target in points.items()]
        (info / "entry_points.txt").write_text("\n".join([f"[{KIND.group}]", *lines, ""]))

    yield write
    for name in names:
        sys.modules.pop(name, None)


def table() -> Table[dict[str, object]]:
    """Return a table with one entry of its own."""
    return Table(KIND, {"hammer": {}})


def test_an_installed_entry_is_named_beside_the_projects_own(install: Callable[..., None]) -> None:
    """It follows them, and brings package and version."""
    install("acme_tools", MODULE, saw="TOOL")
    tools = table()
    assert list(tools) == ["hammer", "saw"]
    assert len(tools) == 2
    assert set(tools["saw"]) == {"work"}
    entry = tools.installed["saw"]
    assert (entry.package, entry.version, entry.target) == ("acme_tools", "1.2", "acme_tools:TOOL")


def test_nothing_is_imported_before_it_is_asked_for(install: Callable[..., None]) -> None:
    """Listing names runs no code."""
    install("acme_tools", MODULE, saw="TOOL")
    tools = table()
    assert "saw" in tools
    assert tools.installed
    assert "acme_tools" not in sys.modules
    assert tools["hammer"] == {}
    assert "acme_tools" not in sys.modules
    assert tools["saw"]
    assert "acme_tools" in sys.modules


def test_the_projects_own_name_wins(install: Callable[..., None]) -> None:
    """A package cannot replace what a scenario relies on."""
    install("acme_tools", MODULE, hammer="TOOL")
    tools = table()
    assert tools["hammer"] == {}
    assert not tools.installed
    assert [entry.package for entry in tools.hidden] == ["acme_tools"]


def test_one_name_of_two_packages_is_refused(install: Callable[..., None]) -> None:
    """Which of them is meant is for the user to say."""
    install("acme_tools", MODULE, saw="TOOL")
    install("other_tools", MODULE, saw="TOOL")
    with pytest.raises(InputError) as raised:
        table()["saw"]
    assert str(raised.value) == "saw: tool of two packages: acme_tools, other_tools\n  next: uninstall one of them"


def test_a_package_that_cannot_be_imported_is_named(install: Callable[..., None], tmp_path: Path) -> None:
    """Its own line, and what to do."""
    install("acme_tools", "import math\nGAIN = 1 / 0\n", saw="TOOL")
    with pytest.raises(InputError) as raised:
        table()["saw"]
    assert str(raised.value) == (
        f"{tmp_path / 'acme_tools.py'}:2: ZeroDivisionError: division by zero\n  next: repair or uninstall acme_tools"
    )


def test_an_attribute_that_is_not_there_is_named(install: Callable[..., None]) -> None:
    """A slip in the package's own file."""
    install("acme_tools", MODULE, saw="TOLL")
    with pytest.raises(InputError, match="entry point saw = acme_tools:TOLL: AttributeError: module 'acme_tools'"):
        table()["saw"]


def test_an_entry_of_another_type_is_refused(install: Callable[..., None]) -> None:
    """The table's type."""
    install("acme_tools", "TOOL = 1\n", saw="TOOL")
    with pytest.raises(InputError, match="entry point saw = acme_tools:TOOL: it is of the type int"):
        table()["saw"]


def test_what_its_functions_raise_is_placed(install: Callable[..., None]) -> None:
    """As for a file."""
    install("acme_tools", MODULE, saw="TOOL")
    work = table()["saw"]["work"]
    assert callable(work)
    with pytest.raises(InputError, match=r"acme_tools\.py:1: <lambda>: raised ZeroDivisionError"):
        work(0)


def test_a_derived_table_makes_each_entry_once(install: Callable[..., None]) -> None:
    """Specs of settings are known by their identity."""
    install("acme_tools", MODULE, saw="TOOL")
    made: list[int] = []

    def count(entry: dict[str, object]) -> int:
        made.append(len(entry))
        return len(entry)

    derived = Derived(table(), count, file=7)
    assert (list(derived), len(derived)) == (["hammer", "saw", "file"], 3)
    assert [derived["saw"], derived["saw"], derived["file"]] == [1, 1, 7]
    assert made == [1]
