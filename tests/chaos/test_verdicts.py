"""Plans are fixed by their seed; verdicts follow from a journal; a session goes on where it was stopped."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from fabrictune.trainer_probe.operation.events import Event
from tests.chaos.plan import BY_NAME, FAULTS, make_plan
from tests.chaos.report import report
from tests.chaos.session import LINES, Session
from tests.chaos.verdicts import Done, Observed, judge

STEP_NS = 100_000_000


def event(elapsed_s: float, kind: str, /, **values: Any) -> Event:
    return Event(number=round(elapsed_s * 1000), elapsed_s=elapsed_s, time_ns=0, kind=kind, values=values)


def fault_detected(elapsed_s: float, cause: str, ranks: tuple[int, ...]) -> Event:
    named = f"rank {ranks[0]}"
    return event(elapsed_s, "fault detected", cause=cause, entity=named, ranks=ranks, nodes=(), is_fatal=True)


EVENTS = (
    event(0.0, "generation started", generation=1, nodes=("node0", "node1")),
    *(event(1 + step / 10, "step", generation=1, step=step, loss=1.0, elapsed_ns=STEP_NS) for step in range(10)),
    fault_detected(2.4, "rank killed", (3,)),
    event(3.4, "ranks down", generation=1, elapsed_s=1.0, stacks=()),
    event(3.5, "decision", generation=1, action="restart", reason=""),
    event(4.0, "generation started", generation=2, nodes=("node0", "node1")),
    event(5.0, "training", generation=2, step=8, restore_s=0.1, read_bytes=1),
    event(5.1, "step", generation=2, step=8, loss=1.0, elapsed_ns=STEP_NS),
    event(9.0, "job ended", outcome="finished", cause="", step=30),
)
OBSERVED = Observed(
    number=7,
    folder="7",
    fault=BY_NAME["kill rank"],
    done=(Done(fault="kill rank", at_s=2.0, ranks=(3,)),),
    events=EVENTS,
    exit_code=0,
    is_identical=True,
    losses_differ_at=None,
    duration_s=10.0,
    load=1.0,
)


def test_a_run_that_recovers_from_the_named_fault_passes() -> None:
    """Killed at 2.0 s, named at 2.4: 4 steps of 0.1 s; steps 8 and 9 are lost, one interval of 2; back at 5.0 s: 30."""
    verdict = judge(OBSERVED)
    assert verdict.failures == ()
    assert verdict.is_recovered
    assert (verdict.found, verdict.named, verdict.num_restores) == ((True,), (True,), 1)
    assert round(verdict.detection_steps or 0, 6) == 4
    assert (verdict.intervals_lost, verdict.down_s) == (1, 1)
    assert round(verdict.recovery_steps or 0, 6) == 30


def test_what_goes_wrong_is_named() -> None:
    """An innocent rank named, other parameters, more steps lost, ranks that end late, a hang, things left behind."""
    innocent = [fault_detected(2.4, "rank killed", (4,)) if e.kind == "fault detected" else e for e in EVENTS]
    assert judge(replace(OBSERVED, events=tuple(innocent))).failures == ("guilty not named", "innocent named")
    assert judge(replace(OBSERVED, is_identical=False)).failures == ("final parameters differ",)
    assert judge(replace(OBSERVED, is_identical=None)).failures == ("no final parameters",)
    assert judge(replace(OBSERVED, losses_differ_at=8)).failures == ("loss of step 8 differs",)
    assert judge(replace(OBSERVED, down_s=(11.0,))).failures == ("ranks down 11.0 s after the decision",)
    assert judge(replace(OBSERVED, exit_code=None, events=EVENTS[:-1])).failures == ("hangs",)
    assert judge(replace(OBSERVED, leftovers=("process 1",))).failures == ("left: process 1",)
    far_back = [replace(e, values={**e.values, "step": 7}) if e.kind == "training" else e for e in EVENTS]
    assert judge(replace(OBSERVED, events=tuple(far_back))).failures == ("1.5 intervals lost",)


def test_a_lost_node_costs_an_interval_of_memory_and_the_copy_on_its_way() -> None:
    """Steps 6 to 9 are two intervals: from copies they may be lost, from storage only if the copies were late."""
    lost = event(2.4, "fault detected", cause="node lost", entity="node a", ranks=(), nodes=("a",), is_fatal=True)
    late = event(1.2, "copies late", generation=1, node="a", step=2, cause="")

    def run(first: int, source: str, *more: Event) -> tuple[str, ...]:
        resumed = event(5.0, "training", generation=2, step=first, restore_s=0.1, read_bytes=1, source=source)
        again = event(5.1, "step", generation=2, step=first, loss=1.0, elapsed_ns=STEP_NS)
        events = (EVENTS[0], *more, *EVENTS[1:11], lost, *EVENTS[12:15], resumed, again, EVENTS[-1])
        done = (Done(fault="kill executor", at_s=2.0, nodes=("a",)),)
        return judge(replace(OBSERVED, fault=BY_NAME["kill executor"], done=done, events=events)).failures

    assert run(6, "memory") == ()
    assert run(5, "memory") == ("1.2 intervals lost",)
    assert run(8, "storage") == ()
    assert run(6, "storage") == ("went on from storage, not from the copies of the lost node",)
    assert run(6, "storage", late) == ()
    of_another = replace(late, values={**late.values, "node": "b"})
    assert run(6, "storage", of_another) == run(6, "storage")


def test_a_slow_rank_may_be_named_and_never_ended() -> None:
    """To name it is right; a restart is a failure."""
    slow = replace(OBSERVED, fault=BY_NAME["slow rank"], done=(Done(fault="slow rank", at_s=2.0, ranks=(3,)),))
    named = (*EVENTS[:11], fault_detected(2.4, "rank slow", (3,)), EVENTS[-1])
    assert judge(replace(slow, events=named)).failures == ()
    assert judge(replace(slow, events=(*EVENTS[:11], EVENTS[-1]))).failures == ()
    failures = judge(replace(slow, events=EVENTS)).failures
    assert failures == ("innocent named", "restarted 1 times, 1 of them without need")


def test_where_a_fault_makes_going_on_impossible_a_stop_with_its_cause_passes() -> None:
    """Damaged data stops the job; another cause, or a stop after a killed rank, does not pass."""
    done = (Done(fault="foreign ids in data", at_s=2.0),)
    named = event(2.4, "fault detected", cause="data damaged", entity="data", ranks=(), nodes=(), is_fatal=True)
    ended = event(3.0, "job ended", outcome="stopped", cause="data damaged: data; stops", step=9)
    stopped = replace(
        OBSERVED,
        fault=BY_NAME["foreign ids in data"],
        done=done,
        exit_code=1,
        events=(*EVENTS[:11], named, ended),
    )
    assert judge(stopped).failures == ()
    assert judge(stopped).is_stopped_named
    other = event(3.0, "job ended", outcome="stopped", cause="rank failed", step=9)
    failures = judge(replace(stopped, events=(*EVENTS[:11], named, other))).failures
    assert failures == ("ended as stopped (rank failed), exit code 1",)


def test_a_plan_follows_from_seed_and_number() -> None:
    """A round has every fault that can be tried here; another seed has other moments."""
    assert make_plan(1, 5) == make_plan(1, 5)
    size = sum(fault.weight for fault in FAULTS if not fault.needs)
    names = {make_plan(3, number).fault.name for number in range(size)}
    assert names == {fault.name for fault in FAULTS if not fault.needs}
    assert len({make_plan(seed, 0, "kill rank").injections for seed in range(20)}) == 20


def test_a_session_knows_its_finished_runs_and_reports_them(tmp_path: Path) -> None:
    """Of its own seed only; a line that was cut short is not one."""
    verdict = judge(replace(OBSERVED, is_identical=False))
    lines = [{"key": [seed, None], "verdict": asdict(replace(verdict, number=10 + seed))} for seed in (1, 2)]
    (tmp_path / LINES).write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"key": [1, nu')
    (known,) = Session(tmp_path, 1).verdicts()
    assert known == replace(verdict, number=11)
    text = report([known], tmp_path)
    assert "1 of 1 runs failed" in text
    assert f"11 kill rank: final parameters differ\n    {tmp_path}/7" in text
