"""Routing epochs as an engine reads them: which path each flow takes from when on.

The table of paths begins with those of the first epoch. A later epoch stores only the flows whose paths differ from
these, equal paths once, and an epoch with the paths of an earlier one (a link that flaps) nothing at all. A flow
without a path goes to where its network begins and is dropped there.

Shapes: Q queue pairs, F = 2 Q flows (a queue pair's data, then its acknowledgements), H entries of a path, X flows of
all sets that differ from the first epoch; those of the arrays are in netsim/engine/state/arrays.inl.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import Mistake, RouteError
from fabrictune.netsim.engine_inputs.limits import NO_ROUTE, PATH_END
from fabrictune.topology.network import NO_PORT, Network, RoutingEpoch


def distinct_epochs(network: Network) -> list[RoutingEpoch]:
    """Return an epoch for each set of paths, in the order of their numbers: the first epoch's is 0."""
    distinct: dict[int, RoutingEpoch] = {}
    for epoch in network.epochs:
        distinct.setdefault(id(epoch.port_QDH), epoch)
    return list(distinct.values())


def with_epochs(network: Network, path_QDH: IntArray) -> tuple[NDArray[np.uint32], dict[str, NDArray[Any]]]:
    """Return the table of paths, flat, and the arrays of epochs; `path_QDH` are the padded paths of the first epoch.

    Raises RouteError where the table is larger than an engine can index.
    """
    first_FH = _entries(path_QDH)
    stride = first_FH.shape[1]
    sets = distinct_epochs(network)
    number = {id(epoch.port_QDH): row for row, epoch in enumerate(sets)}
    none = np.zeros(0, np.int64), np.zeros((0, stride), np.uint32)
    differing = [none, *(_differing(epoch.port_QDH, first_FH) for epoch in sets[1:])]
    flow_X, path_XH = (np.concatenate(parts) for parts in zip(*differing, strict=True))
    distinct, which_X = np.unique(path_XH, axis=0, return_inverse=True)
    num_entries = (len(first_FH) + len(distinct)) * stride
    if num_entries >= NO_ROUTE:
        raise RouteError(Mistake(where="network", found=f"{num_entries} entries of paths", allowed="fewer"))
    columns = {
        "epoch_time": np.array([epoch.start_ps for epoch in network.epochs[1:]], np.int64),
        "epoch_set": np.array([number[id(epoch.port_QDH)] for epoch in network.epochs[1:]], np.int64),
        "path_set_offset": np.cumsum([0, *(len(flow_of_set) for flow_of_set, _ in differing)]).astype(np.uint32),
        "path_set_flow": flow_X.astype(np.uint32),
        "path_set_position": ((len(first_FH) + which_X.ravel()) * stride).astype(np.uint32),
    }
    return np.concatenate([first_FH.ravel(), distinct.ravel()]), columns


def _differing(port_QDH: NDArray[np.int32], first_FH: NDArray[np.uint32]) -> tuple[IntArray, NDArray[np.uint32]]:
    """Return the flows whose paths differ from the first epoch's, and these paths."""
    later_FH = _without_route(_entries(_padded(port_QDH, first_FH.shape[1])), first_FH)
    flow_X = np.nonzero((later_FH != first_FH).any(axis=1))[0]
    return flow_X, later_FH[flow_X]


def _padded(port_QDH: NDArray[np.int32], stride: int) -> IntArray:
    num_pairs, num_directions, num_hops = port_QDH.shape
    padded = np.full((num_pairs, num_directions, stride), NO_PORT, np.int64)
    padded[:, :, :num_hops] = port_QDH
    return padded


def _entries(path_QDH: IntArray) -> NDArray[np.uint32]:
    """Return paths as rows of an engine's table, one a flow."""
    ends = np.where(path_QDH == NO_PORT, PATH_END, path_QDH)
    return ends.astype(np.uint32).reshape(-1, path_QDH.shape[2])


def _without_route(later_FH: NDArray[np.uint32], first_FH: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the paths with those that lead nowhere cut off behind the NIC's port."""
    is_cut_off_F = later_FH[:, 0] == PATH_END
    later_FH[is_cut_off_F, 0] = first_FH[is_cut_off_F, 0]
    later_FH[is_cut_off_F, 1] = NO_ROUTE
    return later_FH
