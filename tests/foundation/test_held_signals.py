"""Signals wait for the end of a block, take their own effect then, and are let through where that is asked for."""

import signal
import threading
from collections.abc import Iterator

import pytest

from fabrictune.foundation.held_signals import STOPPING, HeldSignals


@pytest.fixture(autouse=True)
def _handled() -> Iterator[None]:
    """Let all of them raise KeyboardInterrupt, as on the command line."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in STOPPING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", STOPPING)
def test_a_signal_waits_for_the_end(number: signal.Signals) -> None:
    """The block runs on; then the program's own handler is called."""
    steps = []

    def block() -> None:
        with HeldSignals():
            signal.raise_signal(number)
            steps.append("went on")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert steps == ["went on"]
    assert signal.getsignal(number) is signal.default_int_handler


def test_a_signal_that_was_held_takes_effect_where_it_is_let_through() -> None:
    """At the beginning of the inner block."""
    steps = []

    def block() -> None:
        with HeldSignals() as signals:
            signal.raise_signal(signal.SIGTERM)
            steps.append("held")
            with signals.let_through():
                steps.append("never")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert steps == ["held"]


def test_signals_are_held_again_after_they_were_let_through() -> None:
    """So that what cleans up is not stopped by a second one."""
    steps = []

    def block() -> None:
        with HeldSignals() as signals:
            try:
                with signals.let_through():
                    signal.raise_signal(signal.SIGTERM)
                    steps.append("never")
            finally:
                signal.raise_signal(signal.SIGTERM)
                steps.append("cleaned")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert steps == ["cleaned"]


def test_an_ignored_signal_stays_ignored() -> None:
    """As under nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with HeldSignals():
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        signal.raise_signal(signal.SIGHUP)


def test_other_threads_hold_nothing() -> None:
    """Python handles signals in its main thread alone."""
    handlers = []

    def block() -> None:
        with HeldSignals():
            handlers.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=block)
    thread.start()
    thread.join()
    assert handlers == [signal.default_int_handler]
