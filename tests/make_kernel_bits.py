"""Writes tests/kernel_bits.h: ``python tests/make_kernel_bits.py > tests/kernel_bits.h``. Needs mpmath.

The series of frequencies that kernel_bits.c has, by foreign arithmetic: first terms and ratios as posenc_geometric takes them.
"""

import mpmath

#: (dim, base) of the rule "paper", whose frequencies in turns are 1 / (2 pi) * base**(-2 k / dim), base exactly this double.
PAPER = [(dim, "1e4") for dim in (1, 2, 7, 10, 67, 128, 130, 1030, 1101)] + [(16, "1e8"), (16, "1e30")]


def number(name, value):
    """A C constant: the leading 256 bits, cut, least significant limb first, and the exponent of a fraction in [1/2, 1)."""
    fraction, exponent = mpmath.frexp(value)
    mantissa = int(mpmath.floor(mpmath.ldexp(fraction, 256)))
    limbs = [f"{mantissa >> 32 * i & 0xFFFFFFFF:#010x}" for i in range(8)]
    return f"static const number {name} = {{\n    {{{', '.join(limbs)}}}, {exponent}}};"


def header():
    with mpmath.workprec(600):
        yield "/* Written by tests/make_kernel_bits.py. */"
        yield "typedef struct {"
        yield "    uint32_t limbs[8];"
        yield "    int exponent;"
        yield "} number;"
        yield ""
        yield number("RADIAN", 1 / (2 * mpmath.pi))
        for dim, base in PAPER:
            yield number(f"PAPER_{dim}_{base.upper()}", mpmath.mpf(float(base)) ** (-mpmath.mpf(2) / dim))
        yield number("SMALLEST_TURN", mpmath.ldexp(1, -10))
        yield number("OCTAVE", mpmath.mpf(2))


if __name__ == "__main__":
    print("\n".join(header()))
