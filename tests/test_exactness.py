"""Every entry is the correctly rounded value of the formula: against MPFR, by bits."""

import itertools
import math
import random

import numpy as np
import oracle
import pytest
from conftest import DTYPES

import posenc
from posenc import _arrays

INT64_MAX = 2**63 - 1


def check(dim, start, length, *, rows=None, columns=None, dtype, **encoding):
    """Compare a table, or some rows and columns of it, with the oracle; returns how many entries were compared."""
    table = posenc.table(length, dim, start=start, dtype=dtype, **encoding)
    rows = list(range(length)) if rows is None else rows
    columns = list(range(dim)) if columns is None else columns
    positions = [start + row for row in rows]
    got = np.ascontiguousarray(table[np.ix_(rows, columns)])
    want = oracle.entries(positions, columns, dim, dtype=dtype, **encoding)
    wrong = oracle.mismatches(got, want, positions, columns, f"dim={dim} {dtype} {encoding}")
    assert not wrong, "\n".join(wrong)
    return got.size


@pytest.mark.parametrize("dim", [1, 2, 3, 4, 7, 16, 33])
def test_small_tables_whole(dim, dtype, kernel):
    check(dim, 0, 131, dtype=dtype)
    check(dim, -70, 131, dtype=dtype, layout="concatenated")


@pytest.mark.parametrize("layout", ["interleaved", "concatenated"])
@pytest.mark.parametrize("cos_first", [False, True])
@pytest.mark.parametrize("odd", ["truncate", "zero"])
def test_every_layout(layout, cos_first, odd, dtype):
    for dim, length in itertools.product([1, 2, 5, 8], [3, 40]):
        check(dim, 7, length, dtype=dtype, layout=layout, cos_first=cos_first, odd=odd)


@pytest.mark.parametrize("seed", range(40))
def test_random_tables(seed):
    """Every seed compares at least 5,000 entries, so that an ordinary run compares 200,000 and more."""
    rng = random.Random(seed)
    compared = 0
    while compared < 5000:
        dim = rng.choice([1, 2, 3, 5, rng.randint(6, 200), rng.randint(200, 1500), 2 * rng.randint(100, 4000)])
        base = rng.choice([10000.0, 1e-3, 0.5, 1.0, 2.0, 500000.0, 1e30, 10.0 ** rng.uniform(-3, 30)])
        length = rng.choice([1, 2, rng.randint(3, 23), rng.randint(24, 100), rng.randint(100, 1200)])
        edge = 53 if base < 1 else 63
        exponent = rng.randint(1, edge)
        start = rng.choice(
            [0, -length // 2, rng.randint(-(2**exponent), 2**exponent), 2**53 - length // 2, -(2**63), INT64_MAX - length + 1]
        )
        start = max(-(2**edge), min(start, 2**edge - 1 - length))
        encoding = {
            "base": base,
            "layout": rng.choice(["interleaved", "concatenated"]),
            "cos_first": rng.random() < 0.5,
            "odd": rng.choice(["truncate", "zero"]),
            "amplitude": rng.choice([1.0, -1.0, 0.1, math.sqrt(2.0 / dim), 1e-30, rng.uniform(-10, 10)]),
            "dtype": rng.choice(DTYPES),
        }
        rows = sorted(rng.sample(range(length), min(length, 40)))
        columns = sorted(rng.sample(range(dim), min(dim, 40)))
        compared += check(dim, start, length, rows=rows, columns=columns, **encoding)


@pytest.mark.parametrize(
    ("start", "base"), [(-(2**63), 1e4), (INT64_MAX - 66, 1e4), (2**53 - 33, 1e-3), (2**52 - 33, 1e30), (2**51 - 33, 7.0)]
)
def test_ends_of_the_domain(start, base, dtype, kernel):
    check(12, start, 67, dtype=dtype, base=base)


@pytest.mark.parametrize("amplitude", [1e-290, -3e-308, 5e-324, 1.7e308, -(2.0**501), 2.0**-501, 1.0 + 2.0**-52])
def test_extreme_amplitudes(amplitude):
    for dtype in DTYPES:
        if abs(amplitude) < _arrays.FORMATS[np.dtype(dtype)].overflow:
            check(6, -3, 30, dtype=dtype, amplitude=amplitude, layout="concatenated")


@pytest.mark.parametrize(
    "amplitude", [1.0 + 2.0**-24, -(1.0 + 2.0**-24), 1.0 + 3 * 2.0**-24, 2.0**-149, 2.0**-150, 3 * 2.0**-150, 2.0**127]
)
def test_exact_cases_are_ties_to_even(amplitude):
    """At position 0 the cosine is the amplitude itself, which can lie half-way between two float32."""
    row = posenc.table(1, 4, amplitude=amplitude)
    with np.errstate(all="ignore"):
        want = np.array([[0.0, amplitude, 0.0, amplitude]]).astype(np.float32)
    assert row.tobytes() == want.tobytes()
    assert posenc.table(64, 4, start=-31, amplitude=amplitude)[31].tobytes() == want[0].tobytes()


@pytest.mark.parametrize(
    ("dtype", "amplitude", "bits"),
    [
        ("float16", 1.0 + 2.0**-11, 0x3C00),
        ("float16", 1.0 + 3 * 2.0**-11, 0x3C02),
        ("float16", 1.0 + 2.0**-11 + 2.0**-50, 0x3C01),
        ("float16", -(2.0**-25), 0x8000),
        ("float16", 3 * 2.0**-25, 0x0002),
        ("float16", 65519.0, 0x7BFF),
        ("bfloat16", 1.0 + 2.0**-8, 0x3F80),
        ("bfloat16", 1.0 + 3 * 2.0**-8, 0x3F82),
        ("bfloat16", 1.0 + 2.0**-8 + 2.0**-50, 0x3F81),
        ("bfloat16", -(2.0**-134), 0x8000),
        ("bfloat16", 3 * 2.0**-134, 0x0002),
    ],
)
def test_16_bit_ties(dtype, amplitude, bits):
    if dtype not in DTYPES:
        pytest.skip("bfloat16 needs ml_dtypes, which is not installed")
    assert posenc.table(1, 2, amplitude=amplitude, dtype=dtype).view(np.uint16).tolist() == [[0, bits]]


@pytest.mark.parametrize("by_way_of", ["float32", "float64"])
def test_no_double_rounding_to_16_bits(dtype, by_way_of):
    """Where rounding to a wider format first and then to 16 bits gives something else, MPFR says who is right."""
    if dtype not in ("float16", "bfloat16"):
        pytest.skip("a dtype of 16 bits only")
    table = posenc.table(1 << 16, 64, dtype=dtype)
    twice = posenc.table(1 << 16, 64, dtype=by_way_of).astype(np.float32).astype(dtype)
    traps = np.argwhere(table.view(np.uint16) != twice.view(np.uint16))
    if by_way_of == "float32":
        assert len(traps) > 10
    for row, column in traps[:500].tolist():
        want = oracle.entries([row], [column], 64, dtype=dtype)
        assert table[row, column].tobytes() == want.tobytes(), (row, column)


@pytest.mark.parametrize("amplitude", [1e-36, 3e-39, -(2.0**-130), 1e-20])
@pytest.mark.parametrize("base", [1e4, 1e30, 1e50])
def test_subnormal_entries(amplitude, base, dtype):
    for length in (4, 100):
        check(8, -2, length, dtype=dtype, amplitude=amplitude, base=base)


def test_underflow_keeps_the_sign():
    table = posenc.table(3, 4, start=-1, amplitude=1e-300, dtype="float32")
    assert [bool(np.signbit(x)) for x in table[:, 0]] == [True, False, False]
    assert not table.any()


@pytest.mark.parametrize(
    ("encoding", "dim", "position", "row"),
    [
        ({}, 4, 1, [0.8414709848078965, 0.54030230586813977, 0.0099998333341666645, 0.99995000041666526]),
        (
            {},
            5,
            1,
            [0.8414709848078965, 0.54030230586813977, 0.025116222909773781, 0.99968453791520984, 0.00063095730261542027],
        ),
        (
            {"layout": "concatenated"},
            5,
            3,
            [0.14112000805986721, 0.075285292998888961, 0.001892870903091888, -0.98999249660044542, 0.99716203530723702],
        ),
    ],
)
def test_witnesses(encoding, dim, position, row):
    table = posenc.table(1, dim, start=position, dtype="float64", **encoding)
    assert table.tobytes() == np.array([row]).tobytes()


@pytest.mark.parametrize("start", [0, 1000, 10**6])
def test_against_the_plain_loop(start):
    """float32 equals the loop in doubles, rounded, unless MPFR shows the loop wrong; float64 is within the loop's own error."""
    dim, length = 32, 200
    single = posenc.table(length, dim, start=start)
    double = posenc.table(length, dim, start=start, dtype="float64")
    for row, column in itertools.product(range(length), range(dim)):
        angle = (start + row) / 10000.0 ** (2 * (column // 2) / dim)
        loop = math.cos(angle) if column % 2 else math.sin(angle)
        assert abs(double[row, column] - loop) <= 4 * (abs(angle) + 1) * 2.0**-52
        if single[row, column] != np.float32(loop):
            truth = oracle.entries([start + row], [column], dim, dtype="float32")[0, 0]
            assert single[row, column].tobytes() == truth.tobytes() != np.float32(loop).tobytes()


@pytest.mark.parametrize("base", [10000.0, 1e-3, 1e30, 1.0, 16.0, 2.0**-40])
def test_frequencies_and_wavelengths_are_nearest(base):
    for dim in (1, 2, 7, 64):
        encoding = posenc.Encoding(dim, base=base)
        for k, (w, wavelength) in enumerate(zip(encoding.frequencies, encoding.wavelengths, strict=True)):
            assert w == oracle.rounded(oracle.power(base, -2 * k, dim), "float64")
            assert wavelength == oracle.rounded(oracle.power(base, 2 * k, dim) * oracle.two_pi(), "float64")
