"""How far entries are from the formula: sines and cosines by MPFR (gmpy2) or mpmath, and from there on integers.

The judge is foreign to what it judges, and short. It knows each convention as a formula of its own, in `FORMULAS`. Values are
integers in units of 2**-256, off by a few: a tie that is closer than that to a value is an exact case, position 0.
"""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from .contenders import GRID_WIDTH

BITS = 256
BASE = 10000
#: Precision in bits, and the exponent of the smallest subnormal.
FORMATS = {"float64": (53, -1074), "float32": (24, -149), "float16": (11, -24)}

#: What a column of a table is: the axis of its position, the x of its frequency BASE**-x, whether it is a cosine.
Column = tuple[int, Fraction, bool]


def interleaved(dim: int, column: int) -> Column:
    """BASE**(-2k/d), s0 c0 s1 c1 ..."""
    return 0, Fraction(column - column % 2, dim), column % 2 == 1


def halves(dim: int, column: int) -> Column:
    """BASE**(-2k/d), [s .. | c ..]."""
    n = dim // 2
    return 0, Fraction(2 * (column % n), dim), column >= n


def shifted(dim: int, column: int) -> Column:
    """BASE**(-k/(n-1)), [s .. | c ..]."""
    n = dim // 2
    return 0, Fraction(column % n, n - 1), column >= n


def grid(dim: int, column: int) -> Column:
    """BASE**(-k/n), n = d/4, [s of y | s of x | c of y | c of x]."""
    n = dim // 4
    return column // n % 2, Fraction(column % n, n), column >= 2 * n


#: By posenc's names of the conventions; widths are even.
FORMULAS: dict[str, Callable[[int, int], Column]] = {
    "transformer": interleaved,
    "multidim": interleaved,
    "marian": halves,
    "fairseq": shifted,
    "tensor2tensor": shifted,
    "whisper": shifted,
    "diffusers": shifted,
    "grid: timm": grid,
}


class Verdict(NamedTuple):
    """What came out."""

    entries: int
    misrounded: int  # entries whose bits are not those of the nearest number of the format
    error: float  # the largest distance from the formula's value
    ulp: float  # the same in units of the last place of the nearest number


def judged(table: Any, start: int, convention: str, blank: tuple[int, ...] = ()) -> Verdict:
    """The verdict on an array of rows from ``start``, but for those of ``blank`` positions."""
    if convention not in FORMULAS:
        raise ValueError(f"convention is {convention!r}; the judge knows {', '.join(FORMULAS)}")
    kind = str(table.dtype)
    if kind not in FORMATS:
        raise ValueError(f"the table's dtype is {kind}; the judge knows {', '.join(FORMATS)}")
    columns = [FORMULAS[convention](table.shape[1], column) for column in range(table.shape[1])]
    return summed(
        (got, *nearest(value(point[axis], exponent)[is_cosine], kind))
        for row, point in zip(table.tolist(), points(convention, len(table), start), strict=True)
        if point not in [(position,) for position in blank]
        for got, (axis, exponent, is_cosine) in zip(row, columns, strict=True)
    )


def points(convention: str, length: int, start: int) -> list[tuple[int, ...]]:
    """The position, or on a grid the positions on each axis, of each row."""
    if not convention.startswith("grid"):
        return [(start + i,) for i in range(length)]
    return [(i // GRID_WIDTH, start + i % GRID_WIDTH) for i in range(length)]


def summed(entries: Iterable[tuple[float, float, int, int]]) -> Verdict:
    """Of each entry: what was got, the nearest number, the value, the unit of the last place."""
    count = misrounded = 0
    error = ulp = 0.0
    for got, wanted, exact, unit in entries:
        count += 1
        misrounded += got != wanted or math.copysign(1.0, got) != math.copysign(1.0, wanted)
        if math.isfinite(got):
            numerator, denominator = got.as_integer_ratio()
            distance = abs((numerator << BITS) // denominator - exact)
            error, ulp = max(error, distance / (1 << BITS)), max(ulp, distance / unit)
        else:
            error = ulp = math.inf
    return Verdict(count, misrounded, error, ulp)


def nearest(exact: int, kind: str) -> tuple[float, int, int]:
    """The number of the format nearest to ``exact``, ties to even; ``exact``; and the unit of that number's last place."""
    precision, smallest = FORMATS[kind]
    shift = max(abs(exact).bit_length() - precision, BITS + smallest, 0)
    unit = 1 << shift
    whole, rest = divmod(abs(exact), unit)
    whole += 2 * rest > unit or (2 * rest == unit and whole % 2)
    return math.copysign(math.ldexp(float(whole), shift - BITS), exact), exact, unit


try:
    import gmpy2
except ImportError:
    try:
        import mpmath
    except ImportError:
        raise ImportError("neither gmpy2 nor mpmath is installed; the judge needs one: pip install gmpy2") from None

    NAME = "mpmath"

    @cache
    def frequency(exponent: Fraction) -> Any:
        """BASE**-exponent."""
        with mpmath.workprec(BITS + 64):
            return mpmath.mpf(BASE) ** (-mpmath.mpf(exponent.numerator) / exponent.denominator)

    @cache
    def value(position: int, exponent: Fraction) -> tuple[int, int]:
        """Sine and cosine of position * BASE**-exponent, in units of 2**-BITS."""
        with mpmath.workprec(BITS + 64):
            angle = position * frequency(exponent)
            return tuple(int(mpmath.nint(mpmath.ldexp(f(angle), BITS))) for f in (mpmath.sin, mpmath.cos))  # type: ignore[return-value]

else:
    NAME = "gmpy2"
    WIDE = gmpy2.context(precision=BITS + 64)

    @cache
    def frequency(exponent: Fraction) -> Any:
        """BASE**-exponent."""
        with gmpy2.context(WIDE):
            return gmpy2.exp(gmpy2.log(gmpy2.mpfr(BASE)) * gmpy2.mpq(-exponent.numerator, exponent.denominator))

    @cache
    def value(position: int, exponent: Fraction) -> tuple[int, int]:
        """Sine and cosine of position * BASE**-exponent, in units of 2**-BITS."""
        with gmpy2.context(WIDE):
            sine, cosine = gmpy2.sin_cos(frequency(exponent) * position)
            return int(gmpy2.rint(gmpy2.mul_2exp(sine, BITS))), int(gmpy2.rint(gmpy2.mul_2exp(cosine, BITS)))
