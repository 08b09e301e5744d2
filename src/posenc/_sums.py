"""x and out of `add`: what may be given, and along which axes the core goes through them."""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from posenc import _arrays, _check, _positions

AnyArray = TypeVar("AnyArray", bound=NDArray[Any])
Axes = list[tuple[int, int, int, int]]  # size; bytes from element to element in x, in out and in where


def checked_scale(scale: float, form: _arrays.Format) -> float:
    """``scale`` as a float that the format of the sum holds, when rounded."""
    scale = _check.real("scale", scale)
    if abs(scale) >= form.overflow:
        raise ValueError(f"scale is {scale!r}; it overflows the dtype of the sum")
    return scale


def checked_axis(axis: int, ndim: int) -> int:
    """The axis of the sequence, counted from the first."""
    if ndim == 1:
        raise ValueError("x has one axis, that of the encodings; without positions it must also have one of the sequence")
    axis = _check.integer("axis", axis)
    if not -ndim <= axis < ndim or axis in (-1, ndim - 1):
        raise ValueError(f"axis is {axis} and x has {ndim}; it must be one of them and not the last, which is the encodings'")
    return axis % ndim


def apart(given: AnyArray, out: NDArray[Any]) -> AnyArray:
    """``given`` or, if it shares memory with ``out`` and is not the same elements, a copy."""
    return given if is_same(given, out) or not np.may_share_memory(given, out) else given.copy()


def is_same(given: NDArray[Any], out: NDArray[Any]) -> bool:
    """Whether it is the same elements."""
    if given is out:
        return True
    return given.dtype == out.dtype and given.strides == out.strides and given.ctypes.data == out.ctypes.data


def varying(points: _positions.Points, lead: tuple[int, ...]) -> list[bool]:
    """Along which axes of a shape the positions, which broadcast to it, go; the others share them."""
    padded = (1,) * (len(lead) - points.ndim) + points.shape
    return [size == n != 1 for size, n in zip(padded, lead, strict=True)]


def axes(varies: Sequence[bool], x: NDArray[Any], out: NDArray[Any], where: NDArray[np.bool_] | None) -> tuple[Axes, Axes]:
    """The axes along which positions go, and the rest, but the last; neighbours in memory are one."""
    steps = where.strides if where is not None else (0,) * len(varies)
    rows: Axes = []
    batch: Axes = []
    for goes, size, x_step, out_step, where_step in zip(varies, x.shape, x.strides, out.strides, steps, strict=False):
        (rows if goes else batch).append((size, x_step, out_step, where_step))
    return _merged(rows), _merged(batch)


def _merged(given: Axes) -> Axes:
    merged: Axes = []
    for size, x_step, out_step, where_step in given:
        if size == 1:
            continue
        if merged and merged[-1][1:] == (size * x_step, size * out_step, size * where_step):
            size *= merged.pop()[0]
        merged.append((size, x_step, out_step, where_step))
    return merged
