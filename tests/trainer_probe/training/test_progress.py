"""Signals that ask a run to end."""

import signal

import pytest

from fabrictune.trainer_probe.training.progress import stop_signals


def test_the_first_signal_calls_back_and_the_second_interrupts() -> None:
    """Of each signal by itself: a terminal's Ctrl-C and a launcher's SIGTERM often follow one another."""
    calls: list[str] = []
    with stop_signals(lambda: calls.append("stop"), (signal.SIGINT, signal.SIGTERM)):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        assert calls == ["stop", "stop"]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert calls == ["stop", "stop"]


def test_afterwards_signals_are_as_before() -> None:
    """Whether one came or not."""
    before = signal.getsignal(signal.SIGINT)
    with stop_signals(lambda: None, (signal.SIGINT,)):
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
    with stop_signals(lambda: None, (signal.SIGINT,)):
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
