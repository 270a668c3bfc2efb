"""Signals that ask a run to end."""

import signal

import pytest

from fabrictune.trainer_probe.driver.signals import telling_signals


def test_the_first_is_told_and_the_second_interrupts() -> None:
    """Of each signal by itself: a terminal's Ctrl-C and a launcher's word to end are often one after the other."""
    told: list[str] = []
    with telling_signals(lambda: told.append("stop"), (signal.SIGINT, signal.SIGTERM)):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        assert told == ["stop", "stop"]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert told == ["stop", "stop"]


def test_afterwards_signals_are_as_before() -> None:
    """Whether one came or not."""
    before = signal.getsignal(signal.SIGINT)
    with telling_signals(lambda: None, (signal.SIGINT,)):
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
    with telling_signals(lambda: None, (signal.SIGINT,)):
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
