"""The reference trainer's own traffic: the plan of one step, as all its ranks ask for it."""

from pathlib import Path

from trainer_probe.planning.hardware import HardwareSpec
from trainer_probe.planning.plan import make_plan
from trainer_probe.recipes.reading import load_recipe

RECIPE = Path(__file__).with_name("gpt-256.yaml")


def write_step(path: Path) -> None:
    """Write the step's communication trace, unless it stands there."""
    if not path.exists():
        half = path.with_suffix(".half")
        make_plan(load_recipe(RECIPE), HardwareSpec(nic_rate_bps=400e9)).trace.write(half)
        half.rename(path)
