"""Fast, doubt, accurate: the bounds hold, doubts are as rare as they should be, and every path ends in the same bits."""

import math

import numpy as np
import oracle
import pytest
from conftest import DTYPES

import posenc
from posenc import _arrays, _rows
from posenc._load import core

EVERYTHING = math.inf  # a fast bound that sends every row to the accurate path


def series(dim, base):
    """The frequencies in turns, as the kernels take them."""
    return np.ascontiguousarray(posenc.frequencies.paper(dim, base).series())


def written(encoding, length, start, dtype, threads=1, **bounds):
    out = np.empty((length, encoding.dim), _arrays.checked_dtype(dtype, None))
    encoding._rows.write(out, start, threads, **bounds)
    return out


@pytest.mark.parametrize(
    ("dim", "base", "start"), [(512, 1e4, 0), (100, 1e30, -500), (64, 1e-3, 2**50), (301, 1.5, 2**62), (2, 1e4, 10**6)]
)
def test_fast_and_accurate_agree_on_whole_tables(dim, base, start, dtype, kernel):
    encoding = posenc.Encoding(dim, base=base)
    fast = written(encoding, 1200, start, dtype)
    accurate = written(encoding, 1200, start, dtype, fast_bound=EVERYTHING)
    assert fast.tobytes() == accurate.tobytes()
    short = np.concatenate([encoding.table(20, start=start + row, dtype=dtype) for row in range(0, 1200, 20)])
    assert fast.tobytes() == short.tobytes()


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("dim", "base", "start"), [(1024, 1e4, 0), (512, 5e5, 10**9), (256, 1e30, 2**53), (2048, 1e4, -(2**63))]
)
def test_fast_and_accurate_agree_exhaustively(dim, base, start, dtype, kernel):
    encoding = posenc.Encoding(dim, base=base)
    rows = 2**15
    for begin in range(start, start + 2**27 // dim, rows):
        fast = written(encoding, rows, begin, dtype)
        accurate = written(encoding, rows, begin, dtype, fast_bound=EVERYTHING)
        assert np.array_equal(fast.view(np.uint8), accurate.view(np.uint8)), f"{dim} {base} {begin} {dtype}"


@pytest.mark.parametrize(
    ("dim", "base", "start"),
    [(16, 1e4, 0), (16, 1e4, -64), (12, 1e30, 3), (8, 1e-3, 2**53 - 128), (10, 7.0, 2**62), (6, 1e4, -(2**63))],
)
@pytest.mark.parametrize("amplitude", [1.0, -0.3])
def test_the_truth_lies_within_the_bounds(dim, base, start, amplitude, driver):
    below, above, high, low, bound = driver.blocks(series(dim, base), amplitude, start, 4)
    largest_double = largest_double_double = 0.0
    for k in range(dim // 2):
        frequency = oracle.power(base, -2 * k, dim)
        for row in range(len(below)):
            for column, truth in zip((2 * k, 2 * k + 1), oracle.sin_cos(start + row, frequency, amplitude), strict=True):
                here = row, column
                middle, half = (below[here] + above[here]) / 2, (above[here] - below[here]) / 2
                double = abs(oracle.difference(truth, [middle])) / half
                double_double = abs(oracle.difference(truth, [high[here], low[here]])) / bound[here]
                assert double < 1.0, (start + row, column, below[here].hex(), above[here].hex())
                assert double_double < 1.0, (start + row, column, high[here].hex(), low[here].hex())
                largest_double = max(largest_double, double)
                largest_double_double = max(largest_double_double, double_double)
    print(f"largest error / bound: doubles {largest_double:.3f}, double-doubles {largest_double_double:.3f}")


@pytest.mark.parametrize("position", [1, -355, 2**31 + 1, 2**53 - 1, 2**62 + 12345, -(2**63)])
def test_the_accurate_path_is_within_its_bound(position, driver):
    dim, base = 24, 10000.0
    sin_high, sin_low, cos_high, cos_low = driver.direct(series(dim, base), position)
    for k in range(dim // 2):
        frequency = oracle.power(base, -2 * k, dim)
        sine, cosine = oracle.sin_cos(position, frequency)
        angle = abs(position) * base ** (-2 * k / dim)
        # the claim above direct() is four times sharper than the bound that the rounding relies on
        assert abs(oracle.difference(sine, [sin_high[k], sin_low[k]])) < 2.0**-92 * min(1.0, 1.001 * angle)
        assert abs(oracle.difference(cosine, [cos_high[k], cos_low[k]])) < 2.0**-92


def test_the_share_of_doubts_is_as_predicted(driver):
    """An entry is in doubt if a midpoint lies within its bounds: 2 * bound / ulp of float32, if values fall evenly."""
    below, above, *_ = driver.blocks(series(256, 1e4), 1.0, 10**6, 16)
    # the proven bound leaves too few doubts to count: 2^16 times wider, with the same values
    middle, half = (below + above) / 2, (above - below) / 2 * 2.0**16
    doubts = ((middle - half).astype(np.float32) != (middle + half).astype(np.float32)).sum()
    predicted = (2 * half / np.spacing(np.abs(middle).astype(np.float32)).astype(np.float64)).clip(max=1.0).sum()
    assert predicted > 500
    assert abs(doubts - predicted) < 6 * math.sqrt(predicted)
    assert (below.astype(np.float32) != above.astype(np.float32)).mean() < 2.0**-20


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("layout", ["interleaved", "concatenated"])
def test_exact_arithmetic_settles_what_the_accurate_path_cannot(dtype, layout, threads, kernel, monkeypatch):
    """With bounds wider than half a unit every entry is left to it; with narrower ones, some."""
    encoding = posenc.Encoding(7, layout=layout, amplitude=-0.7, odd="zero")
    length = 2 * core.CHUNK if dtype == "float16" else 40  # more than one work item is enough to see in one dtype
    want = encoding.table(length, start=-3, dtype=dtype)
    settled, exact = [], _rows.Rows.entry

    def counted(*arguments):
        settled.append(arguments)
        return exact(*arguments)

    monkeypatch.setattr(_rows.Rows, "entry", counted)
    some = {"float32": 2.0**-28, "float64": 2.0**-57, "float16": 2.0**-15, "bfloat16": 2.0**-12}[dtype]
    for accurate_bound in (0.5, some):
        settled.clear()
        got = written(encoding, length, -3, dtype, threads, fast_bound=EVERYTHING, accurate_bound=accurate_bound)
        assert got.tobytes() == want.tobytes()
        assert 0 < len(settled) <= (length - 1) * 6
        assert len(settled) == (length - 1) * 6 or accurate_bound == some


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_error_while_settling_is_raised(error, threads, monkeypatch):
    def failing(*_):
        raise error

    monkeypatch.setattr(_rows.Rows, "entry", failing)
    with pytest.raises(error):
        written(posenc.Encoding(8), 2 * core.CHUNK, 5, "float32", threads, fast_bound=EVERYTHING, accurate_bound=0.5)


def continued_fraction_numerators(value, limit):
    """Numerators of the convergents of a fraction: the integers whose multiples of 1 / value come nearest to integers."""
    before, now, numerators = 0, 1, []
    while now <= limit:
        whole = value.numerator // value.denominator
        before, now = now, whole * now + before
        numerators.append(now)
        value = 1 / (value - whole)
    return [n for n in numerators if n <= limit]


def test_near_zero():
    """Sines of the numerators of pi's convergents and cosines of pi / 2's: down to 2^-62, past the accurate path."""
    pi = oracle.as_fraction(oracle.two_pi()) / 2
    numerators = continued_fraction_numerators(pi, 2**63 - 1) + continued_fraction_numerators(pi / 2, 2**63 - 1)
    assert max(numerators) > 2**61
    smallest = 1.0
    for position in numerators:
        for dtype in DTYPES:
            for sign in (1, -1):
                got = posenc.table(1, 2, start=sign * position, dtype=dtype)
                want = oracle.entries([sign * position], [0, 1], 2, dtype=dtype)
                assert got.tobytes() == want.tobytes(), oracle.mismatches(got, want, [sign * position], [0, 1], dtype)
                smallest = min(smallest, *map(abs, got[0].tolist()))
    assert smallest < 2.0**-60
