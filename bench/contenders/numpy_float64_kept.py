"""The careful recipe of NumPy, its table left in float64: held against posenc's float64 table."""

import numpy as np

from . import numpy_float64

TITLE = "NumPy, a float64 table"
NEEDS = ("numpy",)


def table(length: int, dim: int, start: int = 0) -> object:
    """Of positions in a row; ``dim`` is even."""
    return numpy_float64.encode(np.arange(start, start + length), dim, np.float64)
