"""Medians of trials: which trials count for which settings."""

import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fabrictune.foundation.errors import RecordError
from fabrictune.foundation.records import RunRecord
from fabrictune.rdma_bench.timers.prediction import RetransmissionSpec
from fabrictune.rdma_bench.timers.trials import (
    FOR_GOOD,
    NONE,
    RETRIES_EXCEEDED,
    SUCCESS,
    TimerTrial,
    median_gives_up_ns,
    median_stall_ns,
    read_trials,
)

SPEC = RetransmissionSpec(timeout_exponent=14, retries=7)
OTHER = RetransmissionSpec(timeout_exponent=15, retries=7)


def trial(spec: RetransmissionSpec, cut_ns: int, status: int, after_ns: int) -> TimerTrial:
    """Return a trial."""
    return TimerTrial(spec=spec, cut_ns=cut_ns, status=status, after_ns=after_ns)


def read(monkeypatch: pytest.MonkeyPatch, tables: dict[str, dict[str, np.ndarray]]) -> tuple[TimerTrial, ...]:
    """Read the trials of a record with these tables."""
    monkeypatch.setattr(RunRecord, "read", lambda _directory, tables=(), read=tables: SimpleNamespace(tables=read))
    return read_trials(Path("measured"))


def test_trials_are_rows_of_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with its settings, its cut and what came of it."""
    columns = {"after_ns": [9, 8], "timeout": [14, 15], "retries": [7, 6], "cut_ns": [FOR_GOOD, 50], "status": [12, 0]}
    tables = {"trials": {name: np.array(values) for name, values in columns.items()}}
    assert read(monkeypatch, tables) == (
        trial(RetransmissionSpec(timeout_exponent=14, retries=7), FOR_GOOD, RETRIES_EXCEEDED, 9),
        trial(RetransmissionSpec(timeout_exponent=15, retries=6), 50, SUCCESS, 8),
    )


@pytest.mark.parametrize(
    ("tables", "found"),
    [({}, "no trials"), ({"trials": {"timeout": np.array([14])}}, "trials without retries, cut_ns, status, after_ns")],
)
def test_a_record_without_trials_is_refused(
    tables: dict[str, dict[str, np.ndarray]], found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what is missing, and what writes one."""
    with pytest.raises(RecordError) as refused:
        read(monkeypatch, tables)
    assert str(refused.value) == (
        f"measured: {found}\n  next: give the folder that `fabrictune rdma timers measure` wrote"
    )


def test_statuses_are_those_of_verbs() -> None:
    """IBV_WC_SUCCESS and IBV_WC_RETRY_EXC_ERR of rdma-core's verbs.h."""
    assert (SUCCESS, RETRIES_EXCEEDED) == (0, 12)


def test_records_have_minus_one_for_what_never_came() -> None:
    """A path that stayed away, a status before the limit, retransmissions that no driver counts."""
    assert (FOR_GOOD, NONE) == (-1, -1)
    assert trial(SPEC, FOR_GOOD, NONE, 5).num_retransmissions == -1


def test_giving_up_counts_trials_of_these_settings_without_a_return() -> None:
    """Other settings, a path that came back and another error do not count: 3 is in the middle of 1, 3 and 9."""
    trials = [trial(SPEC, FOR_GOOD, RETRIES_EXCEEDED, after_ns) for after_ns in (1, 9, 3)]
    trials += [
        trial(OTHER, FOR_GOOD, RETRIES_EXCEEDED, 100),
        trial(SPEC, 50, RETRIES_EXCEEDED, 100),
        trial(SPEC, FOR_GOOD, 5, 100),
        trial(SPEC, FOR_GOOD, SUCCESS, 100),
    ]
    assert median_gives_up_ns(trials, SPEC) == 3
    assert math.isnan(median_gives_up_ns(trials[3:], SPEC))


@pytest.mark.parametrize(("cut_ns", "counts"), [(1000, True), (951, True), (949, False), (FOR_GOOD, False)])
def test_a_stall_counts_cuts_of_about_that_length(cut_ns: int, counts: bool) -> None:
    """Within 5 %, and only where traffic went on."""
    trials = [trial(SPEC, cut_ns, SUCCESS, 7), trial(OTHER, 1000, SUCCESS, 8), trial(SPEC, 1000, RETRIES_EXCEEDED, 9)]
    assert (median_stall_ns(trials, SPEC, 1000) == 7) == counts
    assert math.isnan(median_stall_ns(trials, SPEC, 1000)) != counts
