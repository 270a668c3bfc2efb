"""Where each file of the repository is on the site, and links rewritten to that.

Documents link to one another as files of the repository, so that they read there too. On the site `docs` is the root,
and a file that is no document is copied into `files`.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)#:\s]+)(#[^)\s]*)?\)")
ANCHOR = re.compile(r'(?<=# )<a id="[\w.-]+"></a>')  # a heading's own: on the site it is the heading without its dots
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
FOLDERS = {"docs/how-to": "how-to/index.md", "docs/decisions": "decisions/README.md", "scenarios": "scenarios.md"}


def place_of(path: str) -> str:
    """Return where a file or folder of the repository is on the site: `docs/concepts.md` is `concepts.md`."""
    if path in PAGES:
        return PAGES[path]
    if path in FOLDERS:
        return FOLDERS[path]
    if path.startswith("docs/") and path.endswith(".md"):
        return path.removeprefix("docs/")
    if path.startswith("benchmarks/") and path.endswith(".md"):
        return path
    return f"files/{path}"


def documents() -> Iterator[str]:
    """Yield every document of the repository, from its root."""
    yield from PAGES
    for folder in ("docs", "benchmarks/reports"):
        for path in sorted((ROOT / folder).rglob("*.md")):
            yield path.relative_to(ROOT).as_posix()


def linked_files(path: str, text: str) -> set[str]:
    """Return the files that a document links to and that are no pages."""
    targets = {_target(path, link[1]) for link in LINK.finditer(text)}
    return {target for target in targets if place_of(target).startswith("files/")}


def on_site(path: str, text: str) -> str:
    """Return a document's text with its links as the site has them; a heading's own anchor becomes the site's."""
    here = PurePosixPath(place_of(path)).parent

    def rewrite(link: re.Match[str]) -> str:
        there = place_of(_target(path, link[1]))
        return f"]({os.path.relpath(there, here)}{(link[2] or '').replace('.', '')})"

    return ANCHOR.sub("", LINK.sub(rewrite, text))


def _target(path: str, link: str) -> str:
    return os.path.normpath(PurePosixPath(path).parent / link)
