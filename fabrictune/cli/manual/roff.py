"""Pages of commands for `man`, in the macros of man(7)."""

from collections.abc import Iterator, Sequence

from fabrictune.cli.manual.pages import CommandPage

EXIT_STATUS = (
    ("0", "good"),
    ("1", "findings at or above --fail-on"),
    ("2", "a mistake in the command line or in a file"),
    ("3", "something could not be collected or measured"),
    ("130", "stopped by Ctrl-C, SIGTERM or SIGHUP"),
)


def file_name(page: CommandPage) -> str:
    """Return the name of a page's file: `fabrictune-ecmp-analyze.1`."""
    return f"{page.name.replace(' ', '-')}.1"


def man_page(page: CommandPage, version: str) -> str:
    """Return a page's text."""
    return "\n".join(_lines(page, version)) + "\n"


def _lines(page: CommandPage, version: str) -> Iterator[str]:
    title = page.name.replace(" ", "-")
    yield f'.TH "{_text(title.upper())}" "1" "" "fabrictune {_text(version)}" "fabrictune"'
    yield from (".SH NAME", f"{_text(title)} \\- {_text(page.summary.rstrip('.'))}")
    yield from (".SH SYNOPSIS", f".B {_text(page.name)}", _text(page.usage))
    yield ".SH DESCRIPTION"
    for paragraph in page.paragraphs:
        yield from _verbatim(paragraph.splitlines()) if "\n" in paragraph else (".PP", _text(paragraph))
    if page.options:
        yield from (".SH OPTIONS", *_entries(page.options))
    if page.commands:
        names = [f"{title}-{name}" for name, _ in page.commands]
        yield from (".SH COMMANDS", *_entries([(f"{name}(1)", page.commands[i][1]) for i, name in enumerate(names)]))
    if page.example:
        yield from (".SH EXAMPLES", *_verbatim(page.example))
    yield from (".SH EXIT STATUS", *_entries(EXIT_STATUS))
    above = title.rpartition("-")[0]
    if above:
        yield from (".SH SEE ALSO", f"{_text(above)}(1)")


def _entries(entries: Sequence[tuple[str, str]]) -> Iterator[str]:
    for name, meaning in entries:
        yield from (".TP", f"\\fB{_text(name)}\\fR", _text(meaning))


def _verbatim(lines: Sequence[str]) -> Iterator[str]:
    yield from (".PP", ".nf", ".RS 4", *map(_text, lines), ".RE", ".fi")


def _text(text: str) -> str:
    """Return text that roff prints as it is: its escapes, hyphens and first letters mean nothing."""
    safe = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return f"\\&{safe}" if safe[:1] in (".", "'") else safe
