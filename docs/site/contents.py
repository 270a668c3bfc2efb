"""Contents of the site: which page lists which others."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from docs.site.markdown import contents
from docs.site.places import ROOT

DOCS = ROOT / "docs"
TUTORIALS = (
    "tutorials/first-answers.md",
    "how-to/explain-a-log.md",
    "how-to/link-flaps.md",
    "how-to/train-a-workload.md",
    "how-to/add-a-law.md",
)
SECTIONS: Mapping[str, Sequence[str]] = {
    "Start": ("tutorials/README.md", "concepts.md", "features.md", "scenarios.md", "glossary.md"),
    "How-to": ("how-to/index.md",),
    "Reference": (
        "commands/index.md",
        "reference/python.md",
        "reference/metrics.md",
        "reference/findings.md",
        "reference/laws.md",
        "reference/record-tables.md",
    ),
    "Trust": ("conformance.md", "benchmarks/index.md", "mutants.md", "lab_log.md"),
    "Development": ("contributing.md", "changelog.md", "decisions/README.md"),
}
OTHERS = "More"


def below(commands: Sequence[str]) -> dict[str, str]:
    """Return what a page lists below its text, by the page's place; `commands` are those of single commands."""
    return {
        "index.md": "\n".join(contents(places, caption=caption) for caption, places in SECTIONS.items()),
        "tutorials/README.md": contents(TUTORIALS),
        "commands/index.md": contents(sorted(commands)),
    }


def how_to_groups() -> dict[str, list[str]]:
    """Return the how-tos under the first heading of features.md that links to each, and the rest."""
    groups: dict[str, list[str]] = {}
    left = {f"how-to/{path.name}" for path in (DOCS / "how-to").glob("*.md")} - set(TUTORIALS)
    for section in re.split(r"^## ", (DOCS / "features.md").read_text(), flags=re.M)[1:]:
        for place in dict.fromkeys(re.findall(r"\]\((how-to/[\w-]+\.md)", section)):
            if place in left:
                groups.setdefault(section.splitlines()[0], []).append(place)
                left.remove(place)
    return {**groups, OTHERS: sorted(left)} if left else groups


def how_to_list() -> str:
    """Return the page that lists all how-tos."""
    groups = (f"## {group}\n\n{contents(places, is_hidden=False)}" for group, places in how_to_groups().items())
    return "\n".join(("# How-to\n", *groups))


def scenario_list() -> str:
    """Return the page of the bundled scenarios with their questions."""
    lines = ["# Bundled scenarios", "", "`fabrictune scenario copy NAME` writes one to change.", ""]
    for path in scenarios():
        question = yaml.safe_load(path.read_text()).get("question", "")
        lines.append(f"- [{path.stem}](files/scenarios/{path.name}): {question}")
    return "\n".join(lines) + "\n"


def scenarios() -> list[Path]:
    """Return the files of the bundled scenarios."""
    return sorted((ROOT / "scenarios").glob("*.yaml"))
