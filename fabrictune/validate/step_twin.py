"""The lock-step twin of a training on a testbed: each step predicted beside measured, and an alarm where they part.

A step is predicted as the network's part (`step_plan.py`) and what a step takes beside it: the median of six steps of
the same run, after two that make connections. The interval is four standard deviations of these steps to either side,
by their median absolute deviation, and at least 10 % of the step. The alarm is raised by the median of the last five
steps, so that no outlier raises it; of the same five steps every link is asked how long it was busy.

Left out: an alarm for steps shorter than predicted, whose state says so.
"""

import math
from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

import numpy as np

from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.finding_rules.testbed import STEP_LONGER, WINDOW
from fabrictune.foundation.robust import deviation
from fabrictune.topology.fabric import Fabric
from fabrictune.validate.busy_links import BusyLink, busy_links
from fabrictune.validate.step_plan import StepPlan
from fabrictune.validate.testbed_training import WARM_UP_STEPS, StepEvent

CALIBRATION_STEPS = 6


class State(StrEnum):
    """What a step is to the twin."""

    WARM_UP = "warm-up"
    CALIBRATION = "calibration"
    WITHIN = "within"
    LONGER = "longer"
    SHORTER = "shorter"


@dataclass(frozen=True, kw_only=True)
class StepCalibration:
    """What a step takes beside its network, and what its threads wait for processors."""

    beside_s: float  # below 0 where collectives of several pipeline stages go on at once
    deviation_s: float
    waited_s: float
    first_step: int
    last_step: int


@dataclass(frozen=True, kw_only=True)
class ComparedStep:
    """A step beside its prediction."""

    event: StepEvent
    state: State
    predicted_s: float = math.nan  # before the calibration has ended
    half_width_s: float = math.nan  # of its interval
    is_alarm: bool = False
    links: tuple[BusyLink, ...] = ()  # that are named

    @property
    def is_predicted(self) -> bool:
        """Whether there is a prediction of it."""
        return math.isfinite(self.predicted_s)

    @property
    def sent_fraction(self) -> float:
        """Bytes that all ports sent over those planned; NaN without a plan."""
        plan, use = self.event.plan, self.event.use
        return float(use.sent_bytes_P.sum() / plan.wire_bytes_P.sum()) if plan and use else math.nan


class StepTwin:
    """The twin of a run, which is told each step as it ends; without a fabric it knows no network and no links."""

    def __init__(self, fabric: Fabric | None, *, rules: RuleSettings = CATALOG_SETTINGS) -> None:
        self.fabric, self.rules = fabric, rules
        self.calibration: StepCalibration | None = None
        self.window = int(rules.threshold(STEP_LONGER, WINDOW.name))
        self.steps: list[ComparedStep] = []
        self._calibrating: list[StepEvent] = []
        self._recent: deque[StepEvent] = deque(maxlen=self.window)  # after the warm-up
        self._network: tuple[StepPlan, float] | None = None

    def network_s(self, plan: StepPlan | None) -> float:
        """Return the network's part of a step by its plan, at the planned rates; 0 without one."""
        if plan is None or self.fabric is None:
            return 0.0
        if self._network is None or self._network[0] is not plan:
            self._network = plan, plan.network_s(self.fabric.port_rate_bps_P)
        return self._network[1]

    def compare(self, event: StepEvent) -> ComparedStep:
        """Return a step beside its prediction."""
        if len(self.steps) < WARM_UP_STEPS:
            compared = ComparedStep(event=event, state=State.WARM_UP)
        else:
            self._recent.append(event)
            if self.calibration is None:
                self._calibrate(event)
                compared = ComparedStep(event=event, state=State.CALIBRATION, links=self._busy_links())
            else:
                compared = self._predict(event, self.calibration)
        self.steps.append(compared)
        return compared

    def _calibrate(self, event: StepEvent) -> None:
        self._calibrating.append(event)
        if len(self._calibrating) == CALIBRATION_STEPS:
            beside_s = np.array([step.seconds for step in self._calibrating]) - self.network_s(event.plan)
            self.calibration = StepCalibration(
                beside_s=float(np.median(beside_s)),
                deviation_s=deviation(beside_s),
                waited_s=median(step.waited_s for step in self._calibrating),
                first_step=self._calibrating[0].step,
                last_step=event.step,
            )

    def _predict(self, event: StepEvent, calibration: StepCalibration) -> ComparedStep:
        predicted_s = self.network_s(event.plan) + calibration.beside_s
        half_width_s = max(
            self.rules.threshold(STEP_LONGER, "margin") * predicted_s,
            self.rules.threshold(STEP_LONGER, "deviations") * calibration.deviation_s,
        )
        off_s = event.seconds - predicted_s
        state = State.WITHIN if abs(off_s) <= half_width_s else State.LONGER if off_s > 0 else State.SHORTER
        compared = [step.seconds for step in self._recent if step.step > calibration.last_step]
        return ComparedStep(
            event=event,
            state=state,
            predicted_s=predicted_s,
            half_width_s=half_width_s,
            is_alarm=len(compared) == self.window and median(compared) > predicted_s + half_width_s,
            links=self._busy_links(),
        )

    def _busy_links(self) -> tuple[BusyLink, ...]:
        if self.fabric is None or len(self._recent) < self.window:
            return ()
        return busy_links(self.fabric, self._recent, self.rules)
