"""Pages of commands: what `--help` says, in parts, so that each form of the manual has the same words."""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass

import click

from fabrictune.cli.framework.groups import CommandGroup

VERBATIM = "\b\n"  # begins a paragraph whose lines stay as they are
EXAMPLE = "Example:"


@dataclass(frozen=True, kw_only=True)
class CommandPage:
    """One command, or a group of commands."""

    name: str  # as typed: "fabrictune ecmp analyze"
    summary: str
    usage: str  # what follows the name
    paragraphs: tuple[str, ...]
    example: tuple[str, ...]  # lines of a shell
    options: tuple[tuple[str, str], ...]  # each with its meaning
    commands: tuple[tuple[str, str], ...]  # of a group, each with its summary


def command_pages(root: click.Group) -> Iterator[CommandPage]:
    """Yield the page of a group, then those of all commands below it, in the order of the listing."""
    yield from _pages(root, click.Context(root, info_name=root.name))


def _pages(command: click.Command, context: click.Context) -> Iterator[CommandPage]:
    group = command if isinstance(command, CommandGroup) else None
    names = group.list_commands(context) if group else []
    paragraphs, example = _texts(command.help or "")
    yield CommandPage(
        name=context.command_path,
        summary=command.get_short_help_str(limit=200),
        usage=" ".join(command.collect_usage_pieces(context)),
        paragraphs=tuple(paragraphs),
        example=tuple(example),
        options=tuple(
            record
            for one in command.get_params(context)
            if isinstance(one, click.Option) and (record := one.get_help_record(context))
        ),
        commands=tuple((name, group.summary(name)) for name in names) if group else (),
    )
    for name in names:
        below = group.get_command(context, name) if group else None
        if below is not None:
            yield from _pages(below, click.Context(below, parent=context, info_name=name))


def _texts(text: str) -> tuple[list[str], list[str]]:
    """Return the paragraphs of a command's help, a verbatim one with its line ends, and the lines of its example."""
    paragraphs, example = [], []
    for part in inspect.cleandoc(text).split("\n\n"):
        lines = part.removeprefix(VERBATIM).splitlines()
        if part.startswith(VERBATIM) and lines[0] == EXAMPLE:
            example = [line.strip() for line in lines[1:]]
        elif part.startswith(VERBATIM):
            paragraphs.append("\n".join(line.rstrip() for line in lines))
        elif part:
            paragraphs.append(" ".join(line.strip() for line in lines))
    return paragraphs, example
