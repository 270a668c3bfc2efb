"""The cluster of Slurm's tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.trainer_probe.operation.backends.slurm_cluster import slurm_cluster


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the configuration of a Slurm of three nodes."""
    with slurm_cluster(tmp_path_factory.mktemp("slurm")) as configuration:
        yield configuration
