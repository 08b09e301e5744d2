"""The rules that frequencies follow, as exact real numbers.

A rule called with its parameters gives `Frequencies`, which `posenc.Encoding` takes. They stand for the real numbers of the
formula, not for the doubles nearest to them: a table's entries are rounded from the real numbers.
"""

import math

import numpy as np
from numpy.typing import NDArray

from posenc import _check, _exact
from posenc._load import core

__all__ = ["Frequencies", "paper"]

_LOG2_SMALLEST = -200  # of a frequency, in radians per position


class Frequencies:
    """The ``n`` real numbers ``base**(-k * numerator / denominator)``, k = 0 .. n - 1, in radians per position.

    Made by the rules of this module, not by hand. Immutable; two are equal when they are the same numbers by the same formula.

    Parameters
    ----------
    n : int
        How many.
    base : float
        Positive; its exact binary value.
    numerator, denominator : int
        Of the step between exponents.

    Raises
    ------
    ValueError
        If a frequency is below 2**-200.
    """

    __slots__ = ("_rule", "key")

    def __init__(self, n: int, base: float, numerator: int, denominator: int, rule: str) -> None:
        self.key = (n, base, numerator, denominator)
        self._rule = rule
        if self.log2_smallest < _LOG2_SMALLEST:
            raise ValueError(
                f"base is {base!r}; the smallest frequency would be 2**{self.log2_smallest:.1f}, "
                f"and it must be at least 2**{_LOG2_SMALLEST}"
            )

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, Frequencies) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return self._rule

    def __reduce__(self) -> tuple[type, tuple[int, float, int, int, str]]:
        return Frequencies, (*self.key, self._rule)

    def __len__(self) -> int:
        return self.key[0]

    @property
    def values(self) -> NDArray[np.float64]:
        """The frequencies, shape (n,), float64: each the double nearest to the real number."""
        return self._nearest(1 << 300, 300, -1)

    @property
    def wavelengths(self) -> NDArray[np.float64]:
        """Positions per turn, 2 pi / frequency, shape (n,), float64: each the double nearest to the real number."""
        return self._nearest(2 * _exact.pi(300), 300, 1)

    @property
    def log2_smallest(self) -> float:
        """log2 of the smallest frequency, to the precision of a float."""
        return min(0.0, self._log2_last())

    @property
    def log2_largest(self) -> float:
        """log2 of the largest frequency, to the precision of a float."""
        return max(0.0, self._log2_last())

    def waves(self) -> "core.Waves":
        """The frequencies in the form that the kernels take."""
        return core.Waves(self.series())

    def series(self) -> NDArray[np.float64]:
        """The frequencies in turns per position, each the unevaluated sum of three doubles, shape (3, n)."""
        return self._series((1 << 600) // (2 * _exact.pi(300)), 300, -1)

    def turns(self, k: int, bits: int) -> int:
        """w_k / (2 pi) * 2**bits, within 2 units, for `posenc._exact`."""
        _, base, numerator, denominator = self.key
        guarded = bits + 16
        return (_exact.power(base, -k * numerator, denominator, guarded) << guarded - 1) // _exact.pi(guarded) >> 16

    def _log2_last(self) -> float:
        n, base, numerator, denominator = self.key
        return -math.log2(base) * max(n - 1, 0) * numerator / denominator

    def _series(self, first: int, bits: int, sign: int) -> NDArray[np.float64]:
        """First / 2**bits * base**(sign * k * numerator / denominator) as three doubles each, shape (3, n)."""
        n, base, numerator, denominator = self.key
        try:
            series = np.empty((3, n))
        except ValueError:  # more than an array can have
            raise MemoryError(f"{n} frequencies take {24 * n} bytes, which cannot be allocated") from None
        enough = 300 + math.ceil(abs(math.log2(base)) * numerator / denominator)
        ratio = _exact.power(base, sign * numerator, denominator, enough) if n > 1 else 1
        core.geometric(*_exact.mantissa_of(first, bits), *_exact.mantissa_of(ratio, enough), series)
        return series

    def _nearest(self, first: int, bits: int, sign: int) -> NDArray[np.float64]:
        high, middle, low = self._series(first, bits, sign)
        values: NDArray[np.float64] = high + (middle + low)
        values.flags.writeable = False
        return values


def paper(dim: int, base: float = 10000.0) -> Frequencies:
    """The frequencies of "Attention Is All You Need": ``base**(-2 k / dim)``, k = 0 .. ceil(dim / 2) - 1.

    Parameters
    ----------
    dim : int
        Width of the encoding, at least 1.
    base : float, default 10000.0
        Positive and finite; its exact binary value is used.

    Returns
    -------
    Frequencies
        In radians per position.

    Raises
    ------
    TypeError
        If ``dim`` is not an integer or ``base`` not a real number.
    ValueError
        If ``dim`` < 1, or ``base`` is not positive and finite or so large that a frequency falls below 2**-200.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", 2017, section 3.5. https://arxiv.org/abs/1706.03762

    Examples
    --------
    >>> import posenc
    >>> posenc.frequencies.paper(8).values
    array([1.   , 0.1  , 0.01 , 0.001])
    """
    dim = _check.integer("dim", dim, least=1)
    base = positive_base(base)
    return Frequencies((dim + 1) // 2, base, 2, dim, f"frequencies.paper({dim}, base={base!r})")


def positive_base(base: float) -> float:
    """``base`` as a float, or the error that names it."""
    base = _check.real("base", base)
    if not base > 0.0:
        raise ValueError(f"base is {base!r}; it must be positive")
    return base
