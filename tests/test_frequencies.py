"""The frequency rules: the real numbers they say, by MPFR, and entries made with them."""

import math
import pickle
from fractions import Fraction

import numpy as np
import oracle
import pytest

import posenc
from posenc import frequencies

gmpy2 = pytest.importorskip("gmpy2", reason="the rules are compared with MPFR")


def power(base, exponent):
    with gmpy2.context(oracle.WIDE):
        return gmpy2.mpfr(gmpy2.mpq(base)) ** gmpy2.mpq(exponent)


def times(*factors):
    with gmpy2.context(oracle.WIDE):
        product = gmpy2.mpfr(1)
        for factor in factors:
            product *= gmpy2.mpq(factor) if isinstance(factor, Fraction | float | int) else factor
        return product


def pi():
    with gmpy2.context(oracle.WIDE):
        return gmpy2.const_pi()


F = Fraction
THIRD = float(F(1, 3))
RULES = {  # name: the rule, and its numbers
    "paper": (frequencies.paper(10, 500.0), [power(500, F(-2 * k, 10)) for k in range(5)]),
    "shifted": (frequencies.shifted(10), [power(10000, F(-k, 4)) for k in range(5)]),
    "shifted(0)": (frequencies.shifted(11, 0, 0.3), [power(0.3, F(-k, 5)) for k in range(5)]),
    "shifted(0.5)": (frequencies.shifted(10, 0.5), [power(10000, F(-2 * k, 9)) for k in range(5)]),
    "shifted(-1)": (frequencies.shifted(10, -1), [power(10000, F(-k, 6)) for k in range(5)]),
    "shifted, one": (frequencies.shifted(2, 1), [times(1)]),
    "geometric": (frequencies.geometric(5, 0.1, 7.0), [times(0.1, power(F(7.0) / F(0.1), F(k, 4))) for k in range(5)]),
    "geometric, negative": (frequencies.geometric(3, -2.0, -0.5), [times(-2), times(-1), times(-0.5)]),
    "geometric, one": (frequencies.geometric(1, THIRD, 5.0), [times(THIRD)]),
    "timescales": (frequencies.timescales(4, 3.0, 2e4), [times(F(1, 3), power(F(20000, 3), F(-k, 3))) for k in range(4)]),
    "octaves": (frequencies.octaves(5), [times(2**k) for k in range(5)]),
    "octaves, pi": (frequencies.octaves(5, pi=True), [times(2**k, pi()) for k in range(5)]),
    "linear": (frequencies.linear(4, 0.1, 2.0), [times(F(0.1) + (F(2) - F(0.1)) * F(k, 3)) for k in range(4)]),
    "linear, through 0": (frequencies.linear(5, -1.0, 1.0), [times(F(k, 2)) for k in range(-2, 3)]),
    "given": (frequencies.given([0.1, -3.0, 0.0, 2.0**-200, 1e5]), [times(w) for w in (0.1, -3.0, 0.0, 2.0**-200, 1e5)]),
    "scaled": (frequencies.shifted(10).scaled(-0.1), [times(-0.1, power(10000, F(-k, 4))) for k in range(5)]),
    "scaled twice": (frequencies.paper(4).scaled(3.0).scaled(0.7), [times(3, 0.7, power(10000, F(-k, 2))) for k in range(2)]),
    "full turns": (
        frequencies.geometric(3, 1.0, 1e-4).scaled(2.0, pi=True),
        [times(2, pi(), power(1e-4, F(k, 2))) for k in range(3)],
    ),
    "linear, pi": (frequencies.linear(4, 1.0, 2.0).scaled(1.0, pi=True), [times(1 + F(k, 3), pi()) for k in range(4)]),
    "given, pi": (frequencies.given([0.5, 0.1]).scaled(1.0, pi=True), [times(0.5, pi()), times(0.1, pi())]),
    "none": (frequencies.shifted(1), []),
}


@pytest.fixture(params=RULES)
def rule(request):
    return RULES[request.param]


def test_values_and_wavelengths(rule):
    found, numbers = rule
    with gmpy2.context(oracle.WIDE):
        turns = [2 * gmpy2.const_pi() / w if w else gmpy2.inf() for w in numbers]
    assert len(found) == len(numbers)
    assert found.values.tolist() == [oracle.rounded(w, "float64") for w in numbers]
    assert found.wavelengths.tolist() == [
        oracle.rounded(turn, "float64") if math.isfinite(turn) else math.inf for turn in turns
    ]
    with pytest.raises(ValueError, match="read-only"):
        found.values[:1] = 0.0


def test_series_and_turns(rule):
    """What the kernels and exact arithmetic are given: 2^-158, and 2 units."""
    found, numbers = rule
    series = found.series()
    for k, w in enumerate(numbers):
        with gmpy2.context(oracle.WIDE):
            turns = w / (2 * gmpy2.const_pi())
        assert abs(oracle.difference(turns, series[:, k].tolist())) <= 2.0**-157 * abs(float(turns))
        for bits in (100, 300):
            with gmpy2.context(oracle.WIDE):
                assert abs(turns * gmpy2.exp2(bits) - found.turns(k, bits)) <= 2


POSITIONS = [*range(-20, 21), 10**6 + 1, 0.5, 0.25, 1.5, -0.75, 1 / 3, 2.0**-40, 1e-3, 12345.678]


@pytest.mark.parametrize("layout", ["interleaved", "concatenated"])
@pytest.mark.parametrize("amplitude", [1.0, 1.0 + 2.0**-24])
def test_entries(rule, layout, amplitude, dtype, kernel):
    found, numbers = rule
    if amplitude != 1.0 and "pi" in repr(found):
        amplitude = 0.7  # MPFR's sines of multiples of pi are not the exact ones, which ties would show
    settings = {"layout": layout, "amplitude": amplitude}
    encoding = posenc.Encoding(max(1, 2 * len(numbers)), frequencies=found, odd="zero", **settings)
    columns = range(2 * len(numbers))
    want = oracle.entries(POSITIONS, columns, encoding.dim, frequencies=numbers, odd="zero", dtype=dtype, **settings)
    for positions, rows in ((POSITIONS[:41], want[:41]), (POSITIONS, want)):
        got = encoding.encode(positions, dtype=dtype)[:, : len(columns)]
        number = oracle.INTEGERS[dtype]
        # MPFR's sine of a rounded multiple of pi is not 0 where the real one is
        exact = np.abs(rows.astype(float)) < 2.0**-300
        assert not got[exact].any()
        wrong = (np.ascontiguousarray(got).view(number) != rows.view(number)) & ~exact
        assert not wrong.any(), oracle.mismatches(got, rows, positions, columns, found)
    assert (encoding.table(41, start=-20, dtype=dtype) == encoding.encode(range(-20, 21), dtype=dtype)).all()


@pytest.mark.parametrize("layout", ["interleaved", "concatenated"])
def test_exact_cases_of_pi(layout, dtype, kernel):
    """Sines and cosines of rational parts of a turn that are 0, 1/2 and 1, their signs and, with ties, their roundings."""
    tie = {"float32": 2.0**-24, "float64": 0.0, "float16": 2.0**-11, "bfloat16": 2.0**-8}[dtype]
    for amplitude in (1.0, 1.0 + tie, 1.0 + 3 * tie, -1.0):
        encoding = posenc.Encoding(4, frequencies=frequencies.octaves(2, pi=True), layout=layout, amplitude=amplitude)
        for positions in (np.arange(-70, 70), np.arange(-70, 70) / 2, np.arange(-70, 70) / 4 + 2.0**20):
            rows = []
            for p in positions.tolist():
                cells = []
                for w in (1, 2):
                    quarters = F(p) * w * 2
                    if quarters.denominator > 1:
                        cells.append((None, None))
                    else:
                        cells.append(((0, 1, 0, -1)[int(quarters) % 4], (1, 0, -1, 0)[int(quarters) % 4]))
                (s0, c0), (s1, c1) = cells
                rows.append([s0, c0, s1, c1] if layout == "interleaved" else [s0, s1, c0, c1])
            got = encoding.encode(positions, dtype=dtype)
            for row, exact in zip(got, rows, strict=True):
                for value, number in zip(row.tolist(), exact, strict=True):
                    if number is not None:
                        assert value == np.array(number * amplitude).astype(dtype).item()
                        assert number != 0 or math.copysign(1.0, value) == 1.0


def test_halves_and_thirds_of_turns():
    """Rational turns that no double holds: pi / 3 times k."""
    found = frequencies.linear(4, 0.0, 1.0).scaled(1.0, pi=True)
    table = posenc.Encoding(8, frequencies=found, amplitude=1.0 + 2.0**-24).encode(np.arange(-12, 13))
    tie = np.float32(1.0 + 2.0**-24)
    for row, p in zip(table.tolist(), range(-12, 13), strict=True):
        for k in range(4):
            sixths = p * k % 6
            assert row[2 * k] == 0.0 or sixths % 3
            assert row[2 * k + 1] == float((1, 0.5, -0.5, -1, -0.5, 0.5)[sixths] * tie)


def test_a_value(rule):
    found, _ = rule
    again = eval(repr(found), {"frequencies": frequencies})
    assert (again, hash(again), repr(again)) == (found, hash(found), repr(found))
    copy = pickle.loads(pickle.dumps(found))
    assert (copy, repr(copy)) == (found, repr(found))
    assert copy.values.tobytes() == found.values.tobytes()
    assert found != frequencies.paper(44)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: frequencies.shifted(0), ValueError, "dim is 0"),
        (lambda: frequencies.shifted(-2), ValueError, "dim is -2"),
        (lambda: frequencies.shifted(4, 2), ValueError, "shift is 2 and dim 4"),
        (lambda: frequencies.shifted(2, 2), ValueError, "shift is 2 and dim 2"),
        (lambda: frequencies.shifted(4, np.nan), ValueError, "shift is nan"),
        (lambda: frequencies.shifted(4, base=0.0), ValueError, "base is 0.0"),
        (lambda: frequencies.shifted(4, base=1e300), ValueError, "smallest frequency"),
        (lambda: frequencies.geometric(-1, 1.0, 2.0), ValueError, "n is -1"),
        (lambda: frequencies.geometric(2, 0.0, 2.0), ValueError, r"first is 0\.0 and last 2\.0"),
        (lambda: frequencies.geometric(2, 1.0, -2.0), ValueError, "one sign"),
        (lambda: frequencies.geometric(2, 1.0, 1e-300), ValueError, "smallest frequency"),
        (lambda: frequencies.geometric(2, 1.0, np.inf), ValueError, "last is inf"),
        (lambda: frequencies.timescales(2, 0.0, 1.0), ValueError, r"shortest is 0\.0"),
        (lambda: frequencies.timescales(2, 1.0, -1.0), ValueError, r"longest is -1\.0"),
        (lambda: frequencies.timescales(2, 1.0, 1e300), ValueError, "smallest frequency"),
        (lambda: frequencies.octaves(1001), ValueError, "n is 1001"),
        (lambda: frequencies.octaves(2, pi=1), TypeError, "pi must be a bool"),
        (lambda: frequencies.linear(3, -1e-70, 1.0), ValueError, "smallest frequency"),
        (lambda: frequencies.given([[1.0]]), ValueError, r"array has shape \(1, 1\)"),
        (lambda: frequencies.given(1.0), ValueError, r"array has shape \(\)"),
        (lambda: frequencies.given([1.0, np.nan]), ValueError, r"array\[1\] is nan"),
        (lambda: frequencies.given([2**53 + 1]), ValueError, r"array\[0\] is 9007199254740993"),
        (lambda: frequencies.given([1e-100]), ValueError, r"array\[0\] is 1e-100"),
        (lambda: frequencies.given(["1"]), TypeError, "array has dtype"),
        (lambda: frequencies.given([True]), TypeError, "array has dtype bool"),
        (lambda: frequencies.given([1j]), TypeError, "array has dtype complex128"),
        (lambda: frequencies.paper(4).scaled(0.0), ValueError, "factor is 0.0"),
        (lambda: frequencies.paper(4).scaled("2"), TypeError, "factor must be a real number"),
        (lambda: frequencies.paper(4).scaled(1e-70), ValueError, "smallest frequency"),
        (lambda: frequencies.octaves(4).scaled(1e308), ValueError, "largest frequency"),
        (lambda: frequencies.octaves(2, pi=True).scaled(1.0, pi=True), ValueError, "multiples of pi already"),
    ],
)
def test_errors(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("base", [16.0, 0.0625, 256.0])
def test_powers_that_are_rational_parts_of_a_turn(base, dtype):
    """Their sines and cosines may be rational, for which no number of digits is enough; these once went on for ever."""
    powers = frequencies.paper(8, base=base).scaled(2.0, pi=True)
    same = frequencies.given([base ** (-k / 4) for k in range(4)]).scaled(2.0, pi=True)
    got, want = (posenc.Encoding(8, frequencies=rule).table(64, start=-20, dtype=dtype) for rule in (powers, same))
    assert got.tobytes() == want.tobytes()
    assert got[20].tolist() == [0.0, 1.0] * 4
