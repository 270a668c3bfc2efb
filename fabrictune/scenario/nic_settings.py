"""NIC configuration lines of a scenario's congestion control; nothing here sets a NIC."""

import dataclasses

from fabrictune.cc.nic_parameters import NicFiles, nic_lines
from fabrictune.foundation.units import PS_PER_NS
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.scenario.schema import Scenario

NIC_LAW = "dcqcn_firmware"  # the law that a NIC has built in


def nic_settings(scenario: Scenario, files: NicFiles) -> tuple[str, ...]:
    """Return the lines for a scenario's law, and its receivers' CNPs; none for a law that no NIC has built in."""
    if scenario.law.name != NIC_LAW:
        return ()
    parameters, config = dataclasses.asdict(scenario.law.spec.parameters), scenario.engine.spec
    interval_ps = config.cnp.interval_ns * PS_PER_NS if isinstance(config, PacketConfig) else None
    return nic_lines(parameters, files, cnp_interval_ps=interval_ps)
