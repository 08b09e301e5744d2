"""Encodings as Arrow columns, and sums with columns of embeddings, in the columns' own memory.

A column is a pyarrow Array or ChunkedArray. Its values are read where they are, sliced or not, and those of the result are the
memory that the core wrote. What is null stays null. How a column is cut into chunks changes no bit.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from posenc import _arrays, _check, _positions
from posenc._counting import positions_from_lengths
from posenc._encoding import Encoding
from posenc._functions import _chosen

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
    pa, e, kind = _pyarrow(), _encoding_of(dim, encoding), _checked_dtype(dtype)

    def encoded(column: Any, _: int) -> Any:
        points = _opened("positions", column)
        ragged = [size for size in points.sizes if not isinstance(size, int)]
        if ragged and len(points.sizes) > 1:
            raise TypeError(f"positions is {column.type}; it must be of numbers, of fixed-size lists, or of lists of numbers")
        rows = e.encode(points.values, where=points.valid, dtype=kind, threads=threads)
        if ragged:
            return _rows_in_lists(rows, points.valid, ragged[0], _validity(column))
        tensor = pa.fixed_shape_tensor(pa.from_numpy_dtype(kind), [*points.sizes, e.dim])
        values = _leaf(tensor.value_type, rows, None)
        lists = _lists(tensor.storage_type, _of_units(points.valid, len(column)), len(column), None, values)
        return pa.ExtensionArray.from_storage(tensor, lists)

    return _by_chunks("positions", positions, encoded)


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
    e, kind = _encoding_of(dim, encoding), _checked_dtype(dtype)

    def encoded(column: Any, _: int) -> Any:
        given = _opened("lengths", column)
        counts = given.values if given.valid is None else np.where(given.valid, given.values, given.values.dtype.type(0))
        if given.sizes or counts.dtype.kind not in "iu":
            raise TypeError(f"lengths is {column.type}; it must be of integers")
        _positions.check_all("lengths", counts, counts < 0, "at least 0")
        _check.integer("the sum of lengths", sum(counts.tolist()), most=_MOST_ROWS)
        rows = e.encode(_packed(e, counts, start), dtype=kind, threads=threads)
        return _rows_in_lists(rows, None, counts, given.valid)

    return _by_chunks("lengths", lengths, encoded)


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
    pa = _pyarrow()
    if positions is not None and start is not None:
        raise TypeError(f"positions is given with start={start}; they exclude each other")
    if isinstance(positions, pa.ChunkedArray):
        positions = positions.combine_chunks()
    if isinstance(positions, pa.Array) and isinstance(x, pa.Array | pa.ChunkedArray) and len(positions) != len(x):
        raise ValueError(f"positions is a column of {len(positions)}; it must be as long as x, {len(x)}")

    def added(column: Any, begin: int) -> Any:
        rows = _opened("x", column)
        if not rows.sizes:
            raise TypeError(f"x is {column.type}; it must be of rows: of lists, or of tensors of a fixed shape")
        *sizes, width = rows.sizes
        if not isinstance(width, int):
            width = _one_width(width)
        if width is None and dim is None:
            return column
        e = _encoding_of(width if dim is None else dim, encoding)
        if width not in (None, e.dim):
            raise ValueError(f"x is {column.type} with rows of {width} values; they must be of the encoding's dim, {e.dim}")
        values = rows.values.reshape(-1, e.dim)
        if positions is None:
            if not sizes:
                raise ValueError(f"x is {column.type}, rows in no sequence; positions= must say where each stands")
            return _closed(column, _added_in_sequences(e, values, sizes[-1], start, scale, threads), None)
        points, valid = _of_rows(positions, column, begin, len(x), sizes)
        return _closed(column, e.add(values, positions=points, scale=scale, where=valid, threads=threads), valid)

    return _by_chunks("x", x, added)


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
    if isinstance(positions, _pyarrow().Array):
        points = _opened("positions", positions.slice(begin, len(column)))
        if not _are_same(points.sizes, sizes):
            raise ValueError(
                f"positions is {positions.type} of other lengths than x, {column.type}; it must have one for each row"
            )
        return points.values, points.valid
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


@cache
def _pyarrow() -> Any:
    try:
        return import_module("pyarrow")
    except ImportError as error:
        raise ImportError("posenc.arrow needs pyarrow: pip install 'posenc[arrow]'") from error


def _encoding_of(dim: int | Encoding, keywords: dict[str, Any]) -> Encoding:
    if not isinstance(dim, Encoding):
        return _chosen(dim, keywords)
    if keywords:
        names = ", ".join(f"{name}=" for name in keywords)
        raise TypeError(f"dim is {dim!r} and {names} given; with an encoding there are no keywords: dim.replace(...)")
    return dim


def _checked_dtype(dtype: DTypeLike | None) -> np.dtype[Any]:
    wanted = dtype if isinstance(dtype, str) else _arrays.checked_dtype(dtype, None).name
    if wanted == "bfloat16":
        raise TypeError("dtype is bfloat16, which Arrow does not have; it must be float32, float64 or float16")
    return _arrays.checked_dtype(wanted, None)


def _by_chunks(name: str, column: Any, function: Callable[[Any, int], Any]) -> Any:
    """What a function of an array and of where it begins makes of a column."""
    pa = _pyarrow()
    if isinstance(column, pa.Array):
        return function(column, 0)
    if not isinstance(column, pa.ChunkedArray):
        raise TypeError(f"{name} must be a pyarrow Array or ChunkedArray, not {type(column).__name__}")
    made, begin = [], 0
    for chunk in column.chunks or [pa.array([], column.type)]:
        made.append(function(chunk, begin))
        begin += len(chunk)
    return pa.chunked_array(made)


# ---- columns ---------------------------------------------------------------------------------------------------------


class _Opened(NamedTuple):
    sizes: list[Any]  # of the lists, from the outermost: an int for all of a level, or an array of one for each
    values: NDArray[Any]  # flat; anything where they are null
    valid: NDArray[np.bool_] | None  # which values are not null, and in nothing that is; None for all


def _opened(name: str, column: Any) -> _Opened:
    """What a column holds, where it is."""
    sizes: list[Any] = []
    valid: NDArray[np.bool_] | None = None
    while True:
        shape, column = _of_tensors(name, column)
        own = _validity(column)
        valid = own if valid is None else valid if own is None else valid & own
        if not _is_list(column):
            return _Opened(sizes, _values(name, column), valid)
        size = _size(column)
        sizes += [size] if shape is None else shape
        valid = None if valid is None else np.repeat(valid, size)
        column = _items(column)


def _of_tensors(name: str, column: Any) -> tuple[list[int] | None, Any]:
    """The shape of tensors, and what an extension type stores them as."""
    pa, shape = _pyarrow(), None
    while isinstance(column.type, pa.BaseExtensionType):
        if isinstance(column.type, pa.FixedShapeTensorType):
            order, shape = column.type.permutation, column.type.shape
            if order not in (None, sorted(order or ())):
                raise ValueError(f"{name} is of tensors with permutation {order}; their axes must be in order")
        column = column.storage
    return shape, column


def _is_list(column: Any) -> bool:
    types, kind = _pyarrow().types, column.type
    return any(is_such(kind) for is_such in (types.is_list, types.is_large_list, types.is_fixed_size_list))


def _size(column: Any) -> int | NDArray[Any]:
    """Of each list."""
    if _pyarrow().types.is_fixed_size_list(column.type):
        return int(column.type.list_size)
    sizes: NDArray[Any] = np.diff(column.offsets.to_numpy())
    return sizes


def _items(column: Any) -> Any:
    """What the lists hold, also those that are null."""
    if _pyarrow().types.is_fixed_size_list(column.type):
        size = column.type.list_size
        return column.values.slice(column.offset * size, len(column) * size)
    begin, end = column.offsets[0].as_py(), column.offsets[-1].as_py()
    return column.values.slice(begin, end - begin)


def _validity(column: Any) -> NDArray[np.bool_] | None:
    """What is not null; None if nothing is."""
    return column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None


def _values(name: str, column: Any) -> NDArray[Any]:
    pa, kind = _pyarrow(), column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise TypeError(f"{name} holds {kind}; it must hold integers or floats, or lists of them")
    values: NDArray[Any] = pa.Array.from_buffers(
        kind, len(column), [None, column.buffers()[1]], offset=column.offset
    ).to_numpy()
    return values


def _one_width(widths: NDArray[Any]) -> int | None:
    """That of all rows, or None if there is no row."""
    wrong = np.flatnonzero(widths != widths[:1])
    if wrong.size:
        raise ValueError(f"x has rows of {widths[0]} and of {widths[wrong[0]]} values; they must be of one width")
    return int(widths[0]) if widths.size else None


def _are_same(sizes: list[Any], others: list[Any]) -> bool:
    return len(sizes) == len(others) and all(bool(np.all(a == b)) for a, b in zip(sizes, others, strict=True))


def _of_units(valid: NDArray[np.bool_] | None, count: int) -> NDArray[np.bool_] | None:
    """Which of so many lists, that hold the positions of as many rows each, are not null."""
    if valid is None or len(valid) == count:
        return valid
    units = valid.reshape(count, -1)
    whole: NDArray[np.bool_] = np.asarray(units.all(axis=1))
    parts = np.flatnonzero(whole != units.any(axis=1))
    if parts.size:
        raise ValueError(f"positions[{parts[0]}] is null in part; it must be null as a whole, as rows of a tensor cannot be")
    return whole


def _leaf(kind: Any, values: NDArray[Any], valid: NDArray[np.bool_] | None) -> Any:
    pa = _pyarrow()
    return pa.Array.from_buffers(kind, values.size, [_bits(valid), pa.py_buffer(values)])


def _lists(kind: Any, valid: NDArray[np.bool_] | None, count: int, sizes: NDArray[Any] | None, items: Any) -> Any:
    pa = _pyarrow()
    buffers = [_bits(valid)]
    if sizes is not None:
        offsets = np.zeros(count + 1, np.int64 if pa.types.is_large_list(kind) else np.int32)
        offsets[1:] = np.cumsum(sizes)
        buffers.append(pa.py_buffer(offsets))
    return pa.Array.from_buffers(kind, count, buffers, children=[items])


def _bits(valid: NDArray[np.bool_] | None) -> Any:
    return None if valid is None else _pyarrow().py_buffer(np.packbits(valid, bitorder="little"))


def _rows_in_lists(
    rows: NDArray[Any], valid: NDArray[np.bool_] | None, sizes: NDArray[Any], lists_valid: NDArray[np.bool_] | None
) -> Any:
    pa = _pyarrow()
    value = pa.from_numpy_dtype(rows.dtype)
    row = _lists(pa.list_(value, rows.shape[1]), valid, len(rows), None, _leaf(value, rows, None))
    return _lists(pa.list_(row.type), lists_valid, len(sizes), sizes, row)


def _closed(like: Any, values: NDArray[Any], valid: NDArray[np.bool_] | None) -> Any:
    """A column of the type and the nulls of ``like``, of other values; rows that are not ``valid`` are null, too."""
    pa, kind = _pyarrow(), like.type
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, _closed(like.storage, values, valid))
    own = _validity(like)
    if not _is_list(like):
        return _leaf(kind, values, own)
    items, size = _items(like), _size(like)
    if valid is not None and not _is_list(_of_tensors("x", items)[1]):
        units = _of_units(valid, len(like))
        own = units if own is None or units is None else own & units
    return _lists(kind, own, len(like), None if isinstance(size, int) else size, _closed(items, values, valid))
