"""The public Python interface: its names and signatures, and what importing it costs."""

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import fabrictune as ft

GOLDEN = Path(__file__).parents[2] / "golden" / "fabrictune" / "public_api.txt"


def plots() -> dict[str, Any]:
    """Return the functions of `ft.plot` by their names."""
    return {f"plot.{name}": getattr(ft.plot, name) for name in ft.plot.__all__}


def signatures() -> str:
    """Return one line for each public name: functions with their signatures."""
    lines = []
    functions = {**{name: getattr(ft, name) for name in ft.__all__}, **plots()}
    for name, value in functions.items():
        if inspect.isfunction(value):
            lines.append(f"{name}{inspect.signature(value)}")
        elif inspect.isclass(value):
            lines.append(f"class {name}")
    return re.sub(r"\b(?:\w+\.)+(?=[A-Z])", "", "".join(f"{line}\n" for line in lines))


def test_the_public_interface_is_what_was_promised() -> None:
    """A name or an argument that changes breaks users: change the golden file and the changelog with it."""
    assert signatures() == GOLDEN.read_text()


def test_every_public_name_says_what_it_does_and_raises() -> None:
    """Docstrings are the reference; a function that can refuse its input names the error."""
    for name, value in ({name: getattr(ft, name) for name in ft.__all__} | plots()).items():
        doc = inspect.getdoc(value)
        assert doc, name
        assert not inspect.isfunction(value) or "Raises" in doc, name


def test_the_table_of_lazy_names_is_what_is_listed() -> None:
    """`__all__`, the table behind `__getattr__` and `dir` agree; `plot` is a module of its own."""
    assert sorted([*ft._MODULE_OF, "plot"]) == sorted(ft.__all__) == dir(ft)


def test_importing_the_package_imports_nothing_else() -> None:
    """Each name is imported on first use: no NumPy, no pydantic, none of the rooms."""
    code = "import sys; old = set(sys.modules); import fabrictune; print(*sorted(set(sys.modules) - old))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = {name for name in ran.stdout.split() if name.partition(".")[0] not in sys.stdlib_module_names}
    assert imported == {"fabrictune"}


def test_an_unknown_name_is_an_attribute_error() -> None:
    """As for any module."""
    assert not hasattr(ft, "simulat")
