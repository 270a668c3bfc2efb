"""What a NIC says of its DCQCN parameters, in each of the forms it is found in."""

from pathlib import Path

import pytest

from fabrictune.cc import dcqcn_firmware
from fabrictune.cc.nic_parameter_files import read_nic
from fabrictune.cc.nic_parameters import NIC_PARAMETERS, NicFiles, nic_lines, nic_numbers
from fabrictune.foundation.errors import InputError, LawError

DEFAULTS = {parameter.name: parameter.default for parameter in dcqcn_firmware.PARAMETERS}


def test_every_parameter_of_the_law_is_one_of_the_nic() -> None:
    """And the other way round, the receiver's one aside."""
    assert [one.law_name for one in NIC_PARAMETERS if one.law_name] == list(DEFAULTS)


def test_a_folder_of_the_upstream_kernel_is_read_in_the_nics_units(tmp_path: Path) -> None:
    """5 is 5 Mb/s, 32767 is so many times 64 B, 50 is 50 %, 300 is 300 us; a file of no parameter is named."""
    numbers = {"rp_ai_rate": 5, "rp_byte_reset": 32767, "rp_min_dec_fac": 50, "rp_time_reset": 300}
    for name, number in {**numbers, "np_min_time_between_cnps": 4, "np_cnp_dscp": 48}.items():
        (tmp_path / name).write_text(f"{number}\n")
    reading = read_nic(tmp_path)
    assert reading.parameters == {
        "rpg_ai_rate_bps": 5e6,
        "rpg_byte_reset_bytes": 2_097_088,
        "rpg_min_dec_fac_fraction": 0.5,
        "rpg_time_reset_ps": 300_000_000,
    }
    assert reading.cnp_interval == "4 us"
    assert reading.ignored == ("np_cnp_dscp",)
    assert reading.law_keys == {
        "rpg_min_dec_fac": "50 %",
        "rpg_time_reset": "300 us",
        "rpg_byte_reset": "2097088 B",
        "rpg_ai_rate": "5 Mbps",
    }


def test_the_vendors_folders_are_read(tmp_path: Path) -> None:
    """The sender's and the receiver's parameters lie beside one another."""
    for folder, name, number in (("roce_rp", "dce_tcp_g", 1000), ("roce_np", "min_time_between_cnps", 2)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(f"{number}\n")
    reading = read_nic(tmp_path)
    assert (reading.parameters, reading.cnp_interval) == ({"dce_tcp_g": 1000}, "2 us")


@pytest.mark.parametrize(
    "line",
    [
        "rp_ai_rate: 7",
        "rpg_ai_rate = 0x7",
        "/sys/kernel/debug/mlx5/0000:08:00.0/cc_params/rp_ai_rate:7",
        "/sys/class/net/eth0/ecn/roce_rp/rpg_ai_rate: 7",
        "         RPG_AI_RATE_P1                      7",
        "RPG_AI_RATE_P1 Device_default(7)",
    ],
)
def test_one_number_in_any_text(tmp_path: Path, line: str) -> None:
    """Somebody's notes, `grep . *` over a folder, `mlxconfig query`."""
    path = tmp_path / "nic.txt"
    path.write_text(f"Configurations:\n\n{line}\n")
    assert read_nic(path).parameters == {"rpg_ai_rate_bps": 7e6}


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    """A word where a number belongs, and two ports that differ."""
    path = tmp_path / "nic.txt"
    path.write_text("rp_gd: eleven\nRPG_THRESHOLD_P1 1\nRPG_THRESHOLD_P2 5\n")
    with pytest.raises(InputError) as caught:
        read_nic(path)
    assert str(caught.value) == (
        f"{path}:1: rp_gd: 'eleven'\n  allowed: a whole number\n"
        f"{path}:3: RPG_THRESHOLD_P2: 5, after 1 before\n  allowed: one value for each parameter\n"
        "  next: keep the lines of one port"
    )


def test_a_text_without_parameters_is_refused(tmp_path: Path) -> None:
    """Rather than to leave the defaults, as if the NIC had them."""
    path = tmp_path / "nic.txt"
    path.write_text("hello: 5\n")
    with pytest.raises(InputError, match="no parameter of DCQCN"):
        read_nic(path)


def test_a_number_no_nic_takes_is_refused_by_the_law(tmp_path: Path) -> None:
    """A shift of 12 would make a cut of alpha / 4."""
    path = tmp_path / "nic.txt"
    path.write_text("rpg_gd: 12\n")
    with pytest.raises(LawError, match="law dcqcn_firmware: rpg_gd: 12"):
        read_nic(path)


@pytest.mark.parametrize("files", NicFiles)
def test_lines_read_back_give_the_same_parameters(tmp_path: Path, files: NicFiles) -> None:
    """All settings are in one line of mlxconfig, before the reset; a driver has a file for each."""
    lines = nic_lines(nic_numbers(DEFAULTS, cnp_interval_ps=4_000_000), files)
    assert len(lines) == (2 if files is NicFiles.MLXCONFIG else len(NIC_PARAMETERS))
    path = tmp_path / "nic.txt"
    echoed = [line.removeprefix("echo ").split(" > ") for line in lines]
    path.write_text("\n".join(f"{rest[-1]} = {first}" if rest else first for first, *rest in echoed))
    reading = read_nic(path)
    assert reading.parameters == DEFAULTS
    assert reading.cnp_interval == "4 us"


def test_lines_look_as_people_type_them() -> None:
    """Rounded to what the NIC can hold: 5.4 Mb/s are 5."""
    tuned = nic_numbers({"rpg_ai_rate_bps": 5.4e6, "rpg_gd": 11})
    assert [nic_lines(tuned, files) for files in NicFiles] == [
        ("mlxconfig -d <device> -y set RPG_GD_P1=11 RPG_AI_RATE_P1=5", "mlxfwreset -d <device> -y reset"),
        (
            "echo 11 > /sys/kernel/debug/mlx5/<device>/cc_params/rp_gd",
            "echo 5 > /sys/kernel/debug/mlx5/<device>/cc_params/rp_ai_rate",
        ),
        (
            "echo 11 > /sys/class/net/<interface>/ecn/roce_rp/rpg_gd",
            "echo 5 > /sys/class/net/<interface>/ecn/roce_rp/rpg_ai_rate",
        ),
    ]
    assert nic_lines({}, NicFiles.MLXCONFIG) == ()


@pytest.mark.real
def test_a_real_connectx_reads_as_documented(real_data: Path) -> None:
    """The driver's files of one NIC: the documented defaults, but clamping on and 10 Mb/s at the first CNP."""
    reading = read_nic(real_data / "counters" / "procfs_mlx5_0_and_ecn.txt")
    assert reading.parameters == DEFAULTS | {"clamp_tgt_rate": 1, "rate_to_set_on_first_cnp_bps": 10e6}
    assert reading.cnp_interval == "4 us"
    assert "cnp_dscp" in reading.ignored


def test_files_are_read_up_to_a_limit(tmp_path: Path) -> None:
    """A page for a kernel's number, a mebibyte for a text; not a byte more."""
    number, text = tmp_path / "nic" / "rp_ai_rate", tmp_path / "nic.txt"
    number.parent.mkdir()
    for path, given, most in ((number, number.parent, 4096), (text, text, 2**20)):
        content = "5" if path == number else "rp_ai_rate: 5"
        path.write_text(content + "\n" * (most - len(content)))
        assert read_nic(given).parameters == {"rpg_ai_rate_bps": 5e6}
        path.write_text(content + "\n" * (most + 1 - len(content)))
        with pytest.raises(InputError, match=str(path)):
            read_nic(given)
