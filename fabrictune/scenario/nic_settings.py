"""NIC configuration lines of a scenario's congestion control; nothing here sets a NIC."""

import dataclasses
from dataclasses import dataclass

from fabrictune.cc import dcqcn_firmware
from fabrictune.cc.nic_parameters import NEEDS, NicFiles, nic_lines, nic_numbers
from fabrictune.foundation.units import PS_PER_NS
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.transport import CnpConfig
from fabrictune.scenario.schema import Scenario

NIC_LAW = "dcqcn_firmware"  # the law that a NIC has built in
FIRMWARE_NUMBERS = nic_numbers(
    {parameter.name: parameter.default for parameter in dcqcn_firmware.PARAMETERS},
    cnp_interval_ps=CnpConfig().interval_ns * PS_PER_NS,
)


@dataclass(frozen=True, kw_only=True)
class NicChanges:
    """Lines for a NIC, what they need, and what they are changes from."""

    lines: tuple[str, ...]
    needs: str
    since: str


def nic_settings(scenario: Scenario, files: NicFiles) -> tuple[str, ...]:
    """Return the lines for a scenario's law, and its receivers' CNPs; none for a law that no NIC has built in."""
    return nic_lines(_numbers(scenario) or {}, files)


def nic_changes(before: Scenario, after: Scenario, files: NicFiles) -> NicChanges | None:
    """Return the lines for what `after` has otherwise than `before`; None for a law that no NIC has built in.

    Where `before` has another law, the firmware's defaults stand for it.
    """
    numbers = _numbers(after)
    if numbers is None:
        return None
    own = _numbers(before)
    since = f"scenario {before.name}" if own is not None else "the firmware's defaults"
    known = own if own is not None else FIRMWARE_NUMBERS
    changed = {name: number for name, number in numbers.items() if number != known.get(name)}
    return NicChanges(lines=nic_lines(changed, files), needs=NEEDS[files] if changed else "", since=since)


def _numbers(scenario: Scenario) -> dict[str, int] | None:
    """Return the NIC's numbers, None for a law that no NIC has built in."""
    if scenario.law.name != NIC_LAW:
        return None
    parameters, config = dataclasses.asdict(scenario.law.spec.parameters), scenario.engine.spec
    interval_ps = config.cnp.interval_ns * PS_PER_NS if isinstance(config, PacketConfig) else None
    return nic_numbers(parameters, cnp_interval_ps=interval_ps)
