"""Spans of a training as it runs: every pass, request and piece of other work, where it belongs."""

from pathlib import Path

import numpy as np
import pytest

from fabrictune.foundation.span_reader import read_spans
from fabrictune.foundation.spans import SpanKind, Spans
from fabrictune.foundation.traces import UNKNOWN

pytest.importorskip("torch")

from fabrictune.trainer_probe.training.hardware import device_of
from fabrictune.trainer_probe.training.hooks import Hook
from fabrictune.trainer_probe.training.loop import train
from fabrictune.trainer_probe.training.progress import Monitor
from tests.trainer_probe.optimizers.flat_models import comm_of_one
from tests.trainer_probe.training.alone import machine_of_one, small


def recorded(folder: Path, changes: dict[str, object] | None = None, hooks: tuple[Hook, ...] = ()) -> Spans:
    recipe, spans, notes = small(changes), folder / "spans", list[str]()
    watch = Monitor(on_step=lambda report: None, is_stopped=lambda: False, on_note=notes.append)
    machine = machine_of_one(recipe, folder)
    train(recipe, comm_of_one(), machine, watch, device_of(recipe), hooks=hooks, spans=spans)
    assert not notes
    return read_spans(folder)


def test_a_step_has_its_passes_in_order(tmp_path: Path) -> None:
    """Four steps of two micro-batches, of one chunk."""
    spans = recorded(tmp_path)
    for step in range(4):
        of_step = spans.where(spans.step_N == step)
        passes = of_step.where(np.isin(of_step.kind_N, [SpanKind.FORWARD, SpanKind.BACKWARD]))
        assert passes.kind_N.tolist() == [SpanKind.FORWARD, SpanKind.BACKWARD] * 2
        assert passes.micro_batch_N.tolist() == [0, 0, 1, 1]
        assert set(passes.chunk_N.tolist()) == {0}
        whole = of_step.where(of_step.kind_N == SpanKind.STEP)
        assert len(whole) == 1
        assert (passes.start_ns_N >= whole.start_ns_N[0]).all()
        assert (passes.end_ns_N <= whole.end_ns_N[0]).all()
        assert (of_step.kind_N == SpanKind.OPTIMIZER).sum() == 1


def test_requests_are_numbered_in_their_groups_over_steps(tmp_path: Path) -> None:
    spans = recorded(tmp_path)
    requests = spans.where(spans.kind_N == SpanKind.REQUEST)
    assert set(requests.step_N.tolist()) == set(range(4))
    for group in set(requests.group_N.tolist()):
        of_group = requests.where(requests.group_N == group)
        assert of_group.sequence_N.tolist() == list(range(len(of_group)))
    assert (requests.issue_ns_N <= requests.start_ns_N).all()
    assert (requests.start_ns_N <= requests.end_ns_N).all()
    reports = [place for place, tag in enumerate(requests.tag_N) if tag == "driver.report"]
    assert set(requests.micro_batch_N[reports].tolist()) == {UNKNOWN}


def test_a_divided_backward_pass_has_two_spans(tmp_path: Path) -> None:
    spans = recorded(tmp_path, {"degrees.schedule": "zb-h1", "num_steps": 1})
    weights = spans.where(spans.kind_N == SpanKind.WEIGHT_GRADIENT)
    assert weights.micro_batch_N.tolist() == [0, 1]


def test_what_a_hook_takes_is_recorded_as_it_says(tmp_path: Path) -> None:
    """A checkpoint that keeps each step for at least a millisecond of work."""

    def work(*_: object) -> None:
        sum(range(100_000))

    spans = recorded(tmp_path, {"num_steps": 2}, (Hook(after_step=work, span=SpanKind.CHECKPOINT),))
    saves = spans.where(spans.kind_N == SpanKind.CHECKPOINT)
    assert saves.step_N.tolist() == [0, 1]


def test_garbage_is_collected_before_the_steps_that_are_due(tmp_path: Path) -> None:
    """Every second of four steps."""
    spans = recorded(tmp_path, {"collect_garbage_every": 2})
    assert spans.step_N[spans.kind_N == SpanKind.GARBAGE_COLLECTION].tolist() == [0, 2]
