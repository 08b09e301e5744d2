"""Encodings as dask arrays: graphs without data, whose blocks are computed where they are needed.

Every block is what the function of the same name in `posenc` returns for its positions, so no chunking changes a bit.
"""

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from posenc import _arrays, _positions, _sums, _threads
from posenc._encoding import Encoding, farthest
from posenc._functions import encoding_of

if TYPE_CHECKING:
    from dask.array import Array

__all__ = ["add", "encode", "table"]


def table(
    length: int,
    dim: int | Encoding,
    *,
    start: int | None = None,
    dtype: DTypeLike | None = None,
    chunks: Any = "auto",
    threads: int | None = 1,
    **encoding: Any,
) -> "Array":
    """The encodings of ``length`` consecutive positions, as `posenc.table`, in blocks that are computed when they are needed.

    Of a block that is sliced, as in ``table(10**9, 512)[7:9]``, only those rows are, where dask optimises graphs.

    Parameters
    ----------
    length : int
        Rows, at least 0.
    dim : int or Encoding
        Width of a row, at least 1, or an encoding.
    start : int, optional
        Position of the first row, by default the encoding's first position. The last one too must be an int64.
    dtype : {"float32", "float64", "float16", "bfloat16"}, optional
        By default float32.
    chunks : int, str or tuple, default "auto"
        Rows of a block, whole: a number, "auto" or bytes as "64 MiB"; or what dask takes for both axes, as a tuple. A block of
        some of the columns is cut from its whole rows.
    threads : int or None, default 1
        Threads of one block. Dask computes blocks side by side; None is the default of `posenc.set_threads`.
    **encoding
        Keywords of `Encoding`, with an int ``dim``.

    Returns
    -------
    dask.array.Array, shape (length, dim)
        Its name is a function of the arguments.

    Raises
    ------
    TypeError, ValueError
        As `posenc.table` does, before anything is computed; what dask says of ``chunks``.
    ImportError
        If dask is missing.

    Examples
    --------
    >>> import posenc
    >>> t = posenc.dask.table(10**9, 512, chunks=2**16)
    >>> t.nbytes // 2**40, t.numblocks
    (1, (15259, 1))
    >>> t[-1, :3].compute()
    array([-0.41013727,  0.9120238 ,  0.4050435 ], dtype=float32)
    """
    da = _dask_array()
    e = encoding_of(dim, encoding)
    length, start = e._checked_range(length, start)
    kind = _arrays.checked_dtype(dtype, None)
    e._rows.check_domain(kind, farthest(start, length))
    if threads is not None:
        threads = _threads.checked("threads", threads)
    rows = _Table(e, range(start, start + length), kind, threads)
    if not isinstance(chunks, tuple | list | dict):
        chunks = (chunks, -1)
    name = f"posenc-table-{import_module('dask.base').tokenize(e, start, length, kind.name, chunks)}"
    made: Array = da.from_array(rows, chunks=chunks, name=name, meta=np.empty((0, 0), kind), inline_array=True)
    return made


def encode(
    positions: Any,
    dim: int | Encoding,
    *,
    where: Any = None,
    dtype: DTypeLike | None = None,
    threads: int | None = 1,
    **encoding: Any,
) -> "Array":
    """The encodings of any positions, as `posenc.encode`, a block for each block of positions.

    Parameters
    ----------
    positions : dask.array.Array, array_like or range
        As for `posenc.encode`. What is not a dask array is cut so that the blocks of the result are of dask's size.
    dim : int or Encoding
        Width of a row, at least 1, or an encoding.
    where : dask.array.Array or array_like of bool, optional
        Broadcasts to the shape of ``positions``. Where it is False the row is zeros, and the position is not inspected.
    dtype : {"float32", "float64", "float16", "bfloat16"}, optional
        By default float32.
    threads : int or None, default 1
        Threads of one block. Dask computes blocks side by side; None is the default of `posenc.set_threads`.
    **encoding
        Keywords of `Encoding`, with an int ``dim``.

    Returns
    -------
    dask.array.Array, shape positions.shape + (dim,)
        The chunks of ``positions``, cut further where those of a dask array ``where`` end, and whole rows.

    Raises
    ------
    TypeError, ValueError
        As `posenc.encode` does; what depends on values when the block is computed, with indices in the block.
    ImportError
        If dask is missing.

    Examples
    --------
    >>> import dask.array as da
    >>> import posenc
    >>> positions = da.from_array([[0, 7], [0.5, -3]], chunks=1)
    >>> posenc.dask.encode(positions, 2)
    dask.array<posenc-encode, shape=(2, 2, 2), dtype=float32, chunksize=(1, 1, 2), chunktype=numpy.ndarray>
    >>> posenc.dask.encode(positions, 2)[1, 0].compute()
    array([0.47942555, 0.87758255], dtype=float32)
    """
    da = _dask_array()
    e = encoding_of(dim, encoding)
    kind = _arrays.checked_dtype(dtype, None)
    points = positions
    if not isinstance(positions, da.Array):
        whole, shape = _whole(positions)
        chunks = da.core.normalize_chunks(("auto",) * len(shape) + (-1,), (*shape, e.dim), dtype=kind)
        points = _cut(whole, chunks[:-1])
    axes = tuple(range(points.ndim))
    operands = [points, axes, *_operand("where", where, points.shape, points.chunks)]
    keywords: dict[str, Any] = {"encoding": e, "kind": kind, "threads": threads}
    meta = _encode_block(*map(_meta, operands[::2]), **keywords)
    out = (*axes, points.ndim)
    made: Array = da.blockwise(
        _encode_block, out, *operands, token="posenc-encode", new_axes={points.ndim: e.dim}, meta=meta, **keywords
    )
    return made


def add(
    x: Any,
    *,
    dim: int | Encoding | None = None,
    positions: Any = None,
    start: int | None = None,
    axis: int = -2,
    scale: float = 1.0,
    where: Any = None,
    threads: int | None = 1,
    **encoding: Any,
) -> "Array":
    """``scale * x`` plus the encodings of its positions, as `posenc.add`, a block for each block of ``x``: no table is made.

    Parameters
    ----------
    x : dask.array.Array or array_like, shape (..., dim)
        Of float32, float64, float16 or bfloat16. In chunks of whole rows, or it is rechunked to such.
    dim : int or Encoding, optional
        By default the width of ``x``.
    positions : dask.array.Array, array_like or range, optional
        Of each row of ``x``: integers or floats that broadcast to ``x.shape[:-1]``. In place of ``start`` and ``axis``.
    start : int, optional
        Position of the first element along ``axis``, by default the encoding's first position.
    axis : int, default -2
        Of ``x``, that of the sequence; not the last. Its length must be known; those of other axes need not be.
    scale : float, default 1.0
        What ``x`` is multiplied by; it is rounded to the dtype of the sum.
    where : dask.array.Array or array_like of bool, optional
        Broadcasts to ``x.shape[:-1]``. Where it is False, ``scale * x`` alone; the positions there are not inspected.
    threads : int or None, default 1
        Threads of one block. Dask computes blocks side by side; None is the default of `posenc.set_threads`.
    **encoding
        Keywords of `Encoding`, without ``dim`` or with an int.

    Returns
    -------
    dask.array.Array, the shape and dtype of ``x``
        The chunks of ``x``, cut further where those of dask arrays ``positions`` and ``where`` end, and whole rows.

    Raises
    ------
    TypeError, ValueError
        As `posenc.add` does; what depends on values when the block is computed, with indices in the block.
    ImportError
        If dask is missing.

    Examples
    --------
    >>> import dask.array as da
    >>> import posenc
    >>> x = da.zeros((32, 4096, 512), chunks=(8, 1000, 512), dtype="float16")
    >>> y = posenc.dask.add(x, scale=512**0.5)
    >>> y.chunksize, y.dtype
    ((8, 1000, 512), dtype('float16'))
    >>> y[3, 1234, :3].compute()
    array([ 0.602 , -0.7983,  0.2678], dtype=float16)
    """
    da = _dask_array()
    x = da.asanyarray(x)
    if x.ndim == 0 or not x.shape[-1] >= 1:
        raise ValueError(f"x has shape {x.shape}; it must have a last axis of a known size, at least 1, that of the encodings")
    e = encoding_of(x.shape[-1] if dim is None else dim, encoding)
    if x.shape[-1] != e.dim:
        raise ValueError(f"x has shape {x.shape}; its last axis must be the encoding's dim, {e.dim}")
    if x.numblocks[-1] > 1:
        x = x.rechunk({x.ndim - 1: -1})
    lead, chunks = x.shape[:-1], x.chunks[:-1]
    behind = 0  # axes of x between those of positions and the last
    if positions is None:
        along = _sums.checked_axis(axis, x.ndim)
        points = [_along(e, x, along, start), (along,)]
        behind = len(lead) - 1 - along
    elif start is not None or axis != -2:
        raise TypeError(f"positions is given with start={start} and axis={axis}; they exclude it")
    else:
        points = _operand("positions", positions, lead, chunks)
    axes = tuple(range(x.ndim))
    operands = [x, axes, *points, *_operand("where", where, lead, chunks)]
    keywords: dict[str, Any] = {"encoding": e, "scale": scale, "behind": behind, "threads": threads}
    meta = _add_block(np.empty_like(x._meta, shape=(0,) * len(lead) + x.shape[-1:]), *map(_meta, operands[2::2]), **keywords)
    made: Array = da.blockwise(_add_block, axes, *operands, token="posenc-add", meta=meta, **keywords)
    return made


# ---- blocks ----------------------------------------------------------------------------------------------------------


class _Table:
    """A table as `dask.array.from_array` reads it: by slices, whose rows are computed as they are asked for."""

    ndim = 2

    def __init__(self, encoding: Encoding, positions: range, kind: np.dtype[Any], threads: int | None) -> None:
        self.shape = (len(positions), encoding.dim)
        self.dtype = kind
        self._encoding, self._positions, self._threads = encoding, positions, threads

    def __getitem__(self, index: tuple[Any, Any]) -> NDArray[Any]:
        rows, columns = index
        many = isinstance(rows, list | np.ndarray)
        positions = np.asarray(rows) + self._positions.start if many else self._positions[rows]
        whole = self._encoding.encode(positions, dtype=self.dtype, threads=self._threads)
        return np.asarray(whole[..., columns], order="C")  # not a view that would keep the whole rows


def _encode_block(
    positions: NDArray[Any],
    where: NDArray[np.bool_] | None = None,
    *,
    encoding: Encoding,
    kind: np.dtype[Any],
    threads: int | None,
) -> NDArray[Any]:
    return encoding.encode(positions, where=where, dtype=kind, threads=threads)


def _add_block(
    x: NDArray[Any],
    positions: NDArray[Any],
    where: NDArray[np.bool_] | None = None,
    *,
    encoding: Encoding,
    scale: float,
    behind: int,
    threads: int | None,
) -> NDArray[Any]:
    positions = positions.reshape(positions.shape + (1,) * behind)
    return encoding.add(x, positions=positions, scale=scale, where=where, threads=threads)


# ---- arguments -------------------------------------------------------------------------------------------------------


@cache
def _dask_array() -> Any:
    try:
        array, base = import_module("dask.array"), import_module("dask.base")
    except ImportError as error:
        raise ImportError("posenc.dask needs dask: pip install 'posenc[dask]'") from error

    def token(encoding: Encoding) -> Any:
        """What names in graphs are made of: the parameters, the same in every process."""
        dim, frequencies, *rest = encoding._identity()
        return base.normalize_token(("posenc.Encoding", dim, frequencies.key, *rest))

    base.normalize_token.register(Encoding, token)
    return array


def _whole(positions: Any) -> tuple[range | NDArray[Any], tuple[int, ...]]:
    """Positions that are not dask's, and their shape; a range remains one."""
    whole = _positions.checked_range(positions) if isinstance(positions, range) else _positions.as_array(positions)
    return whole, (len(whole),) if isinstance(whole, range) else whole.shape


def _cut(whole: range | NDArray[Any], chunks: Any) -> "Array":
    """A dask array of what it holds; of a range each block makes its own."""
    da = _dask_array()
    made: Array
    if isinstance(whole, range):
        first, step = (whole[0], whole.step) if len(whole) > 1 else (whole[0] if whole else 0, 1)
        made = da.arange(len(whole), chunks=chunks, dtype=np.int64) * step + first  # modulo 2**64: exact
    else:
        made = da.from_array(whole, chunks=chunks)
    return made


def _along(encoding: Encoding, x: Any, axis: int, start: int | None) -> "Array":
    """The positions along an axis of x, in its chunks."""
    size = x.shape[axis]
    if size != size:
        raise ValueError(f"x has shape {x.shape}; its size along axis {axis} must be known: x.compute_chunk_sizes()")
    length, first = encoding._checked_range(size, start)
    encoding._rows.check_domain(x.dtype if x.dtype == np.float64 else _arrays.FLOAT32, farthest(first, length))
    return _cut(range(first, first + length), (x.chunks[axis],))


def _operand(name: str, given: Any, shape: tuple[Any, ...], chunks: Any) -> list[Any]:
    """What `blockwise` takes for an array that broadcasts to ``shape``: cut into ``chunks``, if it is not dask's; its axes."""
    if given is None:
        return []
    array, is_dask = given, isinstance(given, _dask_array().Array)
    if is_dask:
        sizes = given.shape
    elif name == "where":
        array = _positions.of_kind("where", given, "b", "booleans")
        sizes = array.shape
    else:
        array, sizes = _whole(given)
    known = all(n == n for n in (*sizes, *shape))  # the others are nan, and checked when they are computed
    _positions.check_broadcast(name, sizes if known else (1,) * len(sizes), shape)
    front = len(shape) - len(sizes)
    if not is_dask:
        own = zip(sizes, shape[front:], chunks[front:], strict=True)
        array = _cut(array, tuple(cut if n == size else (n,) for n, size, cut in own))
    return [array, tuple(range(front, len(shape)))]


def _meta(array: Any) -> NDArray[Any]:
    """No elements, of the array's type."""
    return np.empty_like(array._meta, shape=(0,) * array.ndim)
