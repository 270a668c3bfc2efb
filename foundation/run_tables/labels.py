"""Names of ports and NICs, from the table `fabric` of a record."""

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import Columns


def port_labels(fabric: Columns) -> NDArray[np.object_]:
    """Return `node:port` of every port, shape (P,)."""
    label_P = np.empty(len(fabric["port"]), object)
    pairs = zip(fabric["node_name"].tolist(), fabric["port_name"].tolist(), strict=True)
    label_P[fabric["port"]] = [f"{node}:{port}" for node, port in pairs]
    return label_P


def nic_labels(fabric: Columns) -> NDArray[np.object_]:
    """Return `host:port` of every NIC's first port, shape (C,); `NIC n` of a number that no port has."""
    nic, port = fabric["nic"], fabric["port"]
    label_C = np.array([f"NIC {number}" for number in range(int(nic.max(initial=-1)) + 1)], object)
    last_first = np.argsort(-port, kind="stable")
    rows = last_first[nic[last_first] >= 0]
    label_C[nic[rows]] = port_labels(fabric)[port[rows]]
    return label_C
