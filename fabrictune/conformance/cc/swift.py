"""Swift's target delay, by its formula."""

from functools import partial

import numpy as np

from fabrictune.cc import swift
from fabrictune.cc.flow_state import params_record
from fabrictune.foundation.cases import Case

_SOURCE = "Kumar et al., Swift, SIGCOMM 2020, section 3.5; base 25 us, 4 hops of 1 us, range 100 us from 0.1 to 100"
_SETTINGS = {"base_target_ps": 25_000_000, "hop_scaling_ps": 1_000_000, "flow_scaling_range_ps": 100_000_000}
_TARGET_US = {0.1: 129.00, 0.5: 71.92, 1: 58.39, 2: 48.83, 5: 40.34, 10: 36.06, 50: 30.35, 100: 29.00, 1000: 29.00}


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return tuple(
        Case(
            name=f"cc.swift-target.window-{window:g}",
            source=_SOURCE,
            unit="us",
            expected=expected_us,
            low=expected_us - 0.005,
            high=expected_us + 0.005,
            run=partial(_target_us, window),
        )
        for window, expected_us in _TARGET_US.items()
    )


def _target_us(window_packets: float) -> float:
    params = params_record(swift, _SETTINGS).view(np.recarray)[0]
    return swift.target_delay_ps(params, window_packets, 4) / 1e6
