"""Pages of results, from their JSON."""

import json
from pathlib import Path

from docs.site.results import benchmarks_page, conformance_page

CASE = {
    "name": "cc.dcqcn.queue",
    "expected": 20.2,
    "actual": 20.15,
    "tolerance": [19.998, 20.402],
    "passed": True,
    "source": "Zhu et al. | 3",
    "unit": "KB",
    "trust": "A",
}


def test_a_case_has_its_row_and_a_miss_is_marked(tmp_path: Path) -> None:
    """Hits and misses side by side, counted; a bar in a source does not split its cell."""
    path = tmp_path / "conformance.json"
    path.write_text(json.dumps([CASE, {**CASE, "name": "topology.clos", "passed": False, "actual": None}]))
    page = conformance_page(path)
    assert "1 of 2 cases are within their tolerance." in page
    assert "| `cc.dcqcn.queue` | 20.2 KB | 20.15 | 19.998 to 20.402 | A | pass | Zhu et al. \\| 3 |" in page
    assert "## topology" in page
    assert "| none | 19.998 to 20.402 | A | **miss** |" in page


def test_without_results_the_page_says_how_to_get_them(tmp_path: Path) -> None:
    """And lists what there would be."""
    page = conformance_page(tmp_path / "none.json")
    assert "without results: `make conformance`, then `make site`" in page
    assert "| topology | `fabrics`, `paths`" in page
    assert "without results: `make bench`, then `make site`" in benchmarks_page([], tmp_path / "none.json")


def test_a_benchmark_has_its_row_under_its_machine(tmp_path: Path) -> None:
    """Value, unit, spread and command; the dated reports below."""
    row = {
        "name": "packets",
        "value": 1234567.0,
        "unit": "1/s",
        "spread": "3 %",
        "command": "python -m x",
        "machine": {"cores": 2},
    }
    path = tmp_path / "results.json"
    path.write_text(json.dumps([row]))
    page = benchmarks_page(["benchmarks/reports/2026-01-01-speed.md"], path)
    assert "| packets | 1,234,567.00 1/s | 3 % | `python -m x` |" in page
    assert "\ncores 2\n" in page
    assert "- [2026-01-01-speed](reports/2026-01-01-speed.md)" in page
