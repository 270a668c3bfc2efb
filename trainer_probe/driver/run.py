"""A training run, whoever starts its ranks."""

from collections.abc import Callable
from functools import partial

from fabrictune.collectives.startup.launchers import Launched
from fabrictune.trainer_probe.driver.distributed import train_launched
from fabrictune.trainer_probe.driver.local import train_here
from fabrictune.trainer_probe.driver.outcome import Outcome
from fabrictune.trainer_probe.driver.reports import StepReport
from fabrictune.trainer_probe.recipes.schema import Recipe


def run_recipe(
    read: Callable[[], Recipe],
    launched: Launched | None,
    *,
    tell: Callable[[Recipe, StepReport], None],
    timeout_s: float,
    startup_timeout_s: float,
    peak_flops_per_s: float | None = None,
) -> tuple[Recipe, Outcome] | None:
    """Train as the recipe says that `read` returns, with processes started here or as one of those a launcher started.

    Returns the recipe and what is to be recorded, None on a launcher's other ranks than the first; `tell` is called
    with each step's report by the process that returns it. Raises what `train_here` and `train_launched` do.
    """
    if launched is not None:
        return train_launched(
            launched, read, tell=tell, startup_timeout_s=startup_timeout_s, peak_flops_per_s=peak_flops_per_s
        )
    recipe = read()
    outcome = train_here(recipe, tell=partial(tell, recipe), timeout_s=timeout_s, peak_flops_per_s=peak_flops_per_s)
    return recipe, outcome
