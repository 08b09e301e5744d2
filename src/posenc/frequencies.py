"""The rules that frequencies follow, as exact real numbers.

A rule called with its parameters gives `Frequencies`, which `posenc.Encoding` takes. They stand for the real numbers of the
formula, not for the doubles nearest to them: a table's entries are rounded from the real numbers.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posenc import _check, _exact, _foreign
from posenc._exact import Ratio, ratio_of
from posenc._load import core

__all__ = ["Frequencies", "geometric", "given", "linear", "octaves", "paper", "shifted", "timescales"]

_LOG2_SMALLEST = -200  # of a frequency, in radians per position, but 0
_BITS = 300  # of the numbers that series are made from


class Frequencies(ABC):
    """Real numbers, in radians per position, one for each pair of a row.

    Made by the rules of this module, not by hand. Immutable; two are equal when they are the same numbers by the same formula.
    """

    __slots__ = ("_rule", "key", "log2_largest", "log2_smallest")
    key: Hashable  # what they are, for caches and for ==
    log2_smallest: float  # log2 of the smallest one's size but 0, to the precision of a float; inf if there is none
    log2_largest: float  # of the largest; -inf

    def __init__(self, key: Hashable, rule: str, log2_sizes: Iterable[float]) -> None:
        self.key = key
        self._rule = rule
        sizes = list(log2_sizes)
        self.log2_smallest, self.log2_largest = min(sizes, default=math.inf), max(sizes, default=-math.inf)
        if self.log2_smallest < _LOG2_SMALLEST:
            wrong = f"smallest frequency would be 2**{self.log2_smallest:.1f}, and it must be at least 2**{_LOG2_SMALLEST}"
            raise ValueError(f"{rule}: the {wrong}")
        if self.log2_largest >= 1023.0:
            raise ValueError(
                f"{rule}: the largest frequency would be 2**{self.log2_largest:.1f}, which is too large for float64"
            )

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, Frequencies) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return self._rule

    @abstractmethod
    def __len__(self) -> int:
        """How many."""

    @abstractmethod
    def scaled(self, factor: float, *, pi: bool = False) -> "Frequencies":
        """Each frequency times ``factor``.

        Parameters
        ----------
        factor : float
            Not 0; its exact binary value.
        pi : bool, default False
            Times the real number pi, too: with ``factor`` 2.0, positions are in full turns.

        Returns
        -------
        Frequencies

        Raises
        ------
        TypeError, ValueError
            If ``factor`` is no real number, or 0, infinite or NaN; if ``pi`` is said twice.

        Examples
        --------
        >>> import posenc
        >>> posenc.frequencies.octaves(3).scaled(2.0, pi=True).values.round(4)
        array([ 6.2832, 12.5664, 25.1327])
        """

    @property
    @abstractmethod
    def values(self) -> NDArray[np.float64]:
        """The frequencies, shape (n,), float64: each the double nearest to the real number."""

    @property
    @abstractmethod
    def wavelengths(self) -> NDArray[np.float64]:
        """Positions per turn, 2 pi / frequency, shape (n,), float64: each the double nearest to the real number."""

    @abstractmethod
    def series(self) -> NDArray[np.float64]:
        """The frequencies in turns per position, each the unevaluated sum of three doubles, shape (3, n)."""

    @abstractmethod
    def turns(self, k: int, bits: int) -> int:
        """w_k / (2 pi) * 2**bits, within 2 units, for `posenc._exact`."""

    @abstractmethod
    def rational_turns(self, k: int) -> Ratio | None:
        """w_k / (2 pi) if it is known to be rational."""

    def waves(self, which: NDArray[np.intp] | None = None) -> "core.Waves":
        """All frequencies, or these by number, in the form that the kernels take."""
        series = self.series()
        exact = self._is_exact(series)
        return core.Waves(series if which is None else np.ascontiguousarray(series[:, which]), exact=exact)

    def _is_exact(self, series: NDArray[np.float64]) -> bool:
        """Whether each of the series is one double, without an error."""
        return False


class _Powers(Frequencies):
    """first * base**(-k * numerator / denominator), times pi if said, k = 0 .. n - 1."""

    __slots__ = ("_base", "_first", "_n", "_pi", "_step")

    def __init__(self, n: int, first: Ratio, base: Ratio, step: Ratio, rule: str, *, pi: bool = False) -> None:
        self._n, self._first, self._base, self._step, self._pi = n, first, base, step, pi
        begin = _log2(first) + (math.log2(math.pi) if pi else 0.0)
        last = -_log2(base) * max(n - 1, 0) * step[0] / step[1]
        super().__init__(("powers", n, first, base, step, pi), rule, [begin, begin + last] if n else [])

    def __reduce__(self) -> tuple[Any, ...]:
        return _powers, (self._n, self._first, self._base, self._step, self._rule, self._pi)

    def __len__(self) -> int:
        return self._n

    def scaled(self, factor: float, *, pi: bool = False) -> Frequencies:
        factor, rule = _checked_factor(self, factor, pi, self._pi)
        first = _exact.product(self._first, ratio_of(factor))
        return _Powers(self._n, first, self._base, self._step, rule, pi=self._pi or pi)

    @property
    def values(self) -> NDArray[np.float64]:
        return self._nearest(_exact.pi(_BITS) if self._pi else 1 << _BITS, self._first, -1)

    @property
    def wavelengths(self) -> NDArray[np.float64]:
        return self._nearest(2 << _BITS if self._pi else 2 * _exact.pi(_BITS), _exact.quotient((1, 1), self._first), 1)

    def series(self) -> NDArray[np.float64]:
        return self._series(1 << _BITS - 1 if self._pi else (1 << 2 * _BITS) // (2 * _exact.pi(_BITS)), self._first, -1)

    def rational_turns(self, k: int) -> Ratio | None:
        if not self._pi:
            return None
        times, parts = _exact.reduced(-k * self._step[0], self._step[1])
        power = _exact.rational_power(self._base, times, parts)
        return None if power is None else _exact.product(_exact.product(self._first, (1, 2)), power)

    def turns(self, k: int, bits: int) -> int:
        guarded = bits + 16 + max(0, math.ceil(self.log2_largest))
        (numerator, denominator), (times, parts) = self._first, self._step
        power = _exact.power(self._base, -k * times, parts, guarded) * numerator // denominator
        return (power >> 1 if self._pi else (power << guarded - 1) // _exact.pi(guarded)) >> guarded - bits

    def _series(self, factor: int, first: Ratio, sign: int) -> NDArray[np.float64]:
        """Factor / 2**_BITS * first * base**(sign * k * step) as three doubles each, shape (3, n)."""
        series = _empty_series(self._n)
        times, parts = self._step
        more = 2 * first[1].bit_length()
        begin = (factor * abs(first[0]) << more) // first[1]
        enough = _BITS + math.ceil(abs(_log2(self._base)) * times / parts)
        ratio = _exact.power(self._base, sign * times, parts, enough) if self._n > 1 else 1
        core.geometric(*_exact.mantissa_of(begin, _BITS + more), *_exact.mantissa_of(ratio, enough), series)
        return np.negative(series, out=series) if first[0] < 0 else series

    def _nearest(self, factor: int, first: Ratio, sign: int) -> NDArray[np.float64]:
        high, middle, low = self._series(factor, first, sign)
        with core.DefaultArithmetic():
            return _constant(high + (middle + low))


class _Rationals(Frequencies):
    """Rational numbers, times pi if said."""

    __slots__ = ("_pi", "_ratios")

    def __init__(self, ratios: tuple[Ratio, ...], rule: str, *, pi: bool = False) -> None:
        self._ratios, self._pi = ratios, pi
        more = math.log2(math.pi) if pi else 0.0
        super().__init__(("rationals", ratios, pi), rule, (_log2(ratio) + more for ratio in ratios if ratio[0]))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rationals, (self._ratios, self._rule, self._pi)

    def __len__(self) -> int:
        return len(self._ratios)

    def scaled(self, factor: float, *, pi: bool = False) -> Frequencies:
        factor, rule = _checked_factor(self, factor, pi, self._pi)
        by = ratio_of(factor)
        return _Rationals(tuple(_exact.product(ratio, by) for ratio in self._ratios), rule, pi=self._pi or pi)

    @property
    def values(self) -> NDArray[np.float64]:
        return self._nearest(self._ratios, _exact.pi(1400) if self._pi else 1 << 1400)

    @property
    def wavelengths(self) -> NDArray[np.float64]:
        inverse = [(denominator, numerator) for numerator, denominator in self._ratios]
        return self._nearest(inverse, 2 << 1400 if self._pi else 2 * _exact.pi(1400))

    def series(self) -> NDArray[np.float64]:
        series = _empty_series(len(self))
        bits = 1400  # the smallest frequency leaves 1200 of them
        for k in range(len(self)):
            series[:, k] = _exact.three_doubles(self.turns(k, bits), bits)
        return series

    def _is_exact(self, series: NDArray[np.float64]) -> bool:
        dyadic = all(denominator & (denominator - 1) == 0 for _, denominator in self._ratios)
        return self._pi and dyadic and not series[1:].any()

    def rational_turns(self, k: int) -> Ratio | None:
        return _exact.product(self._ratios[k], (1, 2)) if self._pi or not self._ratios[k][0] else None

    def turns(self, k: int, bits: int) -> int:
        numerator, denominator = self._ratios[k]
        if self._pi:
            return (numerator << bits) // (2 * denominator)
        guarded = bits + 16 + math.ceil(max(0.0, self.log2_largest))  # -inf, if all are 0
        return (numerator << guarded + bits) // (2 * denominator * _exact.pi(guarded))

    def _nearest(self, ratios: Iterable[Ratio], factor: int) -> NDArray[np.float64]:
        with core.DefaultArithmetic():
            return _constant([a * factor / (b << 1400) if b else math.inf for a, b in ratios])


def _powers(n: int, first: Ratio, base: Ratio, step: Ratio, rule: str, pi: bool) -> Frequencies:
    return _Powers(n, first, base, step, rule, pi=pi)


def _rationals(ratios: tuple[Ratio, ...], rule: str, pi: bool) -> Frequencies:
    return _Rationals(ratios, rule, pi=pi)


def _log2(ratio: Ratio) -> float:
    return math.log2(abs(ratio[0])) - math.log2(abs(ratio[1]))


def _empty_series(n: int) -> NDArray[np.float64]:
    try:
        return np.empty((3, n))
    except ValueError:  # more than an array can have
        raise MemoryError(f"{n} frequencies take {24 * n} bytes, which cannot be allocated") from None


def _constant(values: ArrayLike) -> NDArray[np.float64]:
    array = np.array(values, np.float64)
    array.flags.writeable = False
    return array


def _checked_factor(frequencies: Frequencies, factor: float, pi: bool, has_pi: bool) -> tuple[float, str]:
    """The factor of ``scaled`` as a float, and the rule that the result follows."""
    factor = _check.real("factor", factor)
    if factor == 0.0:
        raise ValueError("factor is 0.0; it must not be 0")
    if _check.flag("pi", pi) and has_pi:
        raise ValueError(f"pi is True, and the frequencies {frequencies!r} are multiples of pi already")
    return factor, f"{frequencies!r}.scaled({factor!r}{', pi=True' if pi else ''})"


# ---- rules -----------------------------------------------------------------------------------------------------------


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
    base = _check.positive("base", base)
    return paper_pairs((dim + 1) // 2, dim, base)


def paper_pairs(n: int, dim: int, base: float) -> Frequencies:
    """The first ``n`` frequencies of ``paper(dim, base)``."""
    return _Powers(n, (1, 1), ratio_of(base), _exact.reduced(2, dim), f"frequencies.paper({dim}, base={base!r})")


def shifted(dim: int, shift: float = 1, base: float = 10000.0) -> Frequencies:
    """The frequencies of tensor2tensor, fairseq and diffusion models.

    ``base**(-k / (n - shift))``, k = 0 .. n - 1, n = dim // 2.

    Parameters
    ----------
    dim : int
        Width of the encoding, at least 1.
    shift : float, default 1
        At most n. 1 makes 1 / base the last frequency, 0 would make it the one behind the last.
    base : float, default 10000.0
        Positive and finite; its exact binary value is used.

    Returns
    -------
    Frequencies
        In radians per position. A single one is 1.

    Raises
    ------
    TypeError
        If ``dim`` is not an integer, or ``shift`` or ``base`` not a real number.
    ValueError
        If ``dim`` < 1, ``shift`` > n, ``shift`` = n with n > 1, or ``base`` is not positive and finite, or so large that a
        frequency falls below 2**-200.

    Examples
    --------
    >>> import posenc
    >>> posenc.frequencies.shifted(8).values.round(4)
    array([1.00e+00, 4.64e-02, 2.20e-03, 1.00e-04])
    >>> posenc.frequencies.shifted(8, shift=0).values
    array([1.   , 0.1  , 0.01 , 0.001])
    """
    dim = _check.integer("dim", dim, least=1)
    shift = _check.real("shift", shift)
    base = _check.positive("base", base)
    n = dim // 2
    times, parts = ratio_of(shift)
    rest = n * parts - times  # n - shift in units of 1 / parts
    if n and (rest < 0 or (rest == 0 and n > 1)):
        raise ValueError(f"shift is {shift:g} and dim {dim}; shift must be less than the number of frequencies, {n}")
    step = _exact.reduced(parts, rest) if rest > 0 else (0, 1)
    return _Powers(n, (1, 1), ratio_of(base), step, f"frequencies.shifted({dim}, {shift:g}, base={base!r})")


def geometric(n: int, first: float, last: float) -> Frequencies:
    """``n`` frequencies in geometric progression from ``first`` to ``last``: ``first * (last / first)**(k / (n - 1))``.

    Parameters
    ----------
    n : int
        How many, at least 0. A single one is ``first``.
    first, last : float
        Radians per position, of one sign and not 0; their exact binary values.

    Returns
    -------
    Frequencies
        In radians per position.

    Raises
    ------
    TypeError
        If ``n`` is not an integer, or ``first`` or ``last`` not a real number.
    ValueError
        If ``n`` < 0, or ``first`` and ``last`` are not as above or below 2**-200.

    Examples
    --------
    >>> import posenc
    >>> posenc.frequencies.geometric(3, 1.0, 0.0001).values
    array([1.e+00, 1.e-02, 1.e-04])
    """
    n = _checked_count(n)
    first, last = _check.real("first", first), _check.real("last", last)
    if first == 0.0 or last == 0.0 or (first > 0.0) != (last > 0.0):
        raise ValueError(f"first is {first!r} and last {last!r}; they must be of one sign and not 0")
    rule = f"frequencies.geometric({n}, {first!r}, {last!r})"
    return _Powers(n, ratio_of(first), _exact.quotient(ratio_of(first), ratio_of(last)), (1, max(n - 1, 1)), rule)


def timescales(n: int, shortest: float, longest: float) -> Frequencies:
    """``n`` frequencies in geometric progression from ``1 / shortest`` to ``1 / longest``, the real quotients.

    Parameters
    ----------
    n : int
        How many, at least 0. A single one is ``1 / shortest``.
    shortest, longest : float
        Positions per radian, positive; their exact binary values.

    Returns
    -------
    Frequencies
        In radians per position. ``timescales(...).scaled(2.0, pi=True)`` has ``shortest`` and ``longest`` as its wavelengths.

    Raises
    ------
    TypeError
        If ``n`` is not an integer, or ``shortest`` or ``longest`` not a real number.
    ValueError
        If ``n`` < 0, or ``shortest`` or ``longest`` are not positive or beyond 2**200.

    Examples
    --------
    >>> import posenc
    >>> posenc.frequencies.timescales(2, 2.0, 20000.0).values
    array([5.e-01, 5.e-05])
    """
    n = _checked_count(n)
    shortest, longest = _check.positive("shortest", shortest), _check.positive("longest", longest)
    low, high = ratio_of(shortest), ratio_of(longest)
    rule = f"frequencies.timescales({n}, {shortest!r}, {longest!r})"
    return _Powers(n, low[::-1], _exact.quotient(high, low), (1, max(n - 1, 1)), rule)


def octaves(n: int, pi: bool = False) -> Frequencies:
    """The frequencies 1, 2, 4, ... 2**(n - 1), or these times pi, as in NeRF.

    Parameters
    ----------
    n : int
        How many, 0 to 1000.
    pi : bool, default False
        Times the real number pi: the NeRF paper has it, its code has not.

    Returns
    -------
    Frequencies
        In radians per position.

    Raises
    ------
    TypeError, ValueError
        If ``n`` or ``pi`` is not as above.

    Examples
    --------
    >>> import posenc
    >>> posenc.frequencies.octaves(4).values
    array([1., 2., 4., 8.])
    >>> posenc.Encoding(4, frequencies=posenc.frequencies.octaves(2, pi=True)).table(2)
    array([[ 0.,  1.,  0.,  1.],
           [ 0., -1.,  0.,  1.]], dtype=float32)
    """
    n = _check.integer("n", n, least=0, most=1000)
    pi = _check.flag("pi", pi)
    return _Rationals(tuple((1 << k, 1) for k in range(n)), f"frequencies.octaves({n}, pi={pi})", pi=pi)


def linear(n: int, first: float, last: float) -> Frequencies:
    """``n`` frequencies in arithmetic progression from ``first`` to ``last``: ``first + (last - first) * k / (n - 1)``.

    Parameters
    ----------
    n : int
        How many, at least 0. A single one is ``first``.
    first, last : float
        Radians per position; their exact binary values.

    Returns
    -------
    Frequencies
        In radians per position.

    Raises
    ------
    TypeError
        If ``n`` is not an integer, or ``first`` or ``last`` not a real number.
    ValueError
        If ``n`` < 0, ``first`` or ``last`` is infinite or NaN, or a frequency that is not 0 is below 2**-200.

    Examples
    --------
    >>> import posenc
    >>> posenc.frequencies.linear(4, 1.0, 10.0).values
    array([ 1.,  4.,  7., 10.])
    """
    n = _check.integer("n", n, least=0, most=1 << 20)  # each is held as a quotient of integers
    first, last = _check.real("first", first), _check.real("last", last)
    (a, b), (c, d), steps = ratio_of(first), ratio_of(last), max(n - 1, 1)
    ratios = (_exact.reduced(a * d * (steps - k) + c * b * k, b * d * steps) for k in range(n))
    return _Rationals(tuple(ratios), f"frequencies.linear({n}, {first!r}, {last!r})")


def given(array: ArrayLike) -> Frequencies:
    """Frequencies of your own, exactly the float64 given.

    Parameters
    ----------
    array : array_like of float, shape (n,)
        Radians per position: finite, each 0 or at least 2**-200 in size; negative ones are allowed. float16, bfloat16, float32
        and integers are taken exactly.

    Returns
    -------
    Frequencies
        In radians per position.

    Raises
    ------
    TypeError
        If ``array`` does not hold real numbers.
    ValueError
        If ``array`` is not one-dimensional, or a number is not as above.

    Examples
    --------
    >>> import posenc
    >>> posenc.frequencies.given([1.0, 0.25]).values
    array([1.  , 0.25])
    """
    doubles = exact_doubles("array", array)
    return _Rationals(tuple(map(ratio_of, doubles.tolist())), f"frequencies.given({doubles.tolist()!r})")


def exact_doubles(name: str, array: ArrayLike) -> NDArray[np.float64]:
    """Numbers that may be frequencies, exactly."""
    values = _foreign.as_array(name, array)
    if values.size == 0 and not isinstance(array, np.ndarray):
        values = values.astype(np.float64)
    if not (values.dtype.kind in "iuf" or values.dtype.name == "bfloat16") or values.itemsize > 8:
        raise TypeError(f"{name} has dtype {values.dtype}; it must hold real numbers, float64 or narrower")
    if values.ndim != 1:
        raise ValueError(f"{name} has shape {values.shape}; it must have one axis")
    doubles = values.astype(np.float64)
    for k, value in enumerate(doubles.tolist()):
        if not math.isfinite(value) or value != values[k].item() or 0.0 < abs(value) < 2.0**_LOG2_SMALLEST:
            raise ValueError(
                f"{name}[{k}] is {values[k]}; it must be a finite float64, and 0 or at least 2**{_LOG2_SMALLEST} in size"
            )
    return doubles


def _checked_count(n: int) -> int:
    return _check.integer("n", n, least=0, most=1 << 40)
