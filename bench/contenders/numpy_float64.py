"""NumPy with frequencies, angles, sines and cosines in float64, stored in float32: the careful recipe."""

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

TITLE = "NumPy, float64"
NEEDS = ("numpy",)


def table(length: int, dim: int, start: int = 0) -> object:
    """Of positions in a row; ``dim`` is even."""
    return encode(np.arange(start, start + length), dim)


def encode(positions: NDArray[Any], dim: int, dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """Of any positions, stored as ``dtype``."""
    frequencies = np.exp(np.arange(0, dim, 2) * (-math.log(10000.0) / dim))
    angles = positions[:, None] * frequencies
    pe = np.empty((len(positions), dim), dtype)
    pe[:, 0::2] = np.sin(angles)
    pe[:, 1::2] = np.cos(angles)
    return pe
