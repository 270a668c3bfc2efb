"""Names of the array types that most modules use; the shape is in an array's own name (`rate_bps_F`)."""

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
