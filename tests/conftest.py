"""What every test may ask for."""

import gc
import os
import shutil
import signal
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

from fabrictune.foundation.time_limits import SCALE_VARIABLE
from tests.patience import crowding, hang_guard, slowness

HANGS_AFTER_S = 600.0
SWEEP_HANGS_AFTER_S = 3600.0
IS_SCALE_GIVEN = SCALE_VARIABLE in os.environ
SLOWNESS_AT_START = slowness()
STACKS = pytest.StashKey[int]()

# The same examples on every run, and no verdict that depends on how busy the machine is.
settings.register_profile("deterministic", derandomize=True, deadline=None)
settings.load_profile("deterministic")

# A shell starts what runs in the background deaf to Ctrl-C; tests press it, and so may who waits for them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# nohup lets all its children ignore a hangup; a handler of our own does too, and programs that tests start do not.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda _number, _frame: None)


def pytest_configure(config: pytest.Config) -> None:
    """Keep the terminal's standard error, where the stacks of a test that hangs go."""
    capture = config.pluginmanager.getplugin("capturemanager")
    assert capture is not None, "it is one of pytest's own"
    with capture.global_and_fixture_disabled():
        config.stash[STACKS] = os.dup(2)


def pytest_collection_finish() -> None:
    """Leave what lives to the end out of every later garbage collection, which saves a twentieth of the time."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let no test hang, and give the product's limits against hanging the scale of how busy the machine is."""
    if not IS_SCALE_GIVEN:
        os.environ[SCALE_VARIABLE] = f"{max(SLOWNESS_AT_START, crowding()):.1f}"
    limit_s = SWEEP_HANGS_AFTER_S if item.get_closest_marker("sweep") else HANGS_AFTER_S
    with hang_guard(limit_s, item.config.stash[STACKS]):
        return (yield)


@pytest.fixture(scope="session")
def has_redis() -> None:
    """Skip where there is no Redis server to start, or nothing to speak to it with."""
    pytest.importorskip("torch")
    pytest.importorskip("redis")
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Return the folder of public sample files, which lies outside the project; skip where it is not set."""
    folder = os.environ.get("FABRICTUNE_REAL_DATA", "")
    if not folder:
        pytest.skip("FABRICTUNE_REAL_DATA is not set")
    return Path(folder)
