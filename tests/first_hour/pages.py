"""Code that the how-to pages have a reader save, taken from them."""

import re

from tests.first_hour.session import ROOT


def first_block(page: str, language: str) -> str:
    """Return the first block of a language on a page: `add-a-law`, `python`."""
    text = (ROOT / "docs" / "how-to" / f"{page}.md").read_text()
    found = re.search(rf"```{language}\n(.*?)```", text, re.DOTALL)
    assert found, f"{page} has a block of {language}"
    return found[1]
