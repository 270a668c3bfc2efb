"""The reference trainer's own traffic: the plan of one step, as all its ranks ask for it."""

from pathlib import Path

from fabrictune.trainer_probe.planning.hardware import HardwareSpec
from fabrictune.trainer_probe.planning.plan import make_plan
from fabrictune.trainer_probe.recipes.files import load_recipe

RECIPE = Path(__file__).with_name("gpt-256.yaml")


def write_step(path: Path) -> None:
    """Write the step's communication trace, unless it stands there."""
    if not path.exists():
        half = path.with_suffix(".half")
        make_plan(load_recipe(RECIPE), HardwareSpec(nic_rate_bps=400e9)).trace.write(half)
        half.rename(path)
