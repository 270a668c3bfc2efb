"""Groups of commands: they guess what a misspelt name meant, and the outermost imports a command only to run it."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click

from fabrictune.foundation.errors import InputError, Mistake, nearest_name

MAX_SUMMARY = 200  # characters, so that click shortens no first sentence


class CommandGroup(click.Group):
    """A group whose commands stand in the order in which they were defined."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take a group called without a command for a question what there is."""
        return super().parse_args(ctx, args or ["--help"])

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(self.commands)

    def summary(self, name: str) -> str:
        """Return the first sentence of a command's help."""
        return self.commands[name].get_short_help_str(limit=MAX_SUMMARY)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.summary(name)) for name in self.list_commands(ctx)])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that was named; raises InputError with the nearest name there is."""
        names = self.list_commands(ctx)
        if args[0] not in names and not args[0].startswith("-"):
            raise InputError(
                Mistake(
                    where=ctx.command_path,
                    found=f"unknown command {args[0]!r}",
                    allowed=", ".join(names),
                    nearest=nearest_name(args[0], names),
                )
            )
        return super().resolve_command(ctx, args)


@dataclass(frozen=True)
class LazyCommand:
    """A command that can be listed without being imported."""

    summary: str
    place: str  # "module:attribute"


class LazyGroup(CommandGroup):
    """A group that knows its commands by a table, so that listing them imports none."""

    def __init__(self, *, table: Mapping[str, LazyCommand], **settings: Any) -> None:
        super().__init__(**settings)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command."""
        if cmd_name not in self.table:
            return None
        module, _, attribute = self.table[cmd_name].place.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def summary(self, name: str) -> str:
        """Return what the table says of a command."""
        return self.table[name].summary
