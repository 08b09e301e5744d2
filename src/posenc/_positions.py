"""Positions and ``where``: what may be given, as what the core takes."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posenc import _check, _foreign
from posenc._load import core

_LARGEST_FLOAT = 2.0**53
_KINDS = "int64, or float16, bfloat16, float32 or float64"

Points = NDArray[np.int64] | NDArray[np.float64]


def as_array(positions: Any, name: str = "positions") -> NDArray[Any]:
    """Positions as an array, whatever it holds."""
    if _check.is_masked(positions):
        raise TypeError(f"{name} is a masked array; it must be an ndarray, and where= says what to leave out")
    if isinstance(positions, range):
        return _of_range(positions, name)
    array = _foreign.as_array(name, positions)
    if array.dtype == object or (
        not isinstance(positions, np.ndarray) and _has_large_floats(array) and not _foreign.lends(positions)
    ):
        _check_integers(positions, array, name)
    return array


def checked(array: NDArray[Any], where: NDArray[np.bool_] | None, name: str = "positions") -> Points:
    """Positions, contiguous: as int64 if all are integers, else as float64.

    ``where`` is of a shape that they broadcast to. Those that it uses nowhere are not inspected and become 0.
    """
    kind = array.dtype.kind
    if kind not in "iu" and array.dtype.name not in ("float16", "bfloat16", "float32", "float64"):
        raise TypeError(f"{name} has dtype {array.dtype}; it must be {_KINDS}")
    if where is not None:
        array = np.where(_used(where, array.shape), array, array.dtype.type(0))
    if kind not in "iu":
        with core.DefaultArithmetic():  # the caller's may take subnormals for 0
            return _checked_floats(array.astype(np.float64), name)
    if kind == "u":
        check_all(name, array, array > np.uint64(_check.INT64_MAX), "an int64")
    return np.asarray(array, np.int64, order="C")


def _checked_floats(array: NDArray[np.float64], name: str) -> Points:
    check_all(name, array, ~(np.abs(array) <= _LARGEST_FLOAT), "finite and, as a float, at most 2**53 in size")
    whole = array.astype(np.int64)
    return np.asarray(array, order="C") if (whole != array).any() else np.asarray(whole, order="C")


def checked_range(positions: range, name: str = "positions") -> range | NDArray[np.int64]:
    """A range of int64, as it is unless its step is none."""
    for p in (*positions[:1], *positions[-1:]):
        _check.integer(name, p)
    try:
        len(positions)
    except OverflowError:
        raise MemoryError(f"{name} is {positions}, of more numbers than can be allocated") from None
    return positions if abs(positions.step) <= _check.INT64_MAX else np.array(list(positions), np.int64)


def of_kind(name: str, value: Any, kinds: str, right: str) -> NDArray[Any]:
    """An array whose dtype is of these kinds; a list without elements is of any kind."""
    array = _foreign.as_array(name, value)
    if array.size == 0 and isinstance(value, list | tuple | range):
        array = array.astype(np.bool_ if kinds == "b" else np.int64)
    if array.dtype.kind not in kinds:
        raise TypeError(f"{name} has dtype {array.dtype}; it must be {right}")
    return array


def checked_where(where: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """``where`` as booleans of that shape."""
    array = of_kind("where", where, "b", "booleans")
    check_broadcast("where", array.shape, shape)
    return np.broadcast_to(array, shape)


def check_broadcast(name: str, given: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Raise unless an array of shape ``given`` can stand for one of ``shape``."""
    tail = shape[len(shape) - len(given) :]
    if len(given) > len(shape) or any(n not in (1, size) for n, size in zip(given, tail, strict=True)):
        raise ValueError(f"{name} has shape {given}; it must broadcast to {shape}")


def farthest(points: range | Points) -> float:
    """The largest size of a position; 0 if there is none."""
    if isinstance(points, range):
        return max(map(abs, (*points[:1], *points[-1:])), default=0)
    if points.size == 1:
        return abs(points.item())
    low: float = points.min(initial=0).item()
    high: float = points.max(initial=0).item()
    return max(-low, high)


def _has_large_floats(array: NDArray[Any]) -> bool:
    return array.dtype == np.float64 and bool((np.abs(array) >= _LARGEST_FLOAT).any())


def _check_integers(positions: Any, array: NDArray[Any], name: str) -> None:
    """Raise if NumPy could not make the integers among numbers int64, and took floats or nothing for them."""
    large = [p for p in np.asarray(positions, object).flat if type(p) is int and abs(p) > _LARGEST_FLOAT]
    if large and array.dtype != object:
        _check.integer(name, large[0])
        raise ValueError(f"{name} is {_check.shown(large[0])} among floats; it must be at most 2**53 in size there")
    for p in large:
        _check.integer(name, p)


def _of_range(positions: range, name: str) -> NDArray[np.int64]:
    whole = checked_range(positions, name)
    if isinstance(whole, range):
        return np.arange(len(whole), dtype=np.int64) * whole.step + (whole[0] if whole else 0)
    return whole


def _used(where: NDArray[np.bool_], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Whether a position is used, for positions of a shape that broadcasts to that of ``where``."""
    padded = (1,) * (where.ndim - len(shape)) + shape
    where = where[tuple(slice(0, 1) if step == 0 else slice(None) for step in where.strides)]  # once what only repeats
    shared = tuple(axis for axis, size in enumerate(padded) if size == 1)
    used: NDArray[np.bool_] = np.broadcast_to(np.any(where, axis=shared, keepdims=True), padded).reshape(shape)
    return used


def check_all(name: str, array: NDArray[Any], wrong: NDArray[np.bool_], right: str) -> None:
    """Raise for the first element that is ``wrong``, saying where it is and what would be right."""
    if wrong.any():
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        place = f"{name}[{', '.join(map(str, index))}]" if index else name
        raise ValueError(f"{place} is {array[index]}; it must be {right}")
