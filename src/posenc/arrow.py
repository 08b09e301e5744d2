"""Encodings as Arrow columns, and sums with columns of embeddings, in the columns' own memory.

A column is a pyarrow Array or ChunkedArray. Its values are read where they are, sliced or not, and those of the result are the
memory that the core wrote. What is null stays null. How a column is cut into chunks changes no bit.
"""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from posenc import _arrays, _check, _columns, _positions
from posenc._counting import positions_from_lengths
from posenc._encoding import Encoding
from posenc._functions import encoding_of

__all__ = ["add", "encode", "encode_lengths"]

_MOST_ROWS = 2**31 - 1  # in the lists of one array, whose offsets are int32


def encode(
    positions: Any,
    dim: int | Encoding,
    *,
    dtype: DTypeLike | None = None,
    threads: int | None = None,
    **encoding: Any,
) -> Any:
    """The encodings of a column of positions, as `posenc.encode`: a column of rows.

    Parameters
    ----------
    positions : pyarrow.Array or pyarrow.ChunkedArray
        Integers or floats, or lists of them. What is null is not inspected.
    dim : int or Encoding
        Width of a row, at least 1, or an encoding.
    dtype : {"float32", "float64", "float16"}, optional
        By default float32.
    threads : int, optional
        At most this many threads. By default see `posenc.set_threads`.
    **encoding
        Keywords of `Encoding`, with an int ``dim``.

    Returns
    -------
    pyarrow.FixedShapeTensorArray, or a ChunkedArray of such, as ``positions`` is one
        Of numbers, tensors of shape (dim,); of fixed-size lists, (size, dim). Of other lists, lists of fixed-size lists.

    Raises
    ------
    TypeError
        If an argument is of the wrong type. Arrow has no bfloat16.
    ValueError
        As `posenc.encode` does, with indices in the chunk, and if a part of a fixed-size list is null.
    ImportError
        If pyarrow is missing.

    Examples
    --------
    >>> import posenc
    >>> import pyarrow as pa
    >>> rows = posenc.arrow.encode(pa.array([0, None, 7]), 2)
    >>> rows.type.shape, rows.null_count, rows.storage[2].as_py() == posenc.encode(7, 2).tolist()
    ([2], 1, True)
    """
    pa, e, kind = _columns.pyarrow(), encoding_of(dim, encoding), _checked_dtype(dtype)

    def encoded(column: Any, _: int) -> Any:
        sizes, points = _columns.opened("positions", column)
        valid = _columns.whole("positions", column)
        ragged = [size for size in sizes if not isinstance(size, int)]
        if ragged and len(sizes) > 1:
            raise TypeError(f"positions is {column.type}; it must be of numbers, of fixed-size lists, or of lists of numbers")
        rows = e.encode(points, where=valid, dtype=kind, threads=threads)
        if ragged:
            return _columns.rows_in_lists(rows, valid, ragged[0], _columns.validity(column))
        tensor = pa.fixed_shape_tensor(pa.from_numpy_dtype(kind), [*sizes, e.dim])
        values = _columns.leaf(tensor.value_type, rows, None)
        valid = _columns.both(_columns.validity(column), _columns.of_units(valid, len(column)))
        lists = _columns.lists(tensor.storage_type, valid, len(column), None, values)
        return pa.ExtensionArray.from_storage(tensor, lists)

    return _columns.by_chunks("positions", positions, encoded)


def encode_lengths(
    lengths: Any,
    dim: int | Encoding,
    *,
    start: int | None = None,
    dtype: DTypeLike | None = None,
    threads: int | None = None,
    **encoding: Any,
) -> Any:
    """A table for each length of a column: a column of lists, whose values are the packed rows.

    Parameters
    ----------
    lengths : pyarrow.Array or pyarrow.ChunkedArray
        Integers, at least 0.
    dim : int or Encoding
        Width of a row, at least 1, or an encoding.
    start : int, optional
        Position of the first row of each, by default the encoding's first position, 0.
    dtype : {"float32", "float64", "float16"}, optional
        By default float32.
    threads : int, optional
        At most this many threads. By default see `posenc.set_threads`.
    **encoding
        Keywords of `Encoding`, with an int ``dim``.

    Returns
    -------
    pyarrow.ListArray of fixed-size lists of ``dim``, or a ChunkedArray of such, as ``lengths`` is one
        Of a null, a null.

    Raises
    ------
    TypeError, ValueError, ImportError
        As `encode` does, and if a length is negative, or those of a chunk add up to 2**31 rows.

    Examples
    --------
    >>> import posenc
    >>> import pyarrow as pa
    >>> tables = posenc.arrow.encode_lengths(pa.array([3, None, 2]), 4)
    >>> tables.type, tables.offsets.to_pylist()
    (ListType(list<item: fixed_size_list<item: float>[4]>), [0, 3, 3, 5])
    >>> tables[2].as_py() == posenc.table(2, 4).tolist()
    True
    """
    e, kind = encoding_of(dim, encoding), _checked_dtype(dtype)

    def encoded(column: Any, _: int) -> Any:
        sizes, counts = _columns.opened("lengths", column)
        valid = _columns.whole("lengths", column)
        if valid is not None:
            counts = np.where(valid, counts, counts.dtype.type(0))
        if sizes or counts.dtype.kind not in "iu":
            raise TypeError(f"lengths is {column.type}; it must be of integers")
        _positions.check_all("lengths", counts, counts < 0, "at least 0")
        _check.integer("the sum of lengths", sum(counts.tolist()), most=_MOST_ROWS)
        rows = e.encode(_packed(e, counts, start), dtype=kind, threads=threads)
        return _columns.rows_in_lists(rows, None, counts, valid)

    return _columns.by_chunks("lengths", lengths, encoded)


def add(
    x: Any,
    *,
    dim: int | Encoding | None = None,
    positions: Any = None,
    start: int | None = None,
    scale: float = 1.0,
    threads: int | None = None,
    **encoding: Any,
) -> Any:
    """A column of embeddings plus their positions' encodings, ``scale * x + PE``, as `posenc.add`.

    Parameters
    ----------
    x : pyarrow.Array or pyarrow.ChunkedArray
        Of float32, float64 or float16: sequences, as tensors of a fixed shape (..., length, dim) or as lists of any kind whose
        innermost are rows; positions begin anew in each. Or rows, with ``positions``.
    dim : int or Encoding, optional
        By default the width of the rows.
    positions : pyarrow.Array, pyarrow.ChunkedArray, array_like or range, optional
        Of each row of ``x``: a column as long as ``x`` of numbers, or of lists of the lengths that those of ``x`` have. Where
        one is null, so is the row. Or an array that broadcasts to the shape of ``x`` without its last axis, if it has one.
    start : int, optional
        Position of the first row of each sequence, by default the encoding's first position, 0. Excludes ``positions``.
    scale : float, default 1.0
        What ``x`` is multiplied by.
    threads : int, optional
        At most this many threads. By default see `posenc.set_threads`.
    **encoding
        Keywords of `Encoding`, without ``dim`` or with an int.

    Returns
    -------
    pyarrow.Array or pyarrow.ChunkedArray, of the type, nulls and chunks of ``x``

    Raises
    ------
    TypeError
        If an argument is of the wrong type, or ``positions`` is given with ``start``.
    ValueError
        As `posenc.add` does, with indices in the chunk; if rows are of several widths, or stand in no sequence and
        ``positions`` are not given; if some positions of a tensor are null and others not.
    ImportError
        If pyarrow is missing.

    Examples
    --------
    >>> import numpy as np
    >>> import posenc
    >>> import pyarrow as pa
    >>> x = pa.FixedShapeTensorArray.from_numpy_ndarray(np.zeros((10, 3, 4), np.float16))
    >>> y = posenc.arrow.add(x)
    >>> y.type == x.type, np.array_equal(y.to_numpy_ndarray()[9], posenc.table(3, 4, dtype="float16"))
    (True, True)
    """
    pa = _columns.pyarrow()
    if positions is not None and start is not None:
        raise TypeError(f"positions is given with start={start}; they exclude each other")
    if isinstance(positions, pa.ChunkedArray):
        positions = positions.combine_chunks()
    if isinstance(positions, pa.Array) and isinstance(x, pa.Array | pa.ChunkedArray) and len(positions) != len(x):
        raise ValueError(f"positions is a column of {len(positions)}; it must be as long as x, {len(x)}")

    def added(column: Any, begin: int) -> Any:
        levels, values = _columns.opened("x", column)
        if not levels:
            raise TypeError(f"x is {column.type}; it must be of rows: of lists, or of tensors of a fixed shape")
        *sizes, width = levels
        if not isinstance(width, int):
            width = _columns.one_width(width)
        if width is None and dim is None:
            return column
        e = encoding_of(width if dim is None else dim, encoding)
        if width not in (None, e.dim):
            raise ValueError(f"x is {column.type} with rows of {width} values; they must be of the encoding's dim, {e.dim}")
        values = values.reshape(-1, e.dim)
        if positions is None:
            if not sizes:
                raise ValueError(f"x is {column.type}, rows in no sequence; positions= must say where each stands")
            return _columns.closed(column, _added_in_sequences(e, values, sizes[-1], start, scale, threads), None)
        points, valid = _of_rows(positions, column, begin, len(x), sizes)
        return _columns.closed(column, e.add(values, positions=points, scale=scale, where=valid, threads=threads), valid)

    return _columns.by_chunks("x", x, added)


def _added_in_sequences(
    e: Encoding, values: NDArray[Any], size: int | NDArray[Any], start: int | None, scale: float, threads: int | None
) -> NDArray[Any]:
    """The sum, where positions begin anew in each sequence, of ``size`` rows."""
    if not isinstance(size, int):
        return e.add(values, positions=_packed(e, size, start), scale=scale, threads=threads)
    sequences = values.reshape(len(values) // max(size, 1), size, e.dim)
    return e.add(sequences, start=start, scale=scale, threads=threads)


def _of_rows(
    positions: Any, column: Any, begin: int, length: int, sizes: list[Any]
) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """The position of each row of a chunk that begins there in x, and which of them are not null."""
    if isinstance(positions, _columns.pyarrow().Array):
        given = positions.slice(begin, len(column))
        levels, points = _columns.opened("positions", given)
        if not _columns.are_same(levels, sizes):
            raise ValueError(
                f"positions is {positions.type} of other lengths than x, {column.type}; it must have one for each row"
            )
        return points, _columns.whole("positions", given)
    if not all(isinstance(size, int) for size in sizes):
        raise TypeError(f"positions must be a column of lists, as x is {column.type}, not {type(positions).__name__}")
    array, shape = _positions.as_array(positions), (length, *sizes)
    _positions.check_broadcast("positions", array.shape, shape)
    return np.broadcast_to(array, shape)[begin : begin + len(column)].reshape(-1), None


def _packed(e: Encoding, lengths: NDArray[Any], start: int | None) -> NDArray[np.int64]:
    _, first = e._checked_range(int(lengths.max(initial=0)), start)
    points = positions_from_lengths(lengths)
    points += first
    return points


# ---- arguments -------------------------------------------------------------------------------------------------------


def _checked_dtype(dtype: DTypeLike | None) -> np.dtype[Any]:
    wanted = dtype if isinstance(dtype, str) else _arrays.checked_dtype(dtype, None).name
    if wanted == "bfloat16":
        raise TypeError("dtype is bfloat16, which Arrow does not have; it must be float32, float64 or float16")
    return _arrays.checked_dtype(wanted, None)
