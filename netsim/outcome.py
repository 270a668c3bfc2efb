"""Outcome of a run: what its checks look at."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.records import Columns
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.deadlock import Deadlock
from fabrictune.topology.network import Network

MAX_NAMED = 10  # transfers or ports named in one finding


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What the checks of a run look at."""

    network: Network
    tables: Mapping[str, Columns]
    run: Mapping[str, Any]  # the record's head, with `outcome`, `end_ps` and `packets`
    config: PacketConfig
    deadlock: Deadlock | None
    rules: RuleSettings = CATALOG_SETTINGS

    @property
    def lost_P(self) -> IntArray:
        """Packets lost behind each port, those lost to faults left out."""
        lost_P = self.tables["ports"]["dropped_packets"].copy()
        if by_fault := self.tables.get("drops"):
            np.subtract.at(lost_P, by_fault["port"], by_fault["packets"])
        return lost_P

    @property
    def lost_lossless_P(self) -> IntArray:
        """Packets of lossless priorities that found no buffer behind each port."""
        config, lost_P = self.config, np.zeros(self.network.fabric.num_ports, np.int64)
        if queues := self.tables.get("queues"):
            lossless = [entry.priority for entry in config.queues.priorities if entry.lossless]
            is_lossless_X = np.isin(queues["priority"], lossless)
            np.add.at(lost_P, queues["port"][is_lossless_X], queues["input_dropped_packets"][is_lossless_X])
        elif config.pfc.enabled and not config.loss_fraction:
            lost_P = self.lost_P
        return lost_P

    @property
    def num_sent(self) -> int:
        """Data packets sent, repeated ones included."""
        return int(self.tables["transfers"]["packets_sent"].sum())

    @property
    def num_repeated(self) -> int:
        """Data packets sent again."""
        return int(self.tables["transfers"]["packets_retransmitted"].sum())
