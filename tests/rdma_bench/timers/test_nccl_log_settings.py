"""The adapter that a log's devices suggest."""

from pathlib import Path

import pytest

from fabrictune.collectives.nccl.log import read_nccl_log
from fabrictune.rdma_bench.timers.nccl_log_settings import is_usable, profile_of_devices


@pytest.mark.parametrize(
    ("devices", "name"),
    [
        ((), "connectx-6"),
        (("mlx5_0", "mlx5_1"), "connectx-6"),
        (("mlx5_0", "rocep3s0"), "connectx-6"),
        (("rxe0",), "soft-roce"),
        (("rxe0", "mlx5_0"), ""),
        (("unheard0",), ""),
    ],
)
def test_devices_of_one_driver_suggest_its_profile(devices: tuple[str, ...], name: str, tmp_path: Path) -> None:
    """Names by place tell no driver, and are those of the others; two drivers, or an unknown one, suggest none."""
    used = " ".join(f"[{place}]{device}:1/RoCE" for place, device in enumerate(devices))
    said = f"NET/IB : Using {used}; OOB eth0:10.0.0.1<0>" if devices else "NCCL version 2.21.5+cuda12.4"
    path = tmp_path / "nccl.log"
    path.write_text(f"a:1:1 [0] NCCL INFO {said}\n")
    log = read_nccl_log([path])
    assert [fact.name for fact in log.devices] == list(devices)
    profile, _ = profile_of_devices(log)
    assert (profile.name if profile else "") == name


@pytest.mark.parametrize(("text", "usable"), [("020", True), ("0020", False), ("31", True), ("32", False), ("", False)])
def test_a_setting_of_up_to_three_digits_is_a_number(text: str, usable: bool) -> None:
    """A number of thousands of digits would take a while to read."""
    assert is_usable(text, range(32)) == usable
