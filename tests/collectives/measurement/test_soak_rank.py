"""A soak rank ends with its starter, whatever it waits for."""

import subprocess

import pytest

from fabrictune.foundation.children import module_command
from tests.patience import patience


def test_a_rank_ends_at_the_end_of_its_input() -> None:
    """Also while it waits for the other rank, which never comes."""
    pytest.importorskip("torch")
    words = module_command("fabrictune.collectives.measurement.soak_rank")
    with subprocess.Popen([*words, "0", "2", "127.0.0.1", "0", "64"], stdin=subprocess.PIPE) as rank:
        assert rank.stdin is not None
        rank.stdin.close()
        try:
            assert rank.wait(patience(30)) == 1
        finally:
            rank.kill()
