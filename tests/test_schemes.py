"""The codes of `posenc.schemes`, entry by entry against Python's integers and fractions."""

import inspect
import math
from fractions import Fraction
from functools import partial

import numpy as np
import oracle
import pytest

from posenc import schemes

KINDS = [np.dtype(code).type for code in "bBhHiIlLqQ"]
NO_INTEGERS = [True, np.False_, 2.0, np.float64(2), "2", b"2", None, [2], (2,), 2j, np.array([2]), np.array(2.0), object]

#: Each integer parameter: a call of it alone, and the least that it may be.
PARAMETERS = {
    "integer-n": (schemes.integer, 0),
    "unit_interval-n": (schemes.unit_interval, 0),
    "binary-n": (lambda n: schemes.binary(n, 4), 0),
    "binary-d": (lambda d: schemes.binary(1, d), 1),
}


def same(result, expected, kind, shape):
    """The very entries expected, in an array as every caller expects it."""
    assert type(result) is np.ndarray
    assert result.dtype == kind
    assert result.dtype.isnative
    assert result.shape == shape
    assert result.tolist() == expected
    assert result.flags.c_contiguous
    assert result.flags.writeable


def refused(error, message, call, *arguments):
    with pytest.raises(error) as info:
        call(*arguments)
    assert str(info.value) == message


def does_not_fit(shape, kind):
    nbytes = math.prod(shape) * np.dtype(kind).itemsize
    return f"an array of shape {shape} and dtype {kind} takes {nbytes} bytes, which cannot be allocated"


def bits(n, d):
    """Rows of ``binary`` as Python writes numbers."""
    return [[int(digit) for digit in format(i, f"0{d}b")] for i in range(n)]


# ---- integer ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [*range(10), 255, 256, 1000, 70000])
def test_integer(n):
    same(schemes.integer(n), list(range(1, n + 1)), np.int64, (n,))


# ---- unit_interval ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "expected"), [(0, []), (1, [0.0]), (2, [0.0, 1.0]), (3, [0.0, 0.5, 1.0]), (5, [0.0, 0.25, 0.5, 0.75, 1.0])]
)
def test_unit_interval(n, expected):
    same(schemes.unit_interval(n), expected, np.float64, (n,))


@pytest.mark.parametrize("n", [*range(2, 130), 1000, 1023, 4097])
def test_unit_interval_is_correctly_rounded(n):
    """Both doubles next to the entry are farther from i / (n - 1)."""
    result = schemes.unit_interval(n).tolist()
    assert len(result) == n
    for i, entry in enumerate(result):
        truth = Fraction(i, n - 1)
        error = abs(Fraction(entry) - truth)
        for neighbour in (math.nextafter(entry, -1.0), math.nextafter(entry, 2.0)):
            assert error < abs(Fraction(neighbour) - truth), (i, n, entry.hex())


@pytest.mark.parametrize("n", [70000, 99991])
def test_long_unit_interval(n):
    same(schemes.unit_interval(n), [i / (n - 1) for i in range(n)], np.float64, (n,))


@pytest.mark.parametrize("n", [1, 2, 3, 50, 1000])
def test_unit_interval_has_no_minus_zero_and_ends_in_one(n):
    result = schemes.unit_interval(n)
    assert math.copysign(1.0, result[0]) == 1.0
    assert result[-1] == (n > 1)
    assert (np.diff(result) > 0.0).all()


# ---- binary ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", range(1, 7))
def test_binary(d):
    for n in range(2**d + 1):
        same(schemes.binary(n, d), bits(n, d), np.uint8, (n, d))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 255, 256, 257, 1000])
@pytest.mark.parametrize("d", [10, 31, 32, 33, 62, 63, 64, 65, 127, 128, 1000])
def test_wide_binary(n, d):
    same(schemes.binary(n, d), bits(n, d), np.uint8, (n, d))


@pytest.mark.parametrize(("n", "d"), [(65536, 16), (65535, 16), (65537, 17), (70001, 20)])
def test_long_binary(n, d):
    same(schemes.binary(n, d), bits(n, d), np.uint8, (n, d))


def test_binary_of_no_rows_is_as_wide_as_it_may_be():
    assert schemes.binary(0, 2**62).shape == (0, 2**62)


@pytest.mark.parametrize("d", [1, 2, 5, 8, 31, 32, 61, 62])
def test_binary_needs_bits(d):
    for n in {2**d + 1, min(2 ** (d + 1), 2**63 - 1), 2**63 - 1}:
        refused(ValueError, f"n is {n} and d {d}; n must be at most 2**d, {2**d}", schemes.binary, n, d)


# ---- all of them -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", NO_INTEGERS, ids=repr)
@pytest.mark.parametrize("where", PARAMETERS)
def test_not_an_integer(where, value):
    message = f"{where.split('-')[1]} must be an integer, not {type(value).__name__} {value!r}"
    refused(TypeError, message, PARAMETERS[where][0], value)


@pytest.mark.parametrize("where", PARAMETERS)
def test_integer_out_of_range(where):
    (call, least), name = PARAMETERS[where], where.split("-")[1]
    for value in (least - 1, -5, -(2**70), np.int8(-1)):
        refused(ValueError, f"{name} is {value}; it must be at least {least}", call, value)
    for value in (2**63, 2**70, np.uint64(2**64 - 1)):
        refused(ValueError, f"{name} is {value}; it must be an int64", call, value)


@pytest.mark.parametrize("kind", [*KINDS, np.array], ids=lambda kind: kind.__name__)
def test_numpy_integers(kind):
    n = kind(6)
    same(schemes.integer(n), [1, 2, 3, 4, 5, 6], np.int64, (6,))
    same(schemes.unit_interval(n), [i / 5 for i in range(6)], np.float64, (6,))
    same(schemes.binary(n, n), bits(6, 6), np.uint8, (6, 6))
    assert schemes.binary(n, kind(100)).tolist() == bits(6, 100)


@pytest.mark.parametrize("n", [2**60, 2**62, 2**63 - 1])
def test_what_does_not_fit(n):
    refused(MemoryError, does_not_fit((n,), "int64"), schemes.integer, n)
    refused(MemoryError, does_not_fit((n,), "float64"), schemes.unit_interval, n)
    refused(MemoryError, does_not_fit((n, 63), "uint8"), schemes.binary, n, 63)
    refused(MemoryError, does_not_fit((2, n), "uint8"), schemes.binary, 2, n)  # and 2**n is not computed


@pytest.mark.parametrize("call", [schemes.integer, schemes.unit_interval, partial(schemes.binary, d=5)])
def test_results_are_not_kept(call):
    first = call(20)
    expected = first.tolist()
    first.fill(9)
    assert call(20).tolist() == expected


def test_public_names():
    functions = {
        name
        for name, thing in inspect.getmembers(schemes, inspect.isfunction)
        if thing.__module__ == schemes.__name__ and not name.startswith("_")
    }
    assert schemes.__all__ == sorted(functions)
    for name in functions:
        for section in ("Parameters", "Returns", "Raises", "Notes", "Examples"):
            assert f"\n{section}\n{'-' * len(section)}\n" in inspect.getdoc(getattr(schemes, name)), (name, section)


# ---- sine ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("octaves", [False, True])
@pytest.mark.parametrize("d", [1, 2, 5, 64])
def test_sine_is_correctly_rounded(d, octaves):
    gmpy2 = pytest.importorskip("gmpy2", reason="sines are compared with MPFR")
    got = schemes.sine(50, d, octaves)
    frequencies = [oracle.power(2 if octaves else 10000, -j, 1 if octaves else max(d - 1, 1)) for j in range(d)]
    with gmpy2.context(oracle.WIDE):
        want = [[oracle.rounded(gmpy2.sin(i * w), "float32") for w in frequencies] for i in range(50)]
    assert (got.dtype, got.shape) == (np.float32, (50, d))
    assert got.tolist() == want


def test_sine_without_rows():
    assert schemes.sine(0, 3).shape == (0, 3)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((-1, 2), ValueError, "n is -1; it must be at least 0"),
        ((2, 0), ValueError, "d is 0; it must be at least 1"),
        ((2, 201, True), ValueError, "d is 201; it must be at most 200"),
        ((2.0, 2), TypeError, "n must be an integer"),
        ((2, True), TypeError, "d must be an integer"),
        ((2, 2, 1), TypeError, "octaves must be a bool"),
        ((2**40, 2**20), MemoryError, "cannot be allocated"),
    ],
)
def test_sine_errors(arguments, error, message):
    with pytest.raises(error, match=message):
        schemes.sine(*arguments)
