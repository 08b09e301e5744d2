"""Plain Python: `math.sin` and `math.cos` an entry at a time, kept in float32."""

import math
from array import array

TITLE = "Python loop"
ROWS = 128


def table(length: int, dim: int, start: int = 0) -> object:
    """Rows of `array.array`; ``dim`` is even."""
    frequencies = [10000.0 ** (-k / dim) for k in range(0, dim, 2)]
    rows = []
    for position in range(start, start + length):
        row = array("f")
        for frequency in frequencies:
            angle = position * frequency
            row.append(math.sin(angle))
            row.append(math.cos(angle))
        rows.append(row)
    return rows
