"""Columns of Arrow as flat arrays of what they hold, in place, and the other way round."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray


@cache
def pyarrow() -> Any:
    try:
        return import_module("pyarrow")
    except ImportError as error:
        raise ImportError("posenc.arrow needs pyarrow: pip install 'posenc[arrow]'") from error


def by_chunks(name: str, column: Any, function: Callable[[Any, int], Any]) -> Any:
    """What a function of an array and of where it begins makes of a column."""
    pa = pyarrow()
    if isinstance(column, pa.Array):
        return function(column, 0)
    if not isinstance(column, pa.ChunkedArray):
        raise TypeError(f"{name} must be a pyarrow Array or ChunkedArray, not {type(column).__name__}")
    made, begin = [], 0
    for chunk in column.chunks or [pa.array([], column.type)]:
        made.append(function(chunk, begin))
        begin += len(chunk)
    return pa.chunked_array(made)


def opened(name: str, column: Any) -> tuple[list[Any], NDArray[Any]]:
    """The sizes of a column's lists, from the outermost, and its values where they are: flat, anything where they are null.

    The sizes of a level are an int, if they are the same by its type, or an array of one for each list.
    """
    sizes: list[Any] = []
    while True:
        shape, column = _of_tensors(name, column)
        if not _is_list(column):
            return sizes, _values(name, column)
        sizes += [_size(column)] if shape is None else shape
        column = _items(column)


def whole(name: str, column: Any) -> NDArray[np.bool_] | None:
    """Which values are not null, nor in a list that is; None for all."""
    valid: NDArray[np.bool_] | None = None
    while True:
        column = _of_tensors(name, column)[1]
        valid = both(valid, validity(column))
        if not _is_list(column):
            return valid
        valid = None if valid is None else np.repeat(valid, _size(column))
        column = _items(column)


def both(valid: NDArray[np.bool_] | None, other: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
    return other if valid is None else valid if other is None else valid & other


def _of_tensors(name: str, column: Any) -> tuple[list[int] | None, Any]:
    """The shape of tensors, and what an extension type stores them as."""
    pa, shape = pyarrow(), None
    while isinstance(column.type, pa.BaseExtensionType):
        if isinstance(column.type, pa.FixedShapeTensorType):
            order, shape = column.type.permutation, column.type.shape
            if order not in (None, sorted(order or ())):
                raise ValueError(f"{name} is of tensors with permutation {order}; their axes must be in order")
        column = column.storage
    return shape, column


def _is_list(column: Any) -> bool:
    types, kind = pyarrow().types, column.type
    return any(is_such(kind) for is_such in (types.is_list, types.is_large_list, types.is_fixed_size_list))


def _size(column: Any) -> int | NDArray[Any]:
    """Of each list."""
    if pyarrow().types.is_fixed_size_list(column.type):
        return int(column.type.list_size)
    sizes: NDArray[Any] = np.diff(column.offsets.to_numpy())
    return sizes


def _items(column: Any) -> Any:
    """What the lists hold, also those that are null."""
    if pyarrow().types.is_fixed_size_list(column.type):
        size = column.type.list_size
        return column.values.slice(column.offset * size, len(column) * size)
    begin, end = column.offsets[0].as_py(), column.offsets[-1].as_py()
    return column.values.slice(begin, end - begin)


def validity(column: Any) -> NDArray[np.bool_] | None:
    """What is not null; None if nothing is."""
    return column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None


def _values(name: str, column: Any) -> NDArray[Any]:
    pa, kind = pyarrow(), column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise TypeError(f"{name} holds {kind}; it must hold integers or floats, or lists of them")
    values: NDArray[Any] = pa.Array.from_buffers(
        kind, len(column), [None, column.buffers()[1]], offset=column.offset
    ).to_numpy()
    return values


def one_width(widths: NDArray[Any]) -> int | None:
    """That of all rows, or None if there is no row."""
    wrong = np.flatnonzero(widths != widths[:1])
    if wrong.size:
        raise ValueError(f"x has rows of {widths[0]} and of {widths[wrong[0]]} values; they must be of one width")
    return int(widths[0]) if widths.size else None


def are_same(sizes: list[Any], others: list[Any]) -> bool:
    return len(sizes) == len(others) and all(bool(np.all(a == b)) for a, b in zip(sizes, others, strict=True))


def of_units(valid: NDArray[np.bool_] | None, count: int) -> NDArray[np.bool_] | None:
    """Which of so many lists, that hold the positions of as many rows each, are not null."""
    if valid is None or not valid.size:  # lists of no positions have no nulls in them
        return None
    if len(valid) == count:
        return valid
    units = valid.reshape(count, -1)
    every: NDArray[np.bool_] = np.asarray(units.all(axis=1))
    parts = np.flatnonzero(every != units.any(axis=1))
    if parts.size:
        raise ValueError(f"positions[{parts[0]}] is null in part; it must be null as a whole, as rows of a tensor cannot be")
    return every


def leaf(kind: Any, values: NDArray[Any], valid: NDArray[np.bool_] | None) -> Any:
    pa = pyarrow()
    return pa.Array.from_buffers(kind, values.size, [_bits(valid), pa.py_buffer(values)])


def lists(kind: Any, valid: NDArray[np.bool_] | None, count: int, sizes: NDArray[Any] | None, items: Any) -> Any:
    pa = pyarrow()
    buffers = [_bits(valid)]
    if sizes is not None:
        offsets = np.zeros(count + 1, np.int64 if pa.types.is_large_list(kind) else np.int32)
        offsets[1:] = np.cumsum(sizes)
        buffers.append(pa.py_buffer(offsets))
    return pa.Array.from_buffers(kind, count, buffers, children=[items])


def _bits(valid: NDArray[np.bool_] | None) -> Any:
    return None if valid is None else pyarrow().py_buffer(np.packbits(valid, bitorder="little"))


def rows_in_lists(
    rows: NDArray[Any], valid: NDArray[np.bool_] | None, sizes: NDArray[Any], lists_valid: NDArray[np.bool_] | None
) -> Any:
    pa = pyarrow()
    value = pa.from_numpy_dtype(rows.dtype)
    row = lists(pa.list_(value, rows.shape[1]), valid, len(rows), None, leaf(value, rows, None))
    return lists(pa.list_(row.type), lists_valid, len(sizes), sizes, row)


def closed(like: Any, values: NDArray[Any], valid: NDArray[np.bool_] | None) -> Any:
    """A column of the type and the nulls of ``like``, of other values; rows that are not ``valid`` are null, too."""
    pa, kind = pyarrow(), like.type
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, closed(like.storage, values, valid))
    own = validity(like)
    if not _is_list(like):
        return leaf(kind, values, own)
    items, size = _items(like), _size(like)
    if valid is not None and not _is_list(_of_tensors("x", items)[1]):
        own = both(own, of_units(valid, len(like)))
    return lists(kind, own, len(like), None if isinstance(size, int) else size, closed(items, values, valid))
