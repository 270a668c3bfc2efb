"""A training run, on processes started here or under a launcher."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from fabrictune.collectives.startup.launchers import Launched
from fabrictune.trainer_probe.checkpoint.running import CheckpointSettings
from fabrictune.trainer_probe.recipes.schema import Recipe
from fabrictune.trainer_probe.training.distributed import train_distributed
from fabrictune.trainer_probe.training.local import train_locally
from fabrictune.trainer_probe.training.outcome import Outcome
from fabrictune.trainer_probe.training.progress import StepReport


def run_recipe(
    read_recipe: Callable[[], Recipe],
    launched: Launched | None,
    *,
    on_step: Callable[[Recipe, StepReport], None],
    timeout_s: float,
    startup_timeout_s: float,
    peak_flops_per_s: float | None = None,
    export: Path | None = None,
    checkpoints: CheckpointSettings | None = None,
    on_note: Callable[[str], None] = lambda text: None,
    spans: Callable[[Recipe], Path | None] = lambda recipe: None,
) -> tuple[Recipe, Outcome] | None:
    """Train a recipe, with processes started here or as one of the ranks that a launcher started.

    Returns the recipe and its outcome, None on a launcher's ranks other than the first; the process that returns it
    calls `on_step` after each step, and `on_note` with what it says of its checkpoints. With a folder to export to, the
    weights are written there at the end. Each rank writes its spans to the folder that `spans` returns, if any, on its
    own machine. Raises the errors of `train_locally` and `train_distributed`.
    """
    if launched is not None:
        return train_distributed(
            launched,
            read_recipe,
            on_step=on_step,
            startup_timeout_s=startup_timeout_s,
            peak_flops_per_s=peak_flops_per_s,
            export=export,
            checkpoints=checkpoints,
            on_note=on_note,
            spans=spans,
        )
    recipe = read_recipe()
    outcome = train_locally(
        recipe,
        on_step=partial(on_step, recipe),
        timeout_s=timeout_s,
        peak_flops_per_s=peak_flops_per_s,
        export=export,
        checkpoints=checkpoints,
        on_note=on_note,
        spans=spans(recipe),
    )
    return recipe, outcome
