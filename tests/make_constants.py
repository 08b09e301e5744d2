"""Writes src/posenc/kernel/constants.h: ``python tests/make_constants.py > src/posenc/kernel/constants.h``.

Needs mpmath (or gmpy2 with mpmath's interface); ``tests/test_house.py`` checks that the file is what this prints.
"""

import mpmath

mpmath.mp.prec = 400

SIN_TERMS = 14  # x^27 / 27!, below 2^-102 at pi / 4, is the last
COS_TERMS = 15
SIN_DOUBLE = 8  # from this term on the coefficient as one double is enough
COS_DOUBLE = 9


def parts(value, count):
    """``value`` as an unevaluated sum of ``count`` doubles."""
    out = []
    for _ in range(count):
        out.append(float(value))
        value -= mpmath.mpf(out[-1])
    return out


def series(name, offset, terms):
    yield f"/* (-1)^k / (2 k{' + 1' if offset else ''})!, high and low */"
    yield f"static const double {name}[{terms}][2] = {{"
    for k in range(terms):
        high, low = parts(mpmath.mpf((-1) ** k) / mpmath.factorial(2 * k + offset), 2)
        yield f"    {{{high.hex()}, {low.hex()}}},"
    yield "};"


def header():
    yield "/* Written by tests/make_constants.py. */"
    yield "#ifndef POSENC_CONSTANTS_H"
    yield "#define POSENC_CONSTANTS_H"
    yield ""
    high, low = parts(2 * mpmath.pi, 2)
    yield f"#define TWO_PI_HIGH {high.hex()}"
    yield f"#define TWO_PI_LOW {low.hex()}"
    yield ""
    yield from series("SIN", 1, SIN_TERMS)
    yield ""
    yield from series("COS", 0, COS_TERMS)
    yield ""
    yield "#endif"


if __name__ == "__main__":
    print("\n".join(header()))
