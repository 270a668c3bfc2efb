"""Notes of what an engine's settings assume where the answer rests on it."""

from typing import Any

import numpy as np

from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.topology.network import NO_PORT, Network

ACKNOWLEDGEMENTS = "acknowledgements have"  # how a note of their traffic class begins


def traffic_class_notes(config: Any, network: Network) -> tuple[str, ...]:
    """Return which class acknowledgements have, where ports of the first paths carry both them and data.

    A list of priorities says it, and where no port carries both it changes nothing.
    """
    if not isinstance(config, PacketConfig) or config.queues.priorities:
        return ()
    path_QDH = network.epochs[0].port_QDH
    num_shared = len(np.intersect1d(path_QDH[:, 0], path_QDH[:, 1])) - int((path_QDH == NO_PORT).any())
    if num_shared <= 0:
        return ()
    effect = {
        "control": "a class of their own, sent before data and never paused: times until they arrive are at their "
        "shortest (engine.queues.acknowledgement_class: data has them wait with data)",
        "data": "the class of data: they wait in its queues, and pauses stop them",
    }[config.queues.acknowledgement_class]
    return (f"{ACKNOWLEDGEMENTS} {effect}; ports that carry both: {num_shared}",)
