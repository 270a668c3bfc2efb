"""What readings say of an interval: bytes between two moments, and how long packets waited."""

from dataclasses import replace

import numpy as np
import pytest

from fabrictune.testbed.counters import LinkReading
from fabrictune.testbed.port_watch import port_use

ZERO = np.zeros(2, np.int64)
AT = LinkReading(
    time_s_P=np.zeros(2), sent_bytes_P=ZERO, sent_packets_P=ZERO, waiting_bytes_P=ZERO, queue_drops_P=ZERO,
    receive_drops_P=ZERO, carrier_changes_P=ZERO,
)  # fmt: skip
READINGS = [
    replace(AT, time_s_P=np.full(2, at_s), sent_bytes_P=np.array([sent, 0]), waiting_bytes_P=np.array([waiting, 0]))
    for at_s, sent, waiting in ((0.0, 0, 0), (1.0, 100, 5), (2.0, 300, 5), (4.0, 400, 0), (5.0, 400, 0))
]


def test_bytes_lie_on_the_line_between_readings() -> None:
    """At 0.5 s 50 bytes, at 3 s 350; port 1 sends nothing."""
    assert port_use(READINGS, 0.5, 3.0).sent_bytes_P.tolist() == [300.0, 0.0]


def test_between_a_reading_that_waits_and_one_that_does_not_half_counts() -> None:
    """Half of 0.5 s up to the reading at 1 s, all of the next second, half of the third."""
    use = port_use(READINGS, 0.5, 3.0)
    assert use.busy_s_P.tolist() == [0.25 + 1.0 + 0.5, 0.0]
    assert use.num_readings == 2


def test_outside_of_all_readings_the_nearest_counts() -> None:
    """A step that began before the first."""
    use = port_use(READINGS, -1.0, 9.0)
    assert use.sent_bytes_P.tolist() == [400.0, 0.0]
    assert use.busy_s_P[0] == pytest.approx(0.5 + 1.0 + 1.0)


@pytest.mark.parametrize(("began_s", "ended_s"), [(2.2, 2.3), (1.0, 2.0)])
def test_an_interval_may_lie_between_two_readings(began_s: float, ended_s: float) -> None:
    """100 bytes a second or less, and packets wait throughout the second."""
    use = port_use(READINGS, began_s, ended_s)
    assert use.sent_bytes_P[0] == pytest.approx(5.0 if began_s > 2 else 200.0)
    assert use.busy_s_P[0] == pytest.approx((ended_s - began_s) / (2 if began_s > 2 else 1))
