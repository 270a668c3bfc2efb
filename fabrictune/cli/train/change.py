"""`fabrictune train change`: another recipe or code for an operated job."""

from pathlib import Path

import click

from fabrictune.cli.framework.output import print_lines
from fabrictune.cli.train.recipes import set_option


@click.command()
@click.argument("run", metavar="DIR", type=click.Path(path_type=Path))
@set_option
@click.option(
    "--code",
    type=click.Path(path_type=Path),
    help="Folder in which ranks look for modules first, the same on all nodes.",
)
def change(run: Path, settings: tuple[str, ...], code: Path | None) -> int:
    """Let the job in DIR go on with a changed recipe or code, from a checkpoint after the step that runs.

    Where the changed job fails by its code before it has saved a checkpoint, it goes back to what was before.

    \b
    Example:
      fabrictune train change job --set data_parallel.strategy=zero1
    """
    from fabrictune.foundation.errors import InputError, Mistake
    from fabrictune.scenario.assignments import parse_setting
    from fabrictune.trainer_probe.operation.changes import ask_change
    from fabrictune.trainer_probe.operation.run_folder import RunFolder

    if not run.is_dir():
        raise InputError(Mistake(where=str(run), found="no such folder", next_step="give the --run of train operate"))
    if not settings and code is None:
        raise InputError(Mistake(where="change", found="nothing", allowed="--set or --code"))
    if code is not None and not code.is_dir():
        raise InputError(Mistake(where="--code", found=str(code), allowed="a folder"))
    ask_change(RunFolder(path=run), dict(map(parse_setting, settings)), "" if code is None else str(code.absolute()))
    print_lines(["asked; `fabrictune train status DIR --follow` shows what becomes of it"])
    return 0
