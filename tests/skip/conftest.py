"""What tests of this folder may ask for."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.recording import Record


@pytest.fixture(scope="session")
def recorded() -> Iterator[Record]:
    """Return the numbers of this folder's runs."""
    record = Record(Path(__file__).with_name("recorded.json"))
    yield record
    record.close()
