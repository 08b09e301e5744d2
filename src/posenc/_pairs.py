"""Sines and cosines as pairs: what `sincos`, `similarity` and `shift_matrix` are made of."""

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from posenc import _arrays, _foreign, _threads
from posenc._positions import Points
from posenc._rows import Duplicate, Rows

_BLOCK_BYTES = 4 << 20  # of cosines that are summed at once
_FLOAT64 = np.dtype(np.float64)


def concatenated(rows: Rows, amplitude: float | None = None, duplicate: Duplicate | None = None) -> Rows:
    """Rows of the same frequencies, all sines, then all cosines; each twice, if said so."""
    n = len(rows.frequencies) * (1 if duplicate is None else 2)
    amplitude = rows.amplitude if amplitude is None else amplitude
    how: dict[str, Any] = {"interleaved": False, "cos_first": False, "amplitude": amplitude, "duplicate": duplicate}
    return Rows(rows.frequencies, 2 * n, 2 * n, **how)


def sines_and_cosines(
    rows: Rows, points: range | Points, lead: tuple[int, ...], kind: np.dtype[Any], threads: int | None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Of concatenated rows, two contiguous arrays."""
    length, n = math.prod(lead), rows.dim // 2
    both = _arrays.fresh((2, length, n), kind)
    flat = points if isinstance(points, range) else points.ravel()
    if both.size:
        first = flat.start if isinstance(flat, range) and flat.step == 1 else flat
        rows.write(both[0], first, _threads.for_work(threads, both.nbytes), second=both[1])
    return both[0].reshape(*lead, n), both[1].reshape(*lead, n)


def checked_out(out: Any, shape: tuple[int, ...], dtype: DTypeLike | None) -> tuple[np.dtype[Any], tuple[NDArray[Any], ...]]:
    """The dtype of two results, from ``dtype`` and ``out``, two arrays of that shape, and these; all must agree."""
    if out is None:
        return _arrays.checked_dtype(dtype, None), ()
    if not isinstance(out, tuple | list) or len(out) != 2:
        raise TypeError(f"out must be two ndarrays, for sines and cosines, not {type(out).__name__}")
    sines, cosines = map(_foreign.as_out, out)
    kind = _arrays.checked_dtype(dtype, sines)
    _arrays.checked_dtype(kind, cosines)
    for array in (sines, cosines):
        _arrays.check_out(array, shape)
    if np.may_share_memory(sines, cosines) and np.shares_memory(sines, cosines):
        raise ValueError("out holds two arrays that share memory; they must be apart")
    return kind, (sines, cosines)


def similarity(rows: Rows, points: range | Points, lead: tuple[int, ...], amplitude: float) -> NDArray[np.float64]:
    """amplitude**2 * (cos(w_0 p) + cos(w_1 p) + ...), the sum from left to right. ``rows`` have amplitude 1."""
    flat = points if isinstance(points, range) else points.ravel()
    total = _arrays.fresh((len(flat),), _FLOAT64)
    total.fill(0.0)
    step = max(1, _BLOCK_BYTES // (8 * max(rows.dim, 1)))
    for begin in range(0, len(flat), step):
        part = flat[begin : begin + step]
        _, cosines = sines_and_cosines(rows, part, (len(part),), _FLOAT64, None)
        for column in cosines.T:
            total[begin : begin + step] += column
    total *= amplitude * amplitude
    return total.reshape(lead)


def shift_matrix(rows: Rows, delta: Points) -> NDArray[np.float64]:
    """T with T @ row(t) = row(t + delta), for rows of whole pairs."""
    n = len(rows.frequencies)
    sines, cosines = sines_and_cosines(concatenated(rows, amplitude=1.0), delta, (), _FLOAT64, None)
    first, second = (np.arange(n) * 2, np.arange(n) * 2 + 1) if rows.interleaved else (np.arange(n), np.arange(n) + n)
    s, c = (second, first) if rows.cos_first else (first, second)
    matrix = np.eye(rows.dim)
    matrix[s, s] = matrix[c, c] = cosines
    matrix[s, c], matrix[c, s] = sines, -sines
    return matrix
