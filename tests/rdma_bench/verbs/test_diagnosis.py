"""Five reasons why RDMA devices cannot be used have five names and five next steps."""

import sys
from pathlib import Path

import pytest

from fabrictune.foundation.errors import UnavailableError
from fabrictune.rdma_bench.measurement.workers import find_python
from fabrictune.rdma_bench.verbs.diagnosis import DeviceDiagnosis, diagnose, require_devices

WORKING_MODULE = "json"  # stands for a pyverbs that loads


def look(folder: Path, module: str = WORKING_MODULE) -> DeviceDiagnosis:
    """Diagnose a machine whose system files stand in a folder."""
    return diagnose(module, subsystem=folder / "verbs", devices=folder / "devices", nodes=folder / "nodes")


def test_a_module_that_is_missing_is_not_one_that_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is installed from the distribution; the second, from the index, has to go."""
    (tmp_path / "ft_foreign_verbs.py").write_text("raise ImportError('version `IBVERBS_PRIVATE_59 not found')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    missing, foreign = look(tmp_path, "ft_no_such_verbs"), look(tmp_path, "ft_foreign_verbs")
    sys.modules.pop("ft_foreign_verbs", None)
    assert (missing.problem, foreign.problem) == ("module missing", "ABI mismatch")
    assert foreign.found == "version `IBVERBS_PRIVATE_59 not found"
    assert missing.next_step.startswith("apt-get install python3-pyverbs")
    assert foreign.next_step.startswith("remove the pyverbs that pip installed")


def test_no_subsystem_no_device_and_no_permission_are_three_things(tmp_path: Path) -> None:
    """Each is found when the one before it is mended."""
    assert look(tmp_path).problem == "no RDMA subsystem"
    (tmp_path / "verbs").mkdir()
    assert look(tmp_path).problem == "no device"
    (tmp_path / "devices" / "mlx5_0").mkdir(parents=True)
    assert look(tmp_path).problem == "no permission"
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "uverbs0").touch()
    assert look(tmp_path).problem is None


def test_a_problem_is_an_error_with_its_next_step(tmp_path: Path) -> None:
    """Word for word, as the command line prints it."""
    (tmp_path / "verbs").mkdir()
    with pytest.raises(UnavailableError) as caught:
        require_devices(look(tmp_path), where="RDMA devices")
    assert str(caught.value) == (
        f"RDMA devices: no device: none in {tmp_path / 'devices'}\n"
        "  next: in software: modprobe rdma_rxe; rdma link add rxe0 type rxe netdev eth0"
    )


def test_what_is_no_python_at_all_is_a_diagnosis_too(tmp_path: Path) -> None:
    """A candidate that cannot even start is passed over, and the error says so."""
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    with pytest.raises(UnavailableError) as caught:
        find_python([str(broken)])
    assert "module missing" in str(caught.value)
