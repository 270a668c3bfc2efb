"""The cluster of Slurm's tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.trainer_probe.operation.backends.slurm_cluster import slurm_cluster


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the configuration of a Slurm of three nodes."""
    folder = tmp_path_factory.mktemp("slurm")
    for above in (folder, *list(folder.parents)[:3]):
        if above.owner() == "root" and above != Path("/"):
            above.chmod(above.stat().st_mode | 0o011)  # munge's own user passes through
    with slurm_cluster(folder) as configuration:
        yield configuration
