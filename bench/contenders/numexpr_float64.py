"""numexpr: the careful recipe of NumPy on all cores, without an array of angles."""

import math

TITLE = "numexpr, float64"
NEEDS = ("numexpr",)


def table(length: int, dim: int, start: int = 0) -> object:
    """Two expressions, each written into its columns; ``dim`` is even."""
    import numexpr
    import numpy as np

    known = {
        "p": np.arange(start, start + length, dtype=np.float64)[:, None],
        "w": np.exp(np.arange(0, dim, 2) * (-math.log(10000.0) / dim)),
    }
    pe = np.empty((length, dim), np.float32)
    numexpr.evaluate("sin(p * w)", known, out=pe[:, 0::2], casting="same_kind")
    numexpr.evaluate("cos(p * w)", known, out=pe[:, 1::2], casting="same_kind")
    return pe
