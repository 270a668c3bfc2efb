"""The reference of commands, from the same pages as `--help` and `man`."""

from collections.abc import Iterator

from docs.site.markdown import cell, plain
from fabrictune.cli.main import fabrictune
from fabrictune.cli.manual.pages import CommandPage, command_pages
from fabrictune.cli.manual.roff import EXIT_STATUS


def command_reference() -> dict[str, str]:
    """Return the text of each page by its place: one of the program, and one of each of its groups and commands."""
    texts: dict[str, list[str]] = {}
    for page in command_pages(fabrictune):
        words = page.name.split()
        place = f"commands/{words[1] if len(words) > 1 else 'index'}.md"
        texts.setdefault(place, []).extend(_lines(page, level=max(1, len(words) - 1)))
    texts["commands/index.md"] += ["## Exit codes", "", *(f"- `{code}`: {meaning}" for code, meaning in EXIT_STATUS)]
    return {place: "\n".join(lines) + "\n" for place, lines in texts.items()}


def _lines(page: CommandPage, level: int) -> Iterator[str]:
    yield from (f"{'#' * level} {page.name}" if " " in page.name else "# Commands", "")
    yield from ("```text", f"{page.name} {page.usage}".rstrip(), "```", "")
    for paragraph in page.paragraphs:
        yield from ("```text", paragraph, "```", "") if "\n" in paragraph else (plain(paragraph), "")
    if page.example:
        yield from ("```sh", *page.example, "```", "")
    if page.options:
        yield from ("| option | meaning |", "| --- | --- |")
        yield from (f"| `{cell(name)}` | {cell(plain(meaning))} |" for name, meaning in page.options)
        yield ""
    if page.commands:
        yield from ("| command | what it does |", "| --- | --- |")
        yield from (f"| {_command_link(page, name)} | {cell(plain(summary))} |" for name, summary in page.commands)
        yield ""


def _command_link(page: CommandPage, name: str) -> str:
    if " " not in page.name:
        return f"[`{name}`]({name}.md)"
    return f"[`{name}`](#{page.name.replace(' ', '-')}-{name})"
