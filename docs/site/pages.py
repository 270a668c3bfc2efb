"""All pages of the site as files of Markdown: documents with their links rewritten, and pages made from the code."""

from collections.abc import Mapping
from pathlib import Path

from docs.site.commands import command_reference
from docs.site.contents import below, how_to_list, scenario_list, scenarios
from docs.site.places import ROOT, documents, linked_files, on_site, place_of
from docs.site.python_interface import python_reference
from docs.site.results import benchmarks_page, conformance_page

UNLISTED = "---\norphan: true\n---\n"  # beside no page: their number would hide the others


def write_pages(folder: Path) -> None:
    """Write what Sphinx reads into a folder, where it is not there already, and remove all else."""
    commands = command_reference()
    sources = {path: (ROOT / path).read_text() for path in documents()}
    pages = {place_of(path): on_site(path, text) for path, text in sources.items()}
    reports = [path for path in sources if path.startswith("benchmarks/reports/")]
    pages |= {
        **commands,
        "reference/python.md": python_reference(),
        "conformance.md": conformance_page(),
        "benchmarks/index.md": benchmarks_page(reports),
        "how-to/index.md": how_to_list(),
        "scenarios.md": scenario_list(),
    }
    lists = below([place for place in commands if place != "commands/index.md"])
    files: dict[str, bytes] = {}
    for place, text in pages.items():
        head = UNLISTED if place.startswith(("decisions/0", "benchmarks/reports/")) else ""
        files[place] = f"{head}{text}\n{lists.get(place, '')}".encode()
    linked = {target for path, text in sources.items() for target in linked_files(path, text)}
    for path in linked | {path.relative_to(ROOT).as_posix() for path in scenarios()}:
        files[place_of(path)] = (ROOT / path).read_bytes()
    _lay_out(folder, files)


def _lay_out(folder: Path, files: Mapping[str, bytes]) -> None:
    """Make a folder hold these files; one that has not changed keeps its time, and Sphinx what it made of it."""
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        if path.relative_to(folder).as_posix() not in files:
            path.unlink()
    for place, content in files.items():
        path = folder / place
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
