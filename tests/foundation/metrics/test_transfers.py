"""What is computed from a record's transfers, on tables of a few rows."""

import numpy as np
import pytest

from fabrictune.foundation.metrics.transfers import makespan_ps, queue_pair_rates_bps, slowdowns

US = 1_000_000


def flows(qp: list[int], ready_us: list[int], finish_us: list[int]) -> dict[str, np.ndarray]:
    """Return transfers of 1 MB; a finish of -1 is none."""
    finish_ps = np.array([at * US if at >= 0 else -1 for at in finish_us])
    num_bytes = np.full(len(qp), 10**6)
    return {"qp": np.array(qp), "bytes": num_bytes, "ready_ps": np.array(ready_us) * US, "finish_ps": finish_ps}


def test_a_queue_pair_is_busy_while_any_of_its_transfers_waits_or_runs() -> None:
    """Transfers of 1 MB wait behind one another on queue pair 4 from 0 to 160 us: 16e6 bits / 160e-6 s = 100 Gbps.

    Queue pair 9 runs 0 to 80 us and, after a pause that does not count, 200 to 280 us: the same rate.
    """
    rates = queue_pair_rates_bps(flows([4, 9, 4, 9], [0, 200, 0, 0], [80, 280, 160, 80]))
    assert rates == pytest.approx([100e9, 100e9])


def test_a_queue_pair_with_an_unfinished_transfer_has_no_rate() -> None:
    """Queue pair 4 finished one of two transfers; queue pair 9 moved 1 MB in 80 us, 100 Gbps."""
    assert queue_pair_rates_bps(flows([4, 4, 9], [0, 0, 0], [80, -1, 80])) == pytest.approx([0, 100e9])


def test_a_makespan_starts_with_the_first_transfer_ready() -> None:
    """Ready at 5 and 7 us, finished at 9 and 12 us: 7 us; never where one never finished."""
    assert makespan_ps(flows([0, 1], [5, 7], [9, 12])) == 7 * US
    assert makespan_ps(flows([0, 1], [5, 7], [9, -1])) == np.inf
    assert np.isnan(makespan_ps(flows([], [], [])))


def test_a_slowdown_is_unknown_without_an_ideal_time() -> None:
    """4 us over 2 us is 2; an ideal time of -1 is none, and so is a missing column."""
    table = flows([0, 1, 2], [0, 0, 0], [4, 4, -1])
    assert np.isnan(slowdowns(table)[:2]).all()
    ideal_ps = np.array([2 * US, -1, US])
    np.testing.assert_array_equal(slowdowns({**table, "ideal_ps": ideal_ps}), [2, np.nan, np.inf])
