"""Build the site: `make site`. Sphinx reads the pages that are written first, and what it warns of fails the build."""

import argparse
import subprocess
import sys
from pathlib import Path

from docs.site.pages import write_pages
from docs.site.places import ROOT

SETTINGS = Path(__file__).parent
STRICT = ("-q", "-W", "--keep-going")
QUIET = ("-Q",)  # a part of the site has a part of the search index, which Sphinx warns of


def main(arguments: list[str]) -> int:
    """Return Sphinx's exit code: 0, or not where a link is dead or anything else is wrong."""
    parser = argparse.ArgumentParser(prog="python -m docs.site", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site", help="folder of the site")
    parser.add_argument("--check", action="store_true", help="read all and follow all links, but write nothing")
    parser.add_argument("only", nargs="*", metavar="PLACE", help="pages to write, such as commands/ecmp.md (all)")
    options = parser.parse_args(arguments)
    pages, trees = (options.out.with_name(f"{options.out.name}-{part}") for part in ("pages", "trees"))
    write_pages(pages)
    settings = [*(QUIET if options.only else STRICT), "-d", str(trees), "-c", str(SETTINGS)]
    builder = "dummy" if options.check else "html"
    only = [str(pages / place) for place in options.only]
    command = [sys.executable, "-m", "sphinx", *settings, "-b", builder, str(pages), str(options.out), *only]
    return subprocess.run(command, check=False).returncode  # noqa: S603 -- our own program


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
