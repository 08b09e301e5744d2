"""Finds entries that lie nearest to a rounding boundary and prints them as lines for hard_cases.txt.

``python tests/search_hard_cases.py > tests/hard_cases.txt`` (a few minutes). Candidates come from posenc's own wider
results; what they round to, and how near they are, is MPFR's word.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import oracle
from conftest import build_driver

import posenc
from posenc._load import core

SETTINGS = [(512, 10000.0), (64, 500000.0), (128, 1e30), (256, 100.0)]
STARTS = [0, 10**6, 2**40, -(2**53)]
KEPT = 12  # of each dtype and setting


def float32_candidates(dim, base):
    """Entries whose float64 is a midpoint of two float32, where rounding twice can go wrong, or within 2 units of one."""
    rows, out = 1 << 14, np.empty((1 << 14, dim))
    for start in STARTS:
        for begin in range(start, start + (1 << 28) // dim, rows):
            posenc.table(rows, dim, start=begin, base=base, out=out)
            distance = (out.view(np.uint64) & np.uint64(0x1FFFFFFF)).astype(np.int64) - 0x10000000
            for row, column in np.argwhere(np.abs(distance) <= 2):
                yield abs(int(distance[row, column])), begin + int(row), int(column)


def float64_candidates(dim, base, driver):
    """Entries whose double-double's low part is nearly half a unit of the high one."""
    series = np.ascontiguousarray(posenc.frequencies.paper(dim, base).series())
    for start in STARTS:
        for position in range(start or 1, start + (1 << 25) // dim):
            sin_high, sin_low, cos_high, cos_low = driver.direct(series, position)
            for is_cosine, (high, low) in enumerate([(sin_high, sin_low), (cos_high, cos_low)]):
                distance = np.abs(np.abs(low) / (np.spacing(np.abs(high)) / 2) - 1)
                k = int(distance.argmin())
                if distance[k] < 2.0**-20:
                    yield float(distance[k]), position, 2 * k + is_cosine


def main():
    with tempfile.TemporaryDirectory() as folder:
        driver = build_driver(core.kernel(), Path(folder))
        print("# dtype dim base position column bits: entries nearest to a midpoint, found by search_hard_cases.py")
        for dim, base in SETTINGS:
            for dtype, candidates in (
                ("float32", float32_candidates(dim, base)),
                ("float64", float64_candidates(dim, base, driver)),
            ):
                for _, position, column in sorted(candidates)[:KEPT]:
                    entry = oracle.entries([position], [column], dim, base=base, dtype=dtype)
                    print(dtype, dim, base, position, column, hex(entry.view(oracle.INTEGERS[dtype])[0, 0]))
                print(f"{dtype} {dim} {base} done", file=sys.stderr)


if __name__ == "__main__":
    main()
