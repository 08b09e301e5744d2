"""The module-level functions: each looks its `Encoding` up by the keywords and calls the method of its own name."""

from functools import lru_cache
from typing import Any

from numpy.typing import ArrayLike, DTypeLike, NDArray

from posenc import _arrays
from posenc._encoding import Encoding
from posenc._rows import CACHE


@lru_cache(maxsize=256, typed=True)
def _cached(dim: int, **encoding: Any) -> Encoding:
    return Encoding(dim, **encoding)


def _chosen(dim: int, encoding: dict[str, Any]) -> Encoding:
    try:
        return _cached(dim, **encoding)
    except (TypeError, ValueError):  # also for what cannot be hashed; the constructor says which argument is wrong
        return Encoding(dim, **encoding)


def table(
    length: int,
    dim: int,
    *,
    start: int | None = None,
    dtype: DTypeLike | None = None,
    out: NDArray[Any] | None = None,
    threads: int | None = None,
    **encoding: Any,
) -> NDArray[Any]:
    """The sinusoidal encodings of ``length`` consecutive positions, each entry correctly rounded.

    PE(p, 2k) = sin(p / 10000**(2k / dim)), PE(p, 2k + 1) = cos(p / 10000**(2k / dim)), or another `Encoding`.

    Parameters
    ----------
    length : int
        Rows, at least 0.
    dim : int
        Width of a row, at least 1.
    start : int, optional
        Position of the first row, by default the encoding's first position, 0. The last one too must be an int64.
    dtype : {"float32", "float64", "float16", "bfloat16"}, optional
        By default that of ``out``, else float32.
    out : ndarray, shape (length, dim), optional
        Written and returned. In native byte order, writeable, aligned, each row contiguous, rows not overlapping.
    threads : int, optional
        At most this many threads; small tables are written by one. By default see `posenc.set_threads`.
    **encoding
        Keywords of `Encoding`: base, frequencies, layout, cos_first, odd, amplitude, first.

    Returns
    -------
    ndarray, shape (length, dim)
        ``out``, or a new array.

    Raises
    ------
    TypeError
        If an argument is of the wrong type or ``out`` of another dtype.
    ValueError
        If a value or ``out`` is not as above, ``amplitude`` overflows the dtype, or a position times a frequency exceeds 2**64.
    MemoryError
        If the table does not fit in memory.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", 2017, section 3.5. https://arxiv.org/abs/1706.03762

    Examples
    --------
    >>> import posenc
    >>> posenc.table(2, 4)
    array([[0.        , 1.        , 0.        , 1.        ],
           [0.84147096, 0.5403023 , 0.00999983, 0.99995   ]], dtype=float32)
    """
    return _chosen(dim, encoding).table(length, start=start, dtype=dtype, out=out, threads=threads)


def encode(
    positions: ArrayLike | range,
    dim: int,
    *,
    where: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    out: NDArray[Any] | None = None,
    threads: int | None = None,
    **encoding: Any,
) -> NDArray[Any]:
    """The sinusoidal encodings of any positions, each entry correctly rounded.

    Parameters
    ----------
    positions : array_like or range
        Integers (int64) or floats (float16, bfloat16, float32, float64; at most 2**53 in size), of any shape, each taken as
        the exact number it is. A range is not turned into an array; runs of consecutive integers are as fast as `table`.
    dim : int
        Width of a row, at least 1.
    where : array_like of bool, optional
        Broadcasts to the shape of ``positions``. Where it is False the row is zeros, unlike with a ufunc, and the position
        is not inspected.
    dtype : {"float32", "float64", "float16", "bfloat16"}, optional
        By default that of ``out``, else float32.
    out : ndarray, shape positions.shape + (dim,), optional
        Written and returned. In native byte order, writeable, aligned, each row contiguous, rows not overlapping.
    threads : int, optional
        At most this many threads; small results are written by one. By default see `posenc.set_threads`.
    **encoding
        Keywords of `Encoding`: base, frequencies, layout, cos_first, odd, amplitude, first.

    Returns
    -------
    ndarray, shape positions.shape + (dim,)
        ``out``, or a new array.

    Raises
    ------
    TypeError
        If an argument is of the wrong type or ``out`` of another dtype.
    ValueError
        If a value or ``out`` is not as above, ``amplitude`` overflows the dtype, or a position times a frequency exceeds 2**64.
    MemoryError
        If the result does not fit in memory.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", 2017, section 3.5. https://arxiv.org/abs/1706.03762

    Examples
    --------
    >>> import posenc
    >>> posenc.encode([0, 7, 0.5, -3], 2)
    array([[ 0.        ,  1.        ],
           [ 0.6569866 ,  0.75390226],
           [ 0.47942555,  0.87758255],
           [-0.14112   , -0.9899925 ]], dtype=float32)
    >>> posenc.encode(range(10, -10, -1), 2).shape
    (20, 2)
    """
    return _chosen(dim, encoding).encode(positions, where=where, dtype=dtype, out=out, threads=threads)


def add(
    x: ArrayLike,
    *,
    positions: ArrayLike | range | None = None,
    start: int | None = None,
    axis: int = -2,
    scale: float = 1.0,
    where: ArrayLike | None = None,
    out: NDArray[Any] | None = None,
    threads: int | None = None,
    **encoding: Any,
) -> NDArray[Any]:
    """Embeddings plus their positions' encodings, ``scale * x + PE``, in one pass: no table is made.

    Parameters
    ----------
    x : array_like, shape (..., dim)
        Of float32, float64, float16 or bfloat16, with any strides.
    positions : array_like, optional
        Of each row of ``x``: integers or floats that broadcast to ``x.shape[:-1]``. In place of ``start`` and ``axis``.
    start : int, optional
        Position of the first element along ``axis``, by default the encoding's first position, 0. The last one too must be
        an int64.
    axis : int, default -2
        Of ``x``, that of the sequence; not the last.
    scale : float, default 1.0
        What ``x`` is multiplied by; it is rounded to the dtype of the sum.
    where : array_like of bool, optional
        Broadcasts to ``x.shape[:-1]``. Where it is False, ``scale * x`` alone; the positions there are not inspected.
    out : ndarray, the shape and dtype of ``x``, optional
        Written and returned; may be ``x``. Writeable, aligned, no element twice.
    threads : int, optional
        At most this many threads; small arrays are written by one. By default see `posenc.set_threads`.
    **encoding
        Keywords of `Encoding`: base, frequencies, layout, cos_first, odd, amplitude, first.

    Returns
    -------
    ndarray, the shape and dtype of ``x``
        ``out``, or a new array.

    Raises
    ------
    TypeError
        If an argument is of the wrong type, or ``positions`` is given with ``start`` or ``axis``.
    ValueError
        If a value is not as above, or a position times a frequency exceeds 2**64.
    MemoryError
        If the sum does not fit in memory.

    Notes
    -----
    fl(fl(fl(scale) * x) + encoding), where fl rounds to float64 for float64 and to float32 otherwise; a sum of 16 bits is
    rounded once more. The encoding is the correctly rounded float64 or float32. NaN and infinities in ``x`` survive.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", 2017, sections 3.4 and 3.5. https://arxiv.org/abs/1706.03762

    Examples
    --------
    A batch of one sequence, in place, and two packed sequences:

    >>> import numpy as np
    >>> import posenc
    >>> x = np.zeros((1, 2, 4), np.float32)
    >>> posenc.add(x, out=x) is x
    True
    >>> x.round(3).tolist()
    [[[0.0, 1.0, 0.0, 1.0], [0.8410000205039978, 0.5400000214576721, 0.009999999776482582, 1.0]]]
    >>> posenc.add(np.zeros((3, 4)), positions=[0, 1, 0])[2].tolist()
    [0.0, 1.0, 0.0, 1.0]
    """
    x = _arrays.checked_x(x)
    return _chosen(x.shape[-1], encoding).add(
        x, positions=positions, start=start, axis=axis, scale=scale, where=where, out=out, threads=threads
    )


def clear_cache() -> None:
    """Forget the frequencies, rotations and encodings that are kept for later calls (at most 32 MiB).

    Examples
    --------
    >>> import posenc
    >>> posenc.clear_cache()
    """
    CACHE.clear()
    _cached.cache_clear()
