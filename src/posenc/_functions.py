"""The module-level functions: each looks its `Encoding` up by the keywords and calls the method of its own name."""

from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from posenc import _arrays, _foreign
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


def encoding_of(dim: int | Encoding, keywords: dict[str, Any]) -> Encoding:
    """An encoding as it is, or the one of that width and keywords."""
    if not isinstance(dim, Encoding):
        return _chosen(dim, keywords)
    if keywords:
        names = ", ".join(f"{name}=" for name in keywords)
        raise TypeError(f"dim is {dim!r} and {names} given; with an encoding there are no keywords: dim.replace(...)")
    return dim


def table(
    length: int,
    dim: int,
    *,
    start: int | None = None,
    dtype: DTypeLike | None = None,
    out: _foreign.Out | None = None,
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
        Or anything on the CPU with ``__dlpack__`` (a tensor of torch) or a buffer of floats: it is written in place.
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
    out: _foreign.Out | None = None,
    threads: int | None = None,
    **encoding: Any,
) -> NDArray[Any]:
    """The sinusoidal encodings of any positions, each entry correctly rounded.

    Parameters
    ----------
    positions : array_like or range
        Integers (int64) or floats (float16, bfloat16, float32, float64; at most 2**53 in size), of any shape, each taken as
        the exact number it is. Tensors of torch, arrays of JAX and whatever else has ``__dlpack__`` or a buffer are read where
        they are, as everywhere in posenc. A range is not turned into an array; runs of consecutive integers are as fast as
        `table`.
    dim : int
        Width of a row, at least 1.
    where : array_like of bool, optional
        Broadcasts to the shape of ``positions``. Where it is False the row is zeros, unlike with a ufunc, and the position
        is not inspected.
    dtype : {"float32", "float64", "float16", "bfloat16"}, optional
        By default that of ``out``, else float32.
    out : ndarray, shape positions.shape + (dim,), optional
        Written and returned. In native byte order, writeable, aligned, each row contiguous, rows not overlapping.
        Or anything on the CPU with ``__dlpack__`` or a buffer of floats, as for `posenc.table`.
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


def sincos(
    positions: ArrayLike | range,
    dim: int,
    *,
    duplicate: Literal["halves", "pairs"] | None = None,
    dtype: DTypeLike | None = None,
    out: tuple[_foreign.Out, _foreign.Out] | None = None,
    threads: int | None = None,
    **encoding: Any,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Sines and cosines of the angles of an encoding, as rotary embeddings store them; each entry correctly rounded.

    Parameters
    ----------
    positions : array_like or range
        As for `posenc.encode`.
    dim : int
        Width of the encoding, at least 1. Its layout and what an odd width means do not matter.
    duplicate : {"halves", "pairs"}, optional
        Columns twice: s0 s1 ... s0 s1 ..., or s0 s0 s1 s1 ....
    dtype : {"float32", "float64", "float16", "bfloat16"}, optional
        By default that of ``out``, else float32.
    out : tuple of two ndarrays, of the shape of the results, optional
        Written and returned. In native byte order, writeable, aligned, each row contiguous, rows not overlapping.
        Or others, as for `posenc.table`.
    threads : int, optional
        At most this many threads. By default see `posenc.set_threads`.
    **encoding
        Keywords of `Encoding`. The amplitude applies.

    Returns
    -------
    (ndarray, ndarray), each of shape positions.shape + (pairs,), or (2 * pairs,) with ``duplicate``
        Sines and cosines.

    Raises
    ------
    TypeError, ValueError, MemoryError
        As `posenc.encode` does, and if ``duplicate`` or ``out`` is not as above.

    Examples
    --------
    >>> import posenc
    >>> sines, cosines = posenc.sincos(range(2), 4, duplicate="halves")
    >>> cosines
    array([[1.       , 1.       , 1.       , 1.       ],
           [0.5403023, 0.99995  , 0.5403023, 0.99995  ]], dtype=float32)
    """
    return _chosen(dim, encoding).sincos(positions, duplicate=duplicate, dtype=dtype, out=out, threads=threads)


def rotate(
    x: ArrayLike,
    positions: ArrayLike | range,
    *,
    out: _foreign.Out | None = None,
    threads: int | None = None,
    **encoding: Any,
) -> NDArray[Any]:
    """Each pair of ``x`` turned by the angles of its position: shifts an encoding, or is RoPE.

    A pair (s, c), standing where the layout has a sine and its cosine, becomes (s cos + c sin, c cos - s sin): this is the
    shift T of the encoding, rotate(encode(t), delta) = encode(t + delta). With ``cos_first`` the first of a pair (x0, x1) is c:
    (x0 cos - x1 sin, x1 cos + x0 sin), which is RoPE: ``convention("rope", dim)`` for the pairs (2 i, 2 i + 1) and
    ``convention("rope_halves", dim)`` for (i, i + dim / 2). Without it, it is RoPE's inverse.

    Parameters
    ----------
    x : array_like, shape (..., width)
        Of float32, float64, float16 or bfloat16, with any strides.
    positions : array_like
        Of each row of ``x``: integers or floats that broadcast to ``x.shape[:-1]``.
    out : ndarray, the shape and dtype of ``x``, optional
        Written and returned; may be ``x``. Writeable, aligned, no element twice. Or others, as for `posenc.table`.
    threads : int, optional
        At most this many threads. By default see `posenc.set_threads`.
    **encoding
        Keywords of `Encoding`, and ``dim``, by default the width of ``x``: columns past it are left as they are (partial rotary
        embeddings). The amplitude applies.

    Returns
    -------
    ndarray, the shape and dtype of ``x``
        ``out``, or a new array.

    Raises
    ------
    TypeError
        If an argument is of the wrong type.
    ValueError
        If a value is not as above, ``dim`` is odd (but for odd="zero", whose last column is left as it is), or a position times
        a frequency exceeds 2**64.
    MemoryError
        If the result does not fit in memory.

    Notes
    -----
    Sines and cosines are correctly rounded float64; products and sums are float64, each rounded, and the results are rounded
    once to the dtype of ``x``.

    References
    ----------
    Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021. https://arxiv.org/abs/2104.09864

    Examples
    --------
    >>> import posenc
    >>> posenc.rotate([[1.0, 0.0], [1.0, 0.0]], [0, 1], cos_first=True).round(4)
    array([[1.    , 0.    ],
           [0.5403, 0.8415]])
    """
    x = _arrays.checked_x(x)
    return _chosen(encoding.pop("dim", x.shape[-1]), encoding).rotate(x, positions, out=out, threads=threads)


def similarity(offsets: ArrayLike | range, dim: int, **encoding: Any) -> NDArray[np.float64]:
    """The dot product of two encodings as it depends on their distance: ``amplitude**2 * sum_k cos(w_k * offset)``.

    Parameters
    ----------
    offsets : array_like or range
        Distances, as positions of `posenc.encode`.
    dim : int
        Width of the encoding; odd only with odd="zero", as otherwise the dot product depends on the positions.
    **encoding
        Keywords of `Encoding`.

    Returns
    -------
    ndarray of float64, the shape of ``offsets``
        The sum of correctly rounded cosines, from the first frequency to the last, each sum rounded.

    Raises
    ------
    TypeError, ValueError, MemoryError
        As `posenc.encode` does, and if ``dim`` is odd.

    Examples
    --------
    >>> import posenc
    >>> posenc.similarity([0, 1, 100], 64).round(3)
    array([32.   , 30.917, 17.875])
    """
    return _chosen(dim, encoding).similarity(offsets)


def add(
    x: ArrayLike,
    *,
    positions: ArrayLike | range | None = None,
    start: int | None = None,
    axis: int = -2,
    scale: float = 1.0,
    where: ArrayLike | None = None,
    out: _foreign.Out | None = None,
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
        Written and returned; may be ``x``. Writeable, aligned, no element twice. Or others, as for `posenc.table`.
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
