"""`fabrictune manual`: man pages of all commands."""

from pathlib import Path

import click

from fabrictune.cli.framework.options import json_option
from fabrictune.cli.framework.output import print_json, print_lines


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    default=Path("~/.local/share/man/man1"),
    show_default=True,
    help="Directory of the pages.",
)
@json_option
def manual(out: Path, as_json: bool) -> None:
    """Write a man page for each command.

    `man` finds those of ~/.local/share/man where ~/.local/bin is in PATH; elsewhere name the directory in MANPATH.

    \b
    Example:
      fabrictune manual
      man fabrictune-ecmp-analyze
    """
    from fabrictune.cli.manual.pages import command_pages
    from fabrictune.cli.manual.roff import file_name, man_page
    from fabrictune.foundation.output_files import replaced_file
    from fabrictune.foundation.records import installed_version

    folder = out.expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    root = click.get_current_context().find_root().command
    assert isinstance(root, click.Group), "the entry point"
    pages = list(command_pages(root))
    version = installed_version("fabrictune")
    for page in pages:
        with replaced_file(folder / file_name(page)) as half:
            half.write_text(man_page(page, version))
    if as_json:
        print_json({"directory": str(folder), "pages": [file_name(page) for page in pages]})
    else:
        print_lines([f"{len(pages)} pages: {folder}"])
