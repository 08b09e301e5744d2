"""NumPy with everything in float32: the fast recipe."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

TITLE = "NumPy, float32"
NEEDS = ("numpy",)


def table(length: int, dim: int, start: int = 0) -> object:
    """Of positions in a row; ``dim`` is even."""
    return encode(np.arange(start, start + length), dim)


def encode(positions: NDArray[Any], dim: int) -> NDArray[np.float32]:
    """Of any positions."""
    step = np.float32(-math.log(10000.0) / dim)
    frequencies = np.exp(np.arange(0, dim, 2, dtype=np.float32) * step)
    angles = positions.astype(np.float32)[:, None] * frequencies
    pe = np.empty((len(positions), dim), np.float32)
    pe[:, 0::2] = np.sin(angles)
    pe[:, 1::2] = np.cos(angles)
    return pe
