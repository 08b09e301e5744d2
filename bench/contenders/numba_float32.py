"""numba: float32 loops, compiled with fastmath, rows in parallel."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

TITLE = "numba, float32, parallel"
NEEDS = ("numba",)


def table(length: int, dim: int, start: int = 0) -> object:
    """Compiled when it is called first; ``dim`` is even."""
    import numpy as np

    frequencies = np.exp(np.arange(0, dim, 2) * (-math.log(10000.0) / dim)).astype(np.float32)
    pe = np.empty((length, dim), np.float32)
    compiled()(start, frequencies, pe)
    return pe


@cache
def compiled() -> Callable[..., None]:
    """The loops, as machine code."""
    import numba
    import numpy as np

    def rows(start: int, frequencies: Any, pe: Any) -> None:
        for i in numba.prange(pe.shape[0]):
            position = np.float32(start + i)
            for k in range(frequencies.shape[0]):
                angle = position * frequencies[k]
                pe[i, 2 * k] = math.sin(angle)
                pe[i, 2 * k + 1] = math.cos(angle)

    function: Callable[..., None] = numba.njit(rows, parallel=True, fastmath=True)
    return function
