"""The page and the notebook on the Python interface run as they stand."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("pandas")

DOCS = Path(__file__).parents[2] / "docs"


def run_in_order(blocks: list[str]) -> dict[str, Any]:
    """Run pieces of code one after another in one namespace, and return it."""
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "<documentation>", "exec"), names)
    return names


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """All its blocks in one session: the figures and the page are there, and each law's line."""
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "how-to" / "use-from-python.md").read_text()
    run_in_order(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    assert re.findall(r"^(\w+): p99 FCT [\d.]+ us, outcome finished$", capsys.readouterr().out, re.M) == [
        "none",
        "dcqcn",
        "swift",
    ]
    assert all((tmp_path / name).stat().st_size > 1000 for name in ("laws.html", "fct.pdf", "queues.svg", "k8.json"))


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cells in their order, with no output stored that could be stale."""
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((DOCS / "notebooks" / "compare_laws.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(not cell["outputs"] for cell in cells)
    names = run_in_order(["".join(cell["source"]) for cell in cells])
    assert set(names["runs"]) == set(names["LAWS"])
    assert (tmp_path / "laws.html").exists()
