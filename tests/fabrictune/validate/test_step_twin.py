"""The twin of a training: what it predicts, when it raises its alarm, and which link it names."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from fabrictune.foundation.checks import Result
from fabrictune.foundation.findings import Severity
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Dependencies, Operation
from fabrictune.testbed.paths import Flow
from fabrictune.testbed.plan import plan_testbed
from fabrictune.testbed.port_watch import PortUse
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.lookup import find_port
from fabrictune.validate.step_plan import StepPlan
from fabrictune.validate.step_twin import State, StepTwin
from fabrictune.validate.testbed_training import StepEvent
from fabrictune.validate.twin_findings import check_twin, step_lines

FABRIC = plan_testbed(
    build_clos(ClosSpec(num_hosts=2, hosts_per_tor_set=2, nics_per_host=1, tiers=2, uplinks_per_tor=1)),
    rate_bps=8_000_000,
)
UP_0, UP_1, DOWN_0, DOWN_1 = (
    find_port(FABRIC, name, where="") for name in ("host0:nic0", "host1:nic0", "tor0:down0.0", "tor0:down0.1")
)
THERE = Flow(source_nic=0, destination_nic=1, source_port=1, destination_port=2)
BYTES = 8948 * 20  # 20 packets of 8,948 bytes and 66 of headers each, and ten acknowledgements for those of the other
WIRE_BYTES = 20 * (8948 + 66) + 10 * 66
NETWORK_S = WIRE_BYTES * 8 / 8e6


def plan() -> StepPlan:
    """Return a step with one all-reduce of two ranks, which send one another all of it."""
    requests = CommTrace(
        groups=((0, 1),),
        rank_N=np.array([0, 1]),
        operation_N=np.full(2, Operation.ALL_REDUCE),
        group_N=np.zeros(2, np.int64),
        peer_N=np.full(2, UNKNOWN),
        bytes_N=np.full(2, BYTES),
        compute_before_ps_N=np.zeros(2, np.int64),
        step_N=np.zeros(2, np.int64),
        axis_N=("dp",) * 2,
        policy_N=("none",) * 2,
        tag_N=("",) * 2,
        dependencies=Dependencies.none(2),
    )
    paths = {THERE: (UP_0, DOWN_1), THERE.reverse: (UP_1, DOWN_0)}
    return StepPlan(requests=requests, paths=paths, num_ports=FABRIC.num_ports)


PLAN = plan()


def event(step: int, seconds: float, *, waited_s: float = 1.0, slow: float = 1.0) -> StepEvent:
    """Return a step in which both NICs are busy for their bytes, host 0's `slow` times as long."""
    busy_s_P = np.zeros(FABRIC.num_ports)
    busy_s_P[[UP_0, UP_1]] = slow * NETWORK_S, NETWORK_S
    use = PortUse(sent_bytes_P=PLAN.wire_bytes_P, busy_s_P=busy_s_P, num_readings=round(seconds / 0.02))
    return StepEvent(step=step, seconds=seconds, began_s=0.0, use=use, waited_s=waited_s, plan=PLAN if step else None)


def twin_of(seconds: Sequence[float], *, waited_s: float = 1.0, slow: float = 1.0) -> StepTwin:
    """Return the twin of eight healthy steps of half a second, then these."""
    twin = StepTwin(FABRIC)
    for step in range(8):
        twin.compare(event(step, 0.5))
    for step, own in enumerate(seconds, start=8):
        twin.compare(event(step, own, waited_s=waited_s, slow=slow))
    return twin


def test_a_plan_counts_headers_and_acknowledgements() -> None:
    """The link carries its packets, and half as many acknowledgements of the other way; a collective waits for it."""
    assert PLAN.wire_bytes_P[[UP_0, UP_1, DOWN_0, DOWN_1]] == pytest.approx([WIRE_BYTES] * 4)
    assert PLAN.network_s(FABRIC.port_rate_bps_P) == pytest.approx(NETWORK_S)


def test_six_steps_calibrate_the_seventh() -> None:
    """The first two do not count; their median beside the network's part is in every prediction."""
    twin = StepTwin(FABRIC)
    for step, seconds in enumerate((5.0, 4.0, 0.5, 0.52, 0.48, 0.5, 3.0, 0.5, 0.56, 0.54)):
        twin.compare(event(step, seconds))
    assert [step.state for step in twin.steps] == [
        *(State.WARM_UP, State.WARM_UP, *(State.CALIBRATION,) * 6), State.LONGER, State.WITHIN,
    ]  # fmt: skip
    assert twin.calibration is not None
    assert twin.calibration.beside_s == pytest.approx(0.5 - NETWORK_S)
    assert math.isnan(twin.steps[7].predicted_s)
    # deviations from 0.5 are 0, 0.02, 0.02, 0, 2.5, 0: their median 0.01, times 1.4826, times 4, is above a tenth
    assert twin.steps[8].half_width_s == pytest.approx(4 * 1.4826 * 0.01)
    assert twin.steps[8].predicted_s == pytest.approx(0.5)


def test_two_of_five_steps_are_outliers_and_three_an_alarm() -> None:
    """The median of five decides, whatever their size."""
    few = twin_of((0.5, 9.0, 0.5, 9.0, 0.5, 0.5))
    assert not any(step.is_alarm for step in few.steps)
    assert not check_twin(few).findings
    many = twin_of((0.5, 0.9, 0.9, 0.5, 0.9, 0.5, 0.5))
    assert [step.is_alarm for step in many.steps[8:]] == [False] * 4 + [True, True, False]
    (finding,) = check_twin(many).findings
    assert (finding.id, finding.severity, finding.entity) == ("testbed.step-longer", Severity.ERROR, "steps 8 to 13")
    assert finding.actual == "900 ms a step: no link is named"


def test_a_slow_link_is_named() -> None:
    """It is busy twice as long for its bytes, while steps take longer; or from the start on, while none does."""
    planted = check_twin(twin_of((0.5 + NETWORK_S,) * 6, slow=2.0)).findings
    label = FABRIC.link_label(UP_0)
    assert [(finding.id, finding.entity) for finding in planted] == [
        ("testbed.step-longer", "steps 8 to 13"), ("testbed.link-busy", label),
    ]  # fmt: skip
    assert label in planted[0].actual
    from_start = StepTwin(FABRIC)
    for step in range(13):
        from_start.compare(event(step, 0.5, slow=2.0))
    assert [finding.entity for finding in check_twin(from_start).findings] == [label]


@pytest.mark.parametrize(("slow", "num_named"), [(1.2, 0), (1.5, 1)])
def test_a_link_is_named_from_a_factor_on(slow: float, num_named: int) -> None:
    """1.3 by default."""
    assert len(check_twin(twin_of((0.5,) * 6, slow=slow)).findings) == num_named


def test_a_busy_machine_slows_all_links_and_names_none() -> None:
    """Both NICs are busy twice as long."""
    twin = StepTwin(FABRIC)
    for step in range(13):
        own = event(step, 0.5, slow=2.0)
        assert own.use
        own.use.busy_s_P[UP_1] *= 2.0
        own.use.busy_s_P[[DOWN_0, DOWN_1]] = NETWORK_S
        twin.compare(own)
    assert not check_twin(twin).findings


@pytest.mark.parametrize(("waited_s", "severity"), [(1.3, Severity.ERROR), (1.5, Severity.WARNING)])
def test_ranks_that_wait_for_processors_are_a_warning(waited_s: float, severity: Severity) -> None:
    """Steps of 0.9 s are 0.4 s longer than predicted; threads waited for 1 s in the calibration."""
    (finding,) = check_twin(twin_of((0.9,) * 6, waited_s=waited_s)).findings
    assert finding.severity == severity


def test_without_a_fabric_there_are_no_links() -> None:
    """As over the loopback: what steps take is all calibrated, and the alarm says what it has not looked at."""
    twin = StepTwin(None)
    for step, seconds in enumerate((0.5,) * 8 + (0.9,) * 5):
        twin.compare(StepEvent(step=step, seconds=seconds, began_s=0.0, waited_s=0.0))
    report = check_twin(twin)
    assert [finding.entity for finding in report.findings] == ["steps 8 to 12"]
    assert report.checks[1].reason == "ranks share this machine's loopback, which has none"
    line, alarm = step_lines(twin)
    assert line == "step 12: 900 ms, longer, predicted 500 ms within 50 ms"
    assert alarm == "alarm: the median of 5 steps in a row above the interval"


def test_a_short_run_says_what_it_lacks() -> None:
    """Two, six and five steps: 13."""
    steps, links = check_twin(twin_of((0.9,) * 4)).checks
    assert (steps.result, links.result) == (Result.NOT_RUN, Result.PASSED)
    assert steps.reason == "it takes 13 steps: 8 before the first prediction, 5 from there"
    assert check_twin(twin_of((0.9,) * 5)).checks[0].result == Result.FOUND
