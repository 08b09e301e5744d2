"""Entries nearest to a rounding boundary, found by search_hard_cases.py, and every one that was ever wrong."""

from pathlib import Path

import numpy as np
import oracle
import pytest

import posenc

LINES = [
    line.split() for line in Path(__file__).with_name("hard_cases.txt").read_text().splitlines() if line[:1] not in ("", "#")
]


def cases(dtype):
    for name, dim, base, position, column, bits in LINES:
        if name == dtype:
            yield int(dim), float(base), int(position), int(column), int(bits, 16)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_recorded_bits_are_mpfrs(dtype):
    for dim, base, position, column, bits in cases(dtype):
        entry = oracle.entries([position], [column], dim, base=base, dtype=dtype)
        assert int(entry.view(oracle.INTEGERS[dtype])[0, 0]) == bits, (dim, base, position, column)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_hard_cases(dtype, kernel):
    """Alone, by the direct path, and within a table, by rotation from either side of the centre."""
    for dim, base, position, column, bits in cases(dtype):
        for start, length in ((position, 1), (position, 40), (position - 31, 40)):
            table = posenc.table(length, dim, start=start, base=base, dtype=dtype)
            got = table[position - start, column]
            assert int(got.view(oracle.INTEGERS[dtype])) == bits, (dim, base, position, column, start, float(got).hex())


def test_float32_cases_are_double_rounding_traps():
    """Rounding to float64 first and to float32 then gets some of them wrong: the file would not be hard otherwise."""
    wrong = 0
    for dim, base, position, column, bits in cases("float32"):
        entry = oracle.entries([position], [column], dim, base=base, dtype="float64")
        wrong += int(entry.astype(np.float32).view(np.uint32)[0, 0]) != bits
    assert wrong >= 3
