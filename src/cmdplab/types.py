"""Names for the arrays that the package passes around; shapes are beside each use."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]  # true where an action may be taken
Places = npt.NDArray[np.int32]  # half the memory traffic of 64-bit indices
Ahead = npt.NDArray[np.uint32]  # the same; compiled code need not ask whether they are negative
