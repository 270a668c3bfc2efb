"""A session of its own for each job of a new user's first hour."""

from pathlib import Path

import pytest

from tests.first_hour.session import Session


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """Return a session in the test's own folder."""
    return Session(folder=tmp_path)
