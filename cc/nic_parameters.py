"""DCQCN parameters of a ConnectX NIC: their names in each tool, and their values in the law.

The same number goes by three names. `mlxconfig` keeps it for the next boot (`RPG_AI_RATE_P1`), the vendor's driver
shows it under /sys/class/net/<interface>/ecn (`roce_rp/rpg_ai_rate`), the upstream kernel under
/sys/kernel/debug/mlx5/<device>/cc_params (`rp_ai_rate`). The law `dcqcn_firmware` has it as `rpg_ai_rate_bps`, without
the prefix of the unit.

Source: drivers/infiniband/hw/mlx5/cong.c (names under cc_params); NVIDIA, "DCQCN CC Parameters" (DOCA documentation),
for the other names and the units.
Left out: the priorities on which congestion control is on; the marks that CNPs carry.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class NicFiles(StrEnum):
    """Files of a NIC's parameters, and so the form of a line that sets one."""

    MLXCONFIG = "mlxconfig"
    CC_PARAMS = "cc_params"
    SYSFS = "sysfs"


@dataclass(frozen=True, kw_only=True)
class NicParameter:
    """One of a NIC's numbers."""

    name: str  # of the vendor's driver, without its folder; in capitals, mlxconfig's
    upstream_name: str  # under cc_params
    law_name: str = ""  # the law's parameter; empty for the receiver's
    folder: str = "roce_rp"  # of the vendor's driver: the sender's parameters, or the receiver's
    unit: float = 1  # what 1 means in the law
    shown: str = "{}"  # the number as a scenario writes it
    shown_per_unit: int = 1

    def value(self, law_value: float) -> int:
        """Return the whole number nearest to a law's value that the NIC can hold."""
        return round(law_value / self.unit)

    def scenario_value(self, number: int) -> str:
        """Return the NIC's number as a scenario writes it."""
        return self.shown.format(number * self.shown_per_unit)

    def echo_line(self, number: int, files: NicFiles) -> str:
        """Return what a person would type to set one of a driver's files; nothing here ever does."""
        if files is NicFiles.CC_PARAMS:
            return f"echo {number} > /sys/kernel/debug/mlx5/<device>/cc_params/{self.upstream_name}"
        return f"echo {number} > /sys/class/net/<interface>/ecn/{self.folder}/{self.name}"


def _rate(name: str, upstream_name: str) -> NicParameter:
    return NicParameter(name=name, upstream_name=upstream_name, law_name=f"{name}_bps", unit=1e6, shown="{} Mbps")


def _duration(name: str, upstream_name: str) -> NicParameter:
    return NicParameter(name=name, upstream_name=upstream_name, law_name=f"{name}_ps", unit=1e6, shown="{} us")


def _number(name: str, upstream_name: str) -> NicParameter:
    return NicParameter(name=name, upstream_name=upstream_name, law_name=name)


CNP_INTERVAL = NicParameter(
    name="min_time_between_cnps",
    upstream_name="np_min_time_between_cnps",
    folder="roce_np",
    unit=1e6,
    shown="{} us",
)

NIC_PARAMETERS = (
    _number("dce_tcp_g", "rp_dce_tcp_g"),
    _duration("dce_tcp_rtt", "rp_dce_tcp_rtt"),
    _number("initial_alpha_value", "rp_initial_alpha_value"),
    _rate("rate_to_set_on_first_cnp", "rp_rate_to_set_on_first_cnp"),
    _duration("rate_reduce_monitor_period", "rp_rate_reduce_monitor_period"),
    _number("rpg_gd", "rp_gd"),
    NicParameter(
        name="rpg_min_dec_fac",
        upstream_name="rp_min_dec_fac",
        law_name="rpg_min_dec_fac_fraction",
        unit=0.01,
        shown="{} %",
    ),
    _rate("rpg_min_rate", "rp_min_rate"),
    _rate("rpg_max_rate", "rp_max_rate"),
    _number("clamp_tgt_rate", "rp_clamp_tgt_rate"),
    _number("clamp_tgt_rate_after_time_inc", "rp_clamp_tgt_rate_ati"),
    _duration("rpg_time_reset", "rp_time_reset"),
    NicParameter(
        name="rpg_byte_reset",
        upstream_name="rp_byte_reset",
        law_name="rpg_byte_reset_bytes",
        unit=64,
        shown="{} B",
        shown_per_unit=64,
    ),
    _number("rpg_threshold", "rp_threshold"),
    _rate("rpg_ai_rate", "rp_ai_rate"),
    _rate("rpg_hai_rate", "rp_hai_rate"),
    CNP_INTERVAL,
)


NEEDS: Mapping[NicFiles, str] = {  # for settings to take effect
    NicFiles.MLXCONFIG: "the reset, or a reboot: the NIC's links go down",
    NicFiles.CC_PARAMS: "nothing: takes effect at once, until the driver is loaded anew",
    NicFiles.SYSFS: "nothing: takes effect at once, until the driver is loaded anew",
}


def nic_numbers(parameters: Mapping[str, float], *, cnp_interval_ps: int | None = None) -> dict[str, int]:
    """Return a `dcqcn_firmware` law's parameters by the driver's names, rounded to what the NIC can hold."""
    numbers = {
        parameter.name: parameter.value(parameters[parameter.law_name])
        for parameter in NIC_PARAMETERS
        if parameter.law_name in parameters
    }
    return numbers if cnp_interval_ps is None else {**numbers, CNP_INTERVAL.name: CNP_INTERVAL.value(cnp_interval_ps)}


def nic_lines(numbers: Mapping[str, int], files: NicFiles) -> tuple[str, ...]:
    """Return the lines that set numbers of `nic_numbers`: one for each file, or one for all and the reset it needs."""
    if not numbers:
        return ()
    if files is NicFiles.MLXCONFIG:
        pairs = " ".join(f"{name.upper()}_P1={number}" for name, number in numbers.items())
        return f"mlxconfig -d <device> -y set {pairs}", "mlxfwreset -d <device> -y reset"
    of_name = {parameter.name: parameter for parameter in NIC_PARAMETERS}
    return tuple(of_name[name].echo_line(number, files) for name, number in numbers.items())
