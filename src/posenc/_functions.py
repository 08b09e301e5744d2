"""The module-level functions: each looks its `Encoding` up by the keywords and calls the method of its own name."""

from functools import lru_cache
from typing import Any

from numpy.typing import DTypeLike, NDArray

from posenc._encoding import CACHE, Encoding


@lru_cache(maxsize=256, typed=True)
def _cached(dim: int, **encoding: Any) -> Encoding:
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
    try:
        chosen = _cached(dim, **encoding)
    except (TypeError, ValueError):  # also for what cannot be hashed; the constructor says which argument is wrong
        chosen = Encoding(dim, **encoding)
    return chosen.table(length, start=start, dtype=dtype, out=out, threads=threads)


def clear_cache() -> None:
    """Forget the frequencies, rotations and encodings that are kept for later calls (at most 32 MiB).

    Examples
    --------
    >>> import posenc
    >>> posenc.clear_cache()
    """
    CACHE.clear()
    _cached.cache_clear()
