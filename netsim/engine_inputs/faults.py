"""Faults as an engine reads them: changes of ports in the order of time."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabrictune.netsim.faults.timeline import FaultInterval, changes
from fabrictune.topology.fabric import Fabric


def fault_arrays(fabric: Fabric, faults: tuple[FaultInterval, ...]) -> dict[str, NDArray[Any]]:
    """Return the arrays of faults."""
    rows = changes(fabric, faults)
    return {
        "fault_time": np.array([change.time_ps for change in rows], np.int64),
        "fault_effect": np.array([change.effect for change in rows], np.int64),
        "fault_port": np.array([change.port for change in rows], np.int64),
        "fault_value": np.array([change.value for change in rows], np.float64),
    }
