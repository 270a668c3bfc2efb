"""Options of a training run about its checkpoints."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from fabrictune.foundation.errors import InputError, Mistake

if TYPE_CHECKING:
    from fabrictune.trainer_probe.checkpoint.running import CheckpointSettings

_OPTIONS = (
    click.option(
        "--checkpoint",
        metavar="URL",
        help="Folder, or URL such as s3://bucket/prefix, of the run's checkpoints.",
    ),
    click.option(
        "--save-every",
        type=click.IntRange(min=1),
        metavar="N",
        help="Save after every N-th step, beside the next ones, and at the end.",
    ),
    click.option(
        "--keep", type=click.IntRange(min=1), metavar="N", help="Keep the last N checkpoints; without it all."
    ),
    click.option(
        "--keep-every", type=click.IntRange(min=1), metavar="N", help="Besides, keep those of every N-th step for good."
    ),
    click.option(
        "--resume", is_flag=True, help="Go on from the newest good checkpoint, if there is one; its layout may differ."
    ),
)


def checkpoint_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options about checkpoints."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def settings_of(
    url: str | None, save_every: int | None, keep: int | None, keep_every: int | None, *, resumes: bool
) -> "CheckpointSettings | None":
    """Return what the options ask for; raises InputError for options without effect or a place that is none."""
    from fabrictune.trainer_probe.checkpoint.retention import Retention
    from fabrictune.trainer_probe.checkpoint.running import CheckpointSettings

    numbers = {"--save-every": save_every, "--keep": keep, "--keep-every": keep_every, "--resume": resumes or None}
    given = [name for name, value in numbers.items() if value is not None]
    if url is None:
        if given:
            raise InputError(_without(given, "--checkpoint", "name the place of the checkpoints"))
        return None
    kept = [name for name in given if name.startswith("--keep")]
    if kept and save_every is None:
        raise InputError(_without(kept, "--save-every", "say how often to save"))
    if keep_every is not None and keep is None:
        raise InputError(_without(["--keep-every"], "--keep", "say how many of the last to keep"))
    retention = Retention(num_last=keep, every_steps=keep_every)
    settings = CheckpointSettings(url=url, save_every=save_every, resumes=resumes, retention=retention)
    settings.check()
    return settings


def _without(names: list[str], missing: str, next_step: str) -> Mistake:
    return Mistake(where=", ".join(names), found=f"without {missing}", next_step=next_step)
