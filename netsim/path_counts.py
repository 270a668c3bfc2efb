"""Packets by path of a run whose packets carry entropy values: what receivers that capture all their packets count.

A queue pair's value decides its packets' path at every switch, so values with one path are counted together.

Left out: paths that routing takes later, round a fault; values are counted on those of the first epoch.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.netsim import _engine
from fabrictune.netsim.capture import PacketType
from fabrictune.netsim.config.path_choice import PathChoiceConfig
from fabrictune.netsim.engine_inputs.limits import PATH_END
from fabrictune.netsim.engine_inputs.path_choice import path_choice, path_choice_settings
from fabrictune.netsim.reference.run import RandomStream
from fabrictune.topology.network import Network

TABLE = "path_counts"


def with_path_counts(
    record: RunRecord, network: Network, simulation: _engine.Simulation, config: PathChoiceConfig, seed: int
) -> RunRecord:
    """Return the record with a row for each path of each queue pair that was captured.

    A capture that had no room for all packets has none: what had not arrived by then would look lost.
    """
    rows = simulation.capture_columns()
    if len(rows["qp"]) < simulation.num_captured:
        return record
    is_data_R = rows["type"] == PacketType.DATA
    counts = dict[tuple[int, int], int]()
    both_R2 = np.stack([rows["qp"][is_data_R], rows["entropy"][is_data_R]], axis=1)
    for (qp, value), count in zip(*np.unique(both_R2, axis=0, return_counts=True), strict=True):
        counts[int(qp), int(value)] = int(count)
    paths = _Paths(network, config, seed)
    found = [row for qp in sorted({qp for qp, _ in counts}) for row in _rows(network, paths, qp, counts, config)]
    return replace(record, tables={**record.tables, TABLE: to_columns(TABLE, found)})


def _rows(
    network: Network, paths: "_Paths", qp: int, counts: dict[tuple[int, int], int], config: PathChoiceConfig
) -> Iterator[dict[str, Any]]:
    received: dict[tuple[int, ...], int] = defaultdict(int)
    num_values: dict[tuple[int, ...], int] = defaultdict(int)
    for value in range(config.entropy_values):
        ports = paths.ports(qp, value)
        received[ports] += counts.get((qp, value), 0)
        num_values[ports] += 1
    for ports, count in received.items():
        yield {
            "qp": qp,
            "links": "; ".join(map(network.fabric.link_label, ports)),
            "share_fraction": num_values[ports] / config.entropy_values,
            "received_packets": count,
        }


class _Paths:
    """Follows what switches choose for a queue pair's data with a value, as the engine's path chooser does."""

    def __init__(self, network: Network, config: PathChoiceConfig, seed: int) -> None:
        self._network, self._tables = network, path_choice(network, config)
        self._key = path_choice_settings(config, seed)["path_choice_key"]
        switches = self._tables["next_hop_switch"]
        self._num_switches = 1 + int(switches[switches != PATH_END].max(initial=0))

    def ports(self, qp: int, value: int) -> tuple[int, ...]:
        """Return the ports that such packets leave through."""
        tables, fabric = self._tables, self._network.fabric
        ports = [int(self._network.epochs[0].port_QDH[qp, 0, 0])]
        while (switch := int(tables["next_hop_switch"][ports[-1]])) != PATH_END:
            hops = int(tables["next_hop_set"][tables["next_hop_row"][2 * qp] + switch])
            choices = tables["next_hop_port"][tables["next_hop_offset"][hops] : tables["next_hop_offset"][hops + 1]]
            if not len(choices):
                exits = [int(port) for port in tables["next_hop_exit"][4 * qp : 4 * qp + 2] if port != PATH_END]
                node = fabric.port_node_P[fabric.port_peer_P[ports[-1]]]
                return (*ports, next(port for port in exits if fabric.port_node_P[port] == node))
            visit = (2 * qp * self._num_switches + switch) << 16 | value
            chosen = RandomStream(self._key, visit).next_below(len(choices)) if len(choices) > 1 else 0
            ports.append(int(choices[chosen]))
        return tuple(ports)
