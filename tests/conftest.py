"""What every test may ask for."""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples on every run, and no verdict that depends on how busy the machine is.
settings.register_profile("deterministic", derandomize=True, deadline=None)
settings.load_profile("deterministic")


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
