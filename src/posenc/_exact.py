"""Real numbers as Python integers: what the frequencies are made from, and the last word on a rounding.

A number x is held as the integer nearest x * 2**bits, near enough: each function says how far off it may be, in units of
2**-bits. Python's integers know no rounding mode and no context that a caller could have changed.
"""

import math
from collections.abc import Callable
from functools import lru_cache

Ratio = tuple[int, int]  # a rational number: numerator, denominator > 0

_STEP = 512  # constants are computed to multiples of this many bits, and cut to what is asked
_FIRST = (  # pi and ln 2 to the first multiple, which is most often enough: `_constants` regenerates them
    0x3243F6A8885A308D313198A2E03707344A4093822299F31D0082EFA98EC4E6C89452821E638D01377BE5466CF34E90C6CC0AC29B7C97C50DD3F84D5B5B5470917,
    0xB17217F7D1CF79ABC9E3B39803F2F6AF40F343267298B62D8A0D175B8BAAFA2BE7B876206DEBAC98559552FB4AFA1B10ED2EAE35C138214427573B291169B825,
)


def _arctan_inverse(n: int, bits: int, sign: int) -> int:
    """arctan(1/n) for sign = -1, arctanh(1/n) for sign = 1."""
    power = (1 << bits) // n
    total, k, term_sign = power, 1, sign
    while power:
        power //= n * n
        k += 2
        total += term_sign * (power // k)
        term_sign *= sign
    return total


@lru_cache(maxsize=8)
def _constants(bits: int) -> tuple[int, int]:
    guarded = bits + 32  # the series below lose less than 2**12 units
    pi = 16 * _arctan_inverse(5, guarded, -1) - 4 * _arctan_inverse(239, guarded, -1)
    log_2 = 18 * _arctan_inverse(26, guarded, 1) - 2 * _arctan_inverse(4801, guarded, 1) + 8 * _arctan_inverse(8749, guarded, 1)
    return pi >> 32, log_2 >> 32


def _constant(which: int, bits: int) -> int:
    whole = -(-bits // _STEP) * _STEP
    return (_FIRST if whole == _STEP else _constants(whole))[which] >> (whole - bits)


def pi(bits: int) -> int:
    """Pi, within 2 units: Machin's formula."""
    return _constant(0, bits)


def log_2(bits: int) -> int:
    """Ln 2, within 2 units: a Machin-like formula in arctanh."""
    return _constant(1, bits)


def reduced(numerator: int, denominator: int) -> Ratio:
    """A quotient in lowest terms, with a positive denominator."""
    divisor = math.gcd(numerator, denominator) * (1 if denominator > 0 else -1)
    return numerator // divisor, denominator // divisor


def ratio_of(x: float) -> Ratio:
    """A float's exact value."""
    return x.as_integer_ratio()


def product(a: Ratio, b: Ratio) -> Ratio:
    """A * b."""
    return reduced(a[0] * b[0], a[1] * b[1])


def quotient(a: Ratio, b: Ratio) -> Ratio:
    """A / b."""
    return reduced(a[0] * b[1], a[1] * b[0])


def root(value: int, degree: int) -> int | None:
    """The integer whose power of that degree ``value`` (> 0) is, if there is one."""
    if value == 1 or degree == 1:
        return value
    if degree >= value.bit_length():
        return None
    low, high = 1, 1 << -(-value.bit_length() // degree)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if middle**degree < value else (low, middle)
    return low if low**degree == value else None


def rational_power(base: Ratio, numerator: int, denominator: int) -> Ratio | None:
    """base**(numerator / denominator), in lowest terms both, base > 0, if it is rational."""
    above, below = root(base[0], denominator), root(base[1], denominator)
    if above is None or below is None:
        return None
    return (above**numerator, below**numerator) if numerator >= 0 else (below**-numerator, above**-numerator)


@lru_cache(maxsize=64)
def log(x: Ratio, bits: int) -> int:
    """Ln x, x > 0, within 2**12 units: 2 arctanh((m - 1) / (m + 1)) for its mantissa m in [0.7, 1.42]."""
    numerator, denominator = x
    exponent = numerator.bit_length() - denominator.bit_length()
    numerator, denominator = numerator << max(0, -exponent), denominator << max(0, exponent)  # m in (0.5, 2)
    if 10 * numerator < 7 * denominator:
        numerator, exponent = 2 * numerator, exponent - 1
    elif 100 * numerator > 142 * denominator:
        denominator, exponent = 2 * denominator, exponent + 1
    z = ((numerator - denominator) << bits) // (numerator + denominator)
    square = z * z >> bits
    total, power, k = 0, z, 1
    while power not in (0, -1):
        total += power // k
        power = power * square >> bits
        k += 2
    return 2 * total + exponent * log_2(bits)


def exp(x: int, bits: int) -> int:
    """e**x for the integer x, within 2**16 * e**x + 1 units."""
    guarded = bits + 32
    two_log = log_2(guarded)
    exponent, rest = divmod(x << 32, two_log)
    rest >>= 8  # the series of e**(rest / 256), squared eight times
    total = term = 1 << guarded
    k = 1
    while term:
        term = (term * rest >> guarded) // k
        total += term
        k += 1
    for _ in range(8):
        total = total * total >> guarded
    shift = exponent - 32
    return total << shift if shift >= 0 else total >> -shift


def power(base: Ratio, numerator: int, denominator: int, bits: int) -> int:
    """base**(numerator / denominator), within 1 unit, or 1 unit in 2**64 of a result above 2**64."""
    guarded = bits + 160
    logarithm = log(base, guarded) * numerator // denominator
    return exp(logarithm, guarded) >> (guarded - bits)


def nearest(value: int, bits: int) -> float:
    """The float64 nearest to ``value / 2**bits``."""
    return signed(rounded(abs(value), -bits, 53, -1074), value)


def mantissa_of(value: int, bits: int) -> tuple[bytes, int]:
    """``value`` (> 0, in units of 2**-bits) as the 32 bytes of a mantissa in [2**255, 2**256), cut, and its exponent."""
    length = value.bit_length()
    mantissa = value >> (length - 256) if length >= 256 else value << (256 - length)
    return mantissa.to_bytes(32, "little"), length - bits


def three_doubles(value: int, bits: int) -> tuple[float, float, float]:
    """``value / 2**bits`` as an unevaluated sum, its leading 159 bits."""
    size, doubles, sign = abs(value), [], 1 if value >= 0 else -1
    for _ in range(3):
        cut = max(0, size.bit_length() - 53)
        doubles.append(sign * math.ldexp(size >> cut, cut - bits))
        size &= (1 << cut) - 1
    return doubles[0], doubles[1], doubles[2]


def sin_cos(turns: int, bits: int) -> tuple[int, int]:
    """(sin, cos) of 2 pi * turns, within ``bits`` units."""
    quarters, rest = divmod(turns + (1 << bits - 3), 1 << bits - 2)
    rest -= 1 << bits - 3  # [-1/8, 1/8] turns
    angle = 2 * pi(bits) * rest >> bits
    square = angle * angle >> bits
    sines = cosines = 0
    sine, cosine, k = angle, 1 << bits, 0
    while cosine not in (0, -1) or sine not in (0, -1):
        sines += sine
        cosines += cosine
        k += 2
        sine = -(sine * square >> bits) // (k * (k + 1))
        cosine = -(cosine * square >> bits) // (k * (k - 1))
    for _ in range(quarters % 4):
        sines, cosines = cosines, -sines
    return sines, cosines


def rounded(value: int, exponent: int, precision: int, smallest: int) -> float:
    """``value * 2**exponent`` to nearest even in an IEEE format, for ``value`` >= 0.

    ``precision`` is that of its significand, ``smallest`` the exponent of its smallest subnormal.
    """
    quantum = max(value.bit_length() + exponent - precision, smallest)
    shift = quantum - exponent
    if shift > 0:
        value, rest = divmod(value, 1 << shift)
        half = 1 << shift - 1
        value += rest > half or (rest == half and value & 1)
    else:
        value <<= -shift
    return math.ldexp(value, quantum)


def signed(magnitude: float, sign: int) -> float:
    """``magnitude`` with the sign of an int that may be too large for a float."""
    return -magnitude if sign < 0 else magnitude


_TWICE_SINES = {0: 0, 1: 1, 3: 2, 5: 1, 6: 0, 7: -1, 9: -2, 11: -1}  # of the twelfths of a turn where they are rational


def entry(
    turns: Callable[[int], int],
    rational_turns: Ratio | None,
    position: float,
    is_cosine: bool,
    amplitude: float,
    precision: int,
    smallest: int,
) -> float:
    """A correctly rounded entry, by Ziv's strategy: more digits until the rounding is certain.

    ``turns(bits)`` is w / (2 pi) within 2 units, and ``rational_turns`` the same if it is rational; ``position`` is an int or
    a float. It ends: sines and cosines are dyadic fractions only at angle 0 and, by Niven's theorem, at some twelfths of
    a turn. These are decided first.
    """
    numerator, denominator = amplitude.as_integer_ratio()
    scale = 1 - denominator.bit_length()
    times, parts = position.as_integer_ratio()
    known = (0, 1) if position == 0 else rational_turns
    if known is not None:
        twelfths, rest = divmod(12 * known[0] * times, known[1] * parts)
        twice = None if rest else _TWICE_SINES.get((twelfths + 3 * is_cosine) % 12)
        if twice is not None:
            value = twice * numerator
            return signed(rounded(abs(value), scale - 1, precision, smallest), value)
    bits = 512
    while True:
        value = sin_cos(times * turns(bits) // parts, bits)[is_cosine] * numerator
        error = (16 * (abs(times) // parts + 1) + bits) * abs(numerator)
        low, high = value - error, value + error
        if (low < 0) == (high < 0):
            candidates = {rounded(abs(bound), scale - bits, precision, smallest) for bound in (low, high)}
            if len(candidates) == 1:
                return signed(candidates.pop(), value)
        bits *= 2
