"""The real part: eight ranks train over tensor, pipeline and data parallelism, each step beside its prediction.

On a testbed of eight namespaces where this process may make them, and one of its links becomes slow in mid-run; else
over this machine's loopback, where all of a step is calibrated. Without torch nothing is trained, and the reason said.
"""

import multiprocessing
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fabrictune.foundation.checks import CheckReport, join_reports
from fabrictune.foundation.errors import InputError, UnavailableError
from fabrictune.foundation.extras import require_extra
from fabrictune.foundation.processor_waits import waited_s
from fabrictune.foundation.units import format_fraction, format_rate
from fabrictune.testbed.links import check_totals, link_use
from fabrictune.testbed.plan import EIGHT_HOSTS, plan_testbed
from fabrictune.testbed.shaping import change_rate
from fabrictune.testbed.testbed import Testbed, temporary_testbed
from fabrictune.topology.builders.clos import build_clos
from fabrictune.topology.lookup import find_port
from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe
from fabrictune.trainer_probe.recipes.schema import Recipe
from fabrictune.trainer_probe.training.local import train_locally
from fabrictune.trainer_probe.training.progress import StepReport
from fabrictune.validate.step_twin import StepTwin
from fabrictune.validate.testbed_training import NS_PER_S, StepEvent, train_on
from fabrictune.validate.twin_findings import check_twin, step_lines
from fabrictune.validate.twin_record import twin_record

RECIPE = "tiny"  # tp 2, pp 2, dp 2
SETTINGS: Mapping[str, Any] = {"num_steps": 20}
TESTBED = "demo"
RATE_BPS = 20_000_000
SLOW_LINK, SLOWED_AFTER = "host3:nic0", 12  # two steps of warm-up, six of calibration, five compared
SLOW_FRACTION = 0.25
TIMEOUT_S = 600.0

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class TwinnedTraining:
    """A training and its twin."""

    place: str
    twin: StepTwin
    report: CheckReport
    directory: Path  # of its record


def train_job(directory: Path, say: Say) -> TwinnedTraining | None:
    """Train and write the record, saying each step as it ends; None, with the reason said, where nothing is trained."""
    started = time.perf_counter()
    try:
        require_extra("torch", extra="train", where="training")
        recipe_file = find_recipe(RECIPE)
        recipe = load_recipe(recipe_file, SETTINGS)
        with TemporaryDirectory(prefix="fabrictune-demo-") as folder, ExitStack() as stack:
            fabric = plan_testbed(build_clos(EIGHT_HOSTS), rate_bps=RATE_BPS)
            try:
                testbed = stack.enter_context(temporary_testbed(fabric, TESTBED, Path(folder), with_ssh=False))
            except (UnavailableError, InputError) as error:
                say(f"no testbed, so over this machine's loopback: {error}")
                place, (twin, report) = "this machine's loopback", _train_on_loopback(recipe, say)
            else:
                place, (twin, report) = (
                    f"testbed, links of {format_rate(RATE_BPS)}",
                    _train_on(testbed, recipe, recipe_file, say),
                )
    except UnavailableError as error:
        say(f"not trained: {error}")
        return None
    record = twin_record(recipe, twin, report, place=place, started=started)
    return TwinnedTraining(place=place, twin=twin, report=report, directory=record.write(directory))


def _train_on(testbed: Testbed, recipe: Recipe, recipe_file: Path, say: Say) -> tuple[StepTwin, CheckReport]:
    fabric, twin = testbed.fabric, StepTwin(testbed.fabric)
    port = find_port(fabric, SLOW_LINK, where="")
    say(f"eight ranks on eight hosts of a testbed, links of {format_rate(RATE_BPS)}, paths by the kernel's ECMP")

    def on_step(event: StepEvent) -> None:
        twin.compare(event)
        for line in step_lines(twin):
            say(line)
        if event.step == SLOWED_AFTER:
            change_rate(testbed.built, port, round(fabric.port_rate_bps_P[port] * SLOW_FRACTION))
            say(f"planted: {fabric.link_label(port)} has {format_fraction(SLOW_FRACTION)} of its rate from now on")

    trained = train_on(testbed, recipe, recipe_file, SETTINGS, on_step=on_step)
    return twin, join_reports(check_twin(twin), check_totals(link_use(fabric, trained.readings)))


def _train_on_loopback(recipe: Recipe, say: Say) -> tuple[StepTwin, CheckReport]:
    twin, waited = StepTwin(None), 0.0

    def on_step(report: StepReport) -> None:
        nonlocal waited
        before, waited = waited, waited_s(child.pid for child in multiprocessing.active_children() if child.pid)
        seconds = report.elapsed_ns / NS_PER_S
        began_s = time.monotonic() - seconds
        more_s = max(waited - before, 0.0)
        twin.compare(StepEvent(step=report.step, seconds=seconds, began_s=began_s, waited_s=more_s))
        for line in step_lines(twin):
            say(line)

    train_locally(recipe, on_step=on_step, timeout_s=TIMEOUT_S)
    return twin, check_twin(twin)
