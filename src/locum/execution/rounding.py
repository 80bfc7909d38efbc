"""Round arrays of float64 to the values of a narrower floating-point type.

The results stay float64. Half precision is reached through float32, as torch converts a float64.

>>> round_array(np.array([0.1, 70000.0]), "float16").tolist()
[0.0999755859375, inf]
>>> round_array(np.array([1.0, 1.005]), "bfloat16").tolist()
[1.0, 1.0078125]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def round_array(array: NDArray[Any], dtype: str) -> NDArray[np.float64]:
    """Return the nearest values of the type named ``dtype``, as float64; ties go to even."""
    if dtype == "float64":
        return array.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        single = np.asarray(array, dtype=np.float32)
        if dtype == "float16":
            return single.astype(np.float16).astype(np.float64)
        if dtype == "bfloat16":
            bits = single.view(np.uint32)
            up = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
            rounded = ((bits + up) & np.uint32(0xFFFF0000)).view(np.float32)
            single = np.where(np.isnan(single), single, rounded)
        return single.astype(np.float64)
