"""The twin of a training of eight ranks on a testbed, over clean steps and twenty planted slow links.

Run as root: `python -m benchmarks.studies.testbed_twin [--seed 1]` (five to ten minutes). Eight hosts under two leaves
and four spines at 40 Mbps, dp 8, one training. After its calibration 60 steps are clean. Then a loaded link gets 20 to
50 % of its rate until the twin has raised its alarm and named a link, ten steps at most; healed, six steps pass before
the next. A link is loaded where its planned bytes take at least half of the busiest one's time.

Expected before the first run, at a load of 10 to 25 on two cores: the planted link named, and no other, in 20 of 20;
the alarm raised in 20 of 20; no link named in the clean steps, where alarms are warnings for want of processors.
"""

import argparse
import tempfile
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fabrictune.foundation.units import BITS_PER_BYTE
from fabrictune.testbed.plan import EIGHT_HOSTS, plan_testbed
from fabrictune.testbed.shaping import change_rate, heal
from fabrictune.testbed.testbed import Testbed, temporary_testbed
from fabrictune.topology.builders.clos import build_clos
from fabrictune.trainer_probe.recipes.files import load_recipe
from fabrictune.validate.step_twin import StepTwin
from fabrictune.validate.testbed_training import StepEvent, train_on
from fabrictune.validate.twin_findings import check_twin

RECIPE = """
name: testbed-twin
model: {preset: tiny, vocabulary: 258, width: 128, depth: 2, sequence: 32}
degrees: {layout: {dp: 8}, num_batches: 1, batch_size: 1}
schedule: {peak: 3.0e-3, num_warmup_steps: 4, num_steps: 100}
data: {source: synthetic}
"""
RATE_BPS = 40_000_000
CLEAN_STEPS = 60  # after the first eight
TRIALS = 20
MAX_PLANTED_STEPS, HEALED_STEPS = 10, 6
NUM_STEPS = 8 + CLEAN_STEPS + TRIALS * (MAX_PLANTED_STEPS + HEALED_STEPS)


class TrialsEndedError(Exception):
    """The last trial has ended; ends the training with it."""


@dataclass(kw_only=True)
class Trial:
    """A planted link, and what the twin said meanwhile."""

    link: str
    kept_fraction: float
    num_steps: int = 0
    is_alarm: bool = False
    named: set[str] = field(default_factory=set)

    @property
    def is_told(self) -> bool:
        """Whether there is nothing more to wait for."""
        return (self.is_alarm and bool(self.named)) or self.num_steps == MAX_PLANTED_STEPS


class Conductor:
    """What plants and heals while a training goes on."""

    def __init__(self, testbed: Testbed, seed: int) -> None:
        self.testbed, self.twin = testbed, StepTwin(testbed.fabric)
        self.trials: list[Trial] = []
        self._random, self._port, self._rest = np.random.default_rng(seed), -1, 8 + CLEAN_STEPS

    def on_step(self, event: StepEvent) -> None:
        """Compare a step, and plant or heal where it is time to."""
        compared = self.twin.compare(event)
        if self._port < 0:
            self._rest -= 1
            if not self._rest:
                if len(self.trials) == TRIALS:
                    raise TrialsEndedError
                self._plant(event)
            return
        trial = self.trials[-1]
        trial.num_steps += 1
        trial.is_alarm |= compared.is_alarm
        trial.named |= {self.testbed.fabric.link_label(link.port) for link in compared.links}
        if trial.is_told:
            print(trial, flush=True)
            heal(self.testbed.built, self._port)
            self._port, self._rest = -1, HEALED_STEPS

    def _plant(self, event: StepEvent) -> None:
        if not self.trials:
            report_clean(self.twin)
        assert event.plan
        fabric, kept = self.testbed.fabric, float(self._random.uniform(0.2, 0.5))
        planned_s_P = event.plan.wire_bytes_P * BITS_PER_BYTE / fabric.port_rate_bps_P
        self._port = int(self._random.choice(np.nonzero(planned_s_P > 0.5 * planned_s_P.max())[0]))
        change_rate(self.testbed.built, self._port, round(kept * int(fabric.port_rate_bps_P[self._port])))
        self.trials.append(Trial(link=fabric.link_label(self._port), kept_fraction=kept))


def report_clean(twin: StepTwin) -> None:
    """Print what the twin has found of the clean steps."""
    found = Counter(f"{finding.severity.value} {finding.id}" for finding in check_twin(twin).findings)
    within = [step for step in twin.steps if step.is_predicted and step.state == "within"]
    print(f"clean: {len(twin.steps)} steps, {len(within)} within their interval; found: {dict(found) or 'nothing'}")


def main() -> None:
    """Run the training, and print each trial and their sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    fabric = plan_testbed(build_clos(EIGHT_HOSTS), rate_bps=RATE_BPS)
    settings = {"num_steps": NUM_STEPS}
    with tempfile.TemporaryDirectory() as folder:
        recipe = Path(folder, "recipe.yaml")
        recipe.write_text(RECIPE)
        with temporary_testbed(fabric, "twinstudy", Path(folder), with_ssh=False) as testbed:
            conductor = Conductor(testbed, parser.parse_args().seed)
            with suppress(TrialsEndedError):
                train_on(testbed, load_recipe(recipe, settings), recipe, settings, on_step=conductor.on_step)
    trials = conductor.trials
    named = sum(trial.named == {trial.link} for trial in trials)
    print(f"{named} of {len(trials)} named, and no other; alarm in {sum(trial.is_alarm for trial in trials)}")


if __name__ == "__main__":
    main()
