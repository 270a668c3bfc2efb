"""Names of the array types that most modules use; the shape is in an array's own name (`rate_bps_F`)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Columns = Mapping[str, NDArray[Any]]  # a table: columns of one length, by name
