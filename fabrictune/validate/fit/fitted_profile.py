"""A hardware profile with fitted values: those that the measurements determine, with files and sizes as their source.

A profile on a bundled base is short: the base's values stay with the base. Parameters that are not determined are not
written.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.output_files import replaced_file
from fabrictune.foundation.quantiles import NORMAL_90
from fabrictune.foundation.settings.quantities import key_of, setting_value
from fabrictune.foundation.units import BITS_PER_BYTE, NS_PER_S, PS_PER_NS, format_bytes, format_rate
from fabrictune.hardware.files import bundled_profile, profile_names, write_profile
from fabrictune.hardware.profile import HardwareProfile
from fabrictune.validate.fit.calibration import Known
from fabrictune.validate.fit.sources import MeasuredFile
from fabrictune.validate.fit.verdicts import Judged, Verdict

MOST_OF_NIC = 1.02  # a rate that is more of the NIC's is no rate of this NIC
_MOST_NAMED = 3
_DIGEST_DIGITS = 12
_FIELD_OF: Mapping[str, tuple[str, str]] = {  # section and field of each parameter that a profile has
    "nvlink.latency": ("nvlink", "latency_ps"),
    "nvlink.collective": ("nvlink", "collective_bytes_per_s"),
    "network.latency": ("network", "latency_ps"),
    "network.rate": ("network", "achieved_fraction"),
    "network.message": ("network", "message_ps"),
}


@dataclass(frozen=True, kw_only=True)
class FittedValue:
    """A value of a profile."""

    key: str  # as `network.latency`
    field: str
    value: float
    source: str
    uncertainty_fraction: float


def base_values(base: HardwareProfile) -> dict[str, Known]:
    """Return the base's values of all parameters, in nanoseconds and nanoseconds a byte."""
    network, byte_ns = base.network, BITS_PER_BYTE * NS_PER_S
    times = {
        "nvlink.latency": (base.nvlink.latency_ps / PS_PER_NS, "nvlink.latency"),
        "nvlink.collective": (NS_PER_S / base.nvlink.collective_bytes_per_s, "nvlink.collective"),
        "network.latency": (network.latency_ps / PS_PER_NS, "network.latency"),
        "network.rate": (byte_ns / (network.nic_rate_bps * network.achieved_fraction), "network.achieved"),
        "network.message": (network.message_ps / PS_PER_NS, "network.message"),
    }
    known = {
        name: Known(value=value, uncertainty_fraction=base.uncertainty_of(key)) for name, (value, key) in times.items()
    }
    return {**known, "wire.latency": known["network.latency"], "wire.rate": known["network.rate"]}


def fitted_values(
    base: HardwareProfile, judged: Iterable[Judged], files: Mapping[str, Sequence[MeasuredFile]], *, spread: float
) -> list[FittedValue]:
    """Return the values of a profile that are determined; `files` are those of each parameter.

    The uncertainty is that of a time by the value: its interval, and the `spread` of times about the model.
    """
    values = []
    for one in judged:
        estimate = one.estimate
        if estimate.name not in _FIELD_OF or one.verdict == Verdict.NOT:
            continue
        section, field = _FIELD_OF[estimate.name]
        values.append(
            FittedValue(
                key=f"{section}.{key_of(field)}",
                field=field,
                value=_in_profile(estimate.name, estimate.value, base),
                source=_source(one, files[estimate.name]),
                uncertainty_fraction=round(math.hypot(estimate.relative_margin, NORMAL_90 * spread), 4),
            )
        )
    return values


def refuse_beyond_nic(base: HardwareProfile, byte_ns: float, where: str) -> None:
    """Raise InputError for a rate that the base's NIC does not have."""
    rate_bps = BITS_PER_BYTE * NS_PER_S / byte_ns
    if rate_bps > MOST_OF_NIC * base.network.nic_rate_bps:
        raise InputError(
            Mistake(
                where=where,
                found=f"network.rate {format_rate(rate_bps)} on each GPU's NIC, which has"
                f" {format_rate(base.network.nic_rate_bps)} by the profile {base.name}",
                allowed="at most the NIC's rate",
                next_step="name a profile with this cluster's NICs (--hardware), or the algorithm that was at work"
                " (--algorithm hierarchical)",
            )
        )


def with_values(base: HardwareProfile, values: Iterable[FittedValue], *, name: str) -> HardwareProfile:
    """Return the base with fitted values, their sources and uncertainties."""
    sources, uncertainties = dict(base.sources), dict(base.uncertainties)
    changes: dict[str, dict[str, Any]] = {"nvlink": {}, "network": {}}
    for value in values:
        changes[value.key.split(".")[0]][value.field] = _number(value)
        sources[value.key] = value.source
        uncertainties[value.key] = value.uncertainty_fraction
    return replace(
        base,
        name=name,
        description=f"{base.description}; links fitted to measurements",
        nvlink=replace(base.nvlink, **changes["nvlink"]),
        network=replace(base.network, **changes["network"]),
        sources=sources,
        uncertainties=uncertainties,
    )


def write_fitted(base: HardwareProfile, values: Sequence[FittedValue], path: Path) -> HardwareProfile:
    """Write the base with fitted values as a profile; raises InputError where it cannot be written. Returns it."""
    profile = with_values(base, values, name=_name(path))
    if base.name not in profile_names() or bundled_profile(base.name) != base:
        write_profile(profile, path)
        return profile
    tree: dict[str, Any] = {"name": profile.name, "description": profile.description, "base": base.name}
    for value in values:
        section, key = value.key.split(".")
        tree.setdefault(section, {})[key] = setting_value(value.field, _number(value))
    tree["sources"] = {value.key: value.source for value in values}
    tree["uncertainties"] = {value.key: value.uncertainty_fraction for value in values}
    with replaced_file(path) as half:
        half.write_text(yaml.safe_dump(tree, sort_keys=False, width=120, allow_unicode=True))
    return profile


def _in_profile(name: str, value: float, base: HardwareProfile) -> float:
    """Return a parameter in the unit of its field."""
    if name == "network.rate":
        return min(1.0, BITS_PER_BYTE * NS_PER_S / value / base.network.nic_rate_bps)
    return NS_PER_S / value if name == "nvlink.collective" else value * PS_PER_NS


def _number(value: FittedValue) -> float | int:
    return round(value.value, 4) if value.field.endswith("_fraction") else round(value.value)


def _source(one: Judged, files: Sequence[MeasuredFile]) -> str:
    estimate = one.estimate
    shown = [f"{file.path.name} ({file.digest[:_DIGEST_DIGITS]})" for file in files[:_MOST_NAMED]]
    more = [f"{len(files) - _MOST_NAMED} more files"] if len(files) > _MOST_NAMED else []
    sizes = f"{format_bytes(estimate.least_bytes)} to {format_bytes(estimate.most_bytes)}"
    held = f"; {' and '.join(estimate.aliases)} as in the base" if estimate.aliases else ""
    return f"fitted: {', '.join([*shown, *more])}, {estimate.num_points} points, {sizes}{held}; {one.verdict.value}"


def _name(path: Path) -> str:
    """Return the name of a profile in a file: letters, digits and _.- of its own."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", path.stem).lstrip(".-")[:100] or "fitted"
