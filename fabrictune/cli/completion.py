"""`fabrictune completion`: completion of commands, options and files in a shell."""

import os
from contextlib import suppress

import click
from click.shell_completion import get_completion_class

from fabrictune.cli.framework.options import COMPLETION
from fabrictune.foundation.errors import FabrictuneError

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script that completes commands, options, choices and files in SHELL.

    Bash needs version 4.4 or later.

    \b
    Example:
      echo 'eval "$(fabrictune completion bash)"' >> ~/.bashrc
      echo 'eval "$(fabrictune completion zsh)"' >> ~/.zshrc
      fabrictune completion fish > ~/.config/fish/completions/fabrictune.fish
    """
    made = get_completion_class(shell)
    assert made is not None, "one that click has"
    click.echo(made(click.get_current_context().find_root().command, {}, "fabrictune", COMPLETION).source())


def answer_shell(root: click.Command) -> bool:
    """Print the completions that a shell asks for in the environment; returns whether one does."""
    shell, _, instruction = os.environ.get(COMPLETION, "").partition("_")
    made = get_completion_class(shell) if instruction == "complete" else None
    if made is None:
        return False
    with suppress(FabrictuneError):  # after a mistake before the word in question nothing completes it
        click.echo(made(root, {}, "fabrictune", COMPLETION).complete())
    return True
