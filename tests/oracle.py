"""The judge: MPFR through gmpy2, or mpmath where that has no wheel. Short, slow and foreign.

Values are computed to 400 bits and rounded once to the format, subnormals and signed zeros included. posenc's domain keeps
arguments below 2**64, so that an error of 2**-330 decides nothing short of a tie, and ties are exact cases: position 0.
"""

import itertools
from fractions import Fraction

import numpy as np

try:
    import gmpy2
except ImportError:
    gmpy2 = None
    import mpmath

BITS = 400
INTEGERS = {"float32": np.uint32, "float64": np.uint64, "float16": np.uint16, "bfloat16": np.uint16}
#: Precision in bits and exponent of the smallest subnormal.
SHAPES = {"float32": (24, -149), "float64": (53, -1074), "float16": (11, -24), "bfloat16": (8, -133)}

if gmpy2 is not None:
    NAME = "gmpy2"
    WIDE = gmpy2.context(precision=BITS, emax=gmpy2.get_emax_max(), emin=gmpy2.get_emin_min())
    FORMATS = {
        name: gmpy2.context(precision=precision, emin=smallest + 1, emax=1024, subnormalize=True)
        for name, (precision, smallest) in SHAPES.items()
    }

    def power(base, numerator, denominator):
        """base**(numerator / denominator)."""
        with gmpy2.context(WIDE):
            return gmpy2.exp(gmpy2.log(gmpy2.mpfr(base)) * numerator / denominator)

    def two_pi():
        """2 pi to 400 bits."""
        with gmpy2.context(WIDE):
            return 2 * gmpy2.const_pi()

    def log_2():
        """Natural logarithm of 2, to 400 bits."""
        with gmpy2.context(WIDE):
            return gmpy2.const_log2()

    def as_fraction(value):
        """The number held, exactly."""
        return Fraction(*map(int, value.as_integer_ratio()))

    def sin_cos(position, frequency, amplitude=1.0):
        """amplitude * (sin, cos) of position * frequency, to 400 bits."""
        with gmpy2.context(WIDE):
            sine, cosine = gmpy2.sin_cos(gmpy2.mpq(position) * frequency)
            return sine * gmpy2.mpfr(amplitude), cosine * gmpy2.mpfr(amplitude)

    def rounded(value, dtype):
        """``value`` to nearest even in the format; as a Python float, which holds it exactly."""
        return float(FORMATS[dtype].plus(value))

    def difference(value, numbers):
        """``value`` minus the sum of floats, as a float."""
        with gmpy2.context(WIDE):
            return float(value - sum(map(gmpy2.mpfr, numbers)))

else:
    NAME = "mpmath"
    mpmath.mp.prec = BITS

    def power(base, numerator, denominator):
        return mpmath.exp(mpmath.log(mpmath.mpf(base)) * numerator / denominator)

    def two_pi():
        return +(2 * mpmath.pi)

    def log_2():
        return mpmath.log(2)

    def as_fraction(value):
        return Fraction(*map(int, mpmath.libmp.to_rational(value._mpf_)))

    def sin_cos(position, frequency, amplitude=1.0):
        angle = position * frequency
        return mpmath.sin(angle) * mpmath.mpf(amplitude), mpmath.cos(angle) * mpmath.mpf(amplitude)

    def rounded(value, dtype):
        precision, smallest = SHAPES[dtype]
        if value == 0:
            return 0.0
        quantum = max(mpmath.frexp(value)[1] - precision, smallest)
        scaled = mpmath.ldexp(abs(value), -quantum)
        whole = int(mpmath.floor(scaled))
        rest = scaled - whole
        whole += rest > 0.5 or (rest == 0.5 and whole % 2 == 1)
        return float(np.copysign(float(mpmath.ldexp(mpmath.mpf(whole), quantum)), -1.0 if value < 0 else 1.0))

    def difference(value, numbers):
        return float(value - mpmath.fsum(numbers))


def where(column, dim, layout, cos_first, odd):
    """(k, is_cosine) of a column, None of a zero column."""
    pairs = (dim + 1) // 2 if odd == "truncate" else dim // 2
    if odd == "zero" and dim % 2 and column == dim - 1:
        return None
    k, second = divmod(column, 2) if layout == "interleaved" else (column % pairs, column // pairs)
    return k, bool(second) != cos_first


def entries(
    rows,
    columns,
    dim,
    *,
    base=10000.0,
    frequencies=None,
    layout="interleaved",
    cos_first=False,
    odd="truncate",
    amplitude=1.0,
    dtype,
):
    """Correctly rounded entries at the given positions and columns, an array of the format.

    ``frequencies`` are MPFR numbers in the place of those of ``base``.
    """
    table = np.zeros((len(rows), len(columns)), dtype)
    cells = {}
    for j, column in enumerate(columns):
        place = where(column, dim, layout, cos_first, odd)
        if place is not None:
            cells.setdefault(place[0], []).append((j, place[1]))
    for k, places in cells.items():
        frequency = power(base, -2 * k, dim) if frequencies is None else frequencies[k]
        for i, position in enumerate(rows):
            values = sin_cos(position, frequency, amplitude)
            for j, is_cosine in places:
                if position == 0 and not is_cosine:
                    continue
                table[i, j] = rounded(values[is_cosine], dtype)
    return table


def mismatches(got, want, rows, columns, about):
    """Lines that name each entry whose bits differ, for an assertion's message."""
    integers = INTEGERS[str(want.dtype)]
    wrong = np.argwhere(got.view(integers) != want.view(integers))
    return [
        f"{about} position={rows[i]} column={columns[j]} got={float(got[i, j]).hex()} want={float(want[i, j]).hex()}"
        for i, j in itertools.islice(map(tuple, wrong), 10)
    ]
