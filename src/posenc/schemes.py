"""Codes of a position that came before sines and cosines, to look at and to compare with.

Each fails in a way that the next one mends; their notes say how. None is meant for a model.
"""

import numpy as np
from numpy.typing import NDArray

from posenc import _arrays, _check
from posenc._encoding import Encoding
from posenc.frequencies import geometric, shifted

__all__ = ["binary", "integer", "sine", "unit_interval"]


def integer(n: int) -> NDArray[np.int64]:
    """The positions themselves: 1, 2, ... ``n``.

    Parameters
    ----------
    n : int
        Positions, at least 0.

    Returns
    -------
    ndarray of int64, shape (n,)

    Raises
    ------
    TypeError
        If ``n`` is not an integer.
    ValueError
        If ``n`` < 0.
    MemoryError
        If the numbers do not fit in memory.

    Notes
    -----
    The numbers have no bound. A sequence longer than those of the training brings values that the model never met, and
    long before that they drown embeddings whose entries are about 1.

    Examples
    --------
    >>> from posenc import schemes
    >>> schemes.integer(5)
    array([1, 2, 3, 4, 5])
    """
    n = _check.integer("n", n, least=0)
    numbers = _arrays.fresh((n,), np.dtype(np.int64))
    numbers.fill(1)
    np.cumsum(numbers, out=numbers)
    return numbers


def unit_interval(n: int) -> NDArray[np.float64]:
    """Positions spread evenly over [0, 1]: ``i / (n - 1)``, i = 0 .. n - 1, each correctly rounded.

    Parameters
    ----------
    n : int
        Positions, at least 0.

    Returns
    -------
    ndarray of float64, shape (n,)
        A single one is 0.

    Raises
    ------
    TypeError
        If ``n`` is not an integer.
    ValueError
        If ``n`` < 0.
    MemoryError
        If the numbers do not fit in memory.

    Notes
    -----
    The values are bounded, but the step between neighbours is 1 / (n - 1): it depends on the length of the sequence, so the
    same distance means another number of tokens in each.

    Examples
    --------
    >>> from posenc import schemes
    >>> schemes.unit_interval(5)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    >>> schemes.unit_interval(3)
    array([0. , 0.5, 1. ])
    """
    n = _check.integer("n", n, least=0)
    numbers = _arrays.fresh((n,), np.dtype(np.float64))
    numbers.fill(1.0)
    numbers[:1] = 0.0
    np.cumsum(numbers, out=numbers)  # exact: an array has less than 2**53 entries of eight bytes
    numbers /= max(n - 1, 1)
    return numbers


def binary(n: int, d: int) -> NDArray[np.uint8]:
    """Positions in binary: the ``d`` bits of 0, 1, ... ``n`` - 1, the most significant first.

    Parameters
    ----------
    n : int
        Positions, 0 to 2**d.
    d : int
        Bits of each, at least 1.

    Returns
    -------
    ndarray of uint8, shape (n, d)
        0 or 1.

    Raises
    ------
    TypeError
        If ``n`` or ``d`` is not an integer.
    ValueError
        If ``n`` < 0, ``d`` < 1 or ``n`` > 2**d.
    MemoryError
        If the bits do not fit in memory.

    Notes
    -----
    The values are bounded and mean the same in every sequence, but they are discrete, and closeness is lost: 7 and 8 differ
    in four bits, 0 and 8 in one. Nor is there a matrix that takes the row of t to that of t + delta for every t: it would
    have to take row 0, which is zero, to the row of delta, and carries are not linear. Sines and cosines are such bits made
    smooth: each pair turns at its own rate, and a rotation takes t to t + delta.

    Examples
    --------
    >>> from posenc import schemes
    >>> schemes.binary(5, 3)
    array([[0, 0, 0],
           [0, 0, 1],
           [0, 1, 0],
           [0, 1, 1],
           [1, 0, 0]], dtype=uint8)
    """
    n, d = _check.integer("n", n, least=0), _check.integer("d", d, least=1)
    used = max(n - 1, 0).bit_length()
    if used > d:
        raise ValueError(f"n is {n} and d {d}; n must be at most 2**d, {2**d}")
    rows = _arrays.fresh((n, d), np.dtype(np.uint8))
    rows[:1] = 0
    for bit in range(used):  # rows 2**bit .. are those from 0 on with this bit set
        begin, end = 1 << bit, min(2 << bit, n)
        rows[begin:end] = rows[: end - begin]
        rows[begin:end, d - 1 - bit] = 1
    return rows


def sine(n: int, d: int, octaves: bool = False) -> NDArray[np.float32]:
    """Sines alone, of ``d`` frequencies: sin(i w_j) for i = 0 .. n - 1, each correctly rounded.

    Parameters
    ----------
    n : int
        Rows, at least 0.
    d : int
        Columns, at least 1.
    octaves : bool, default False
        w_j = 2**-j, a smooth form of `binary`; else w_j = 10000**(-j / (d - 1)), and 1 for d = 1.

    Returns
    -------
    ndarray of float32, shape (n, d)

    Raises
    ------
    TypeError
        If an argument is of the wrong type.
    ValueError
        If ``n`` < 0 or ``d`` < 1, or with ``octaves`` ``d`` > 200.
    MemoryError
        If the result does not fit in memory.

    Notes
    -----
    Smooth and bounded, but without its cosine a sine cannot be shifted: no linear map takes row t to row t + delta, and rows
    may coincide, since a sine takes each value twice a turn.

    Examples
    --------
    >>> import posenc
    >>> posenc.schemes.sine(3, 2)
    array([[0.0000000e+00, 0.0000000e+00],
           [8.4147096e-01, 9.9999997e-05],
           [9.0929741e-01, 1.9999999e-04]], dtype=float32)
    """
    n = _check.integer("n", n, least=0)
    octaves = _check.flag("octaves", octaves)
    d = _check.integer("d", d, least=1, most=200 if octaves else 1 << 40)
    frequencies = geometric(d, 1.0, 2.0 ** (1 - d)) if octaves else shifted(2 * d)
    return Encoding(2 * d, frequencies=frequencies).sincos(range(n))[0]
