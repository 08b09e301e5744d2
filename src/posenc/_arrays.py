"""Arrays that results are written into: their dtypes, what ``out`` must be, new ones."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from posenc import _check, _foreign
from posenc._load import core


class Format(NamedTuple):
    code: int  # the core's number for it
    precision: int  # bits of the significand
    smallest: int  # exponent of the smallest subnormal
    overflow: float  # first magnitude that rounds to infinity


FLOAT32 = np.dtype(np.float32)
FLOAT32_FORMAT = Format(core.FLOAT32, 24, -149, 2.0**128 - 2.0**103)
BFLOAT16 = Format(core.BFLOAT16, 8, -133, 2.0**128 - 2.0**119)
FORMATS: dict[np.dtype[Any], Format] = {  # and ml_dtypes.bfloat16, once it is met
    FLOAT32: FLOAT32_FORMAT,
    np.dtype(np.float64): Format(core.FLOAT64, 53, -1074, math.inf),
    np.dtype(np.float16): Format(core.FLOAT16, 11, -24, 65520.0),
}
SUPPORTED = "float32, float64, float16 or bfloat16"

ALIGN_FROM = 64 << 10  # bytes of output that repay alignment to cache lines
LINE = 64
HUGE_FROM = 4 << 20  # bytes from which NumPy asks for huge pages: aligned, no two threads fault in, and clear, the same one
HUGE_PAGE = 2 << 20
STREAM_FROM = 40 << 20  # bytes of output that no cache will keep


def checked_dtype(dtype: DTypeLike | None, out: NDArray[Any] | None) -> np.dtype[Any]:
    """The dtype of the result, from ``dtype`` and ``out``, which must agree."""
    if out is not None and not _is_supported(out.dtype):
        raise TypeError(f"out has dtype {out.dtype}; it must be {SUPPORTED} in native byte order")
    if dtype is None:
        return FLOAT32 if out is None else out.dtype
    wanted = _foreign.bfloat16("dtype='bfloat16'") if isinstance(dtype, str) and dtype == "bfloat16" else dtype
    try:
        kind = np.dtype(wanted)
    except Exception:  # NumPy parses strings and mappings, and fails in many ways
        raise TypeError(f"dtype is {_check.shown(dtype)}; it must be {SUPPORTED}") from None
    if not _is_supported(kind):
        raise TypeError(f"dtype is {_check.shown(dtype)}; it must be {SUPPORTED} in native byte order")
    if out is not None and out.dtype != kind:
        raise TypeError(f"dtype is {kind} and out has dtype {out.dtype}; they must agree")
    return kind


def _is_supported(kind: np.dtype[Any]) -> bool:
    if kind not in FORMATS and kind.name == "bfloat16" and kind.isnative:  # ml_dtypes has the only one
        FORMATS.setdefault(kind, BFLOAT16)
    return kind in FORMATS


def checked_x(x: Any) -> NDArray[Any]:
    """An array of floats that sums are made of: in native byte order, aligned, of at least one axis."""
    array = _foreign.as_array("x", x)
    kind = array.dtype.newbyteorder("=")
    if not _is_supported(kind):
        raise TypeError(f"x has dtype {array.dtype}; it must be {SUPPORTED}")
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ValueError(f"x has shape {array.shape}; it must have a last axis of at least 1, that of the encodings")
    return array if array.flags.aligned and array.dtype.isnative else array.astype(kind)


def check_sum(out: NDArray[Any], x: NDArray[Any]) -> None:
    """Raise unless a sum with ``x`` can be written into ``out``."""
    if out.dtype != x.dtype:
        raise TypeError(f"out has dtype {out.dtype}; it must be that of x, {x.dtype}, in native byte order")
    _check_memory(out, x.shape)
    if _overlaps(out.strides, out.shape, out.itemsize):
        raise ValueError(f"out has shape {out.shape} and strides {out.strides}; its elements overlap, and must not")


def _check_memory(out: NDArray[Any], shape: tuple[int, ...]) -> None:
    if out.shape != shape:
        raise ValueError(f"out has shape {out.shape}; it must be {shape}")
    if not out.flags.writeable:
        raise ValueError("out is read-only; it must be writeable")
    if not out.flags.aligned:
        raise ValueError("out is not aligned to its elements; it must be")


def check_out(out: NDArray[Any], shape: tuple[int, ...]) -> None:
    """Raise unless rows of that shape, its last axis, can be written into ``out``."""
    _check_memory(out, shape)
    if out.flags.c_contiguous:
        return
    row = shape[-1] * out.itemsize
    if out.size and shape[-1] > 1 and out.strides[-1] != out.itemsize:
        raise ValueError(f"out has strides {out.strides}; its last axis must be contiguous, {out.itemsize} bytes a step")
    if _overlaps(out.strides[:-1], shape[:-1], row):
        raise ValueError(f"out has strides {out.strides}; its rows overlap, they must be at least {row} bytes apart")


def _overlaps(strides: tuple[int, ...], shape: tuple[int, ...], extent: int) -> bool:
    """Whether things of ``extent`` bytes that stand so may overlap: not if each axis goes past what the finer ones reach."""
    for step, size in sorted((abs(step), size) for step, size in zip(strides, shape, strict=True) if size > 1):
        if step < extent:
            return 0 not in shape
        extent += step * (size - 1)
    return False


def fresh(shape: tuple[int, ...], kind: np.dtype[Any]) -> NDArray[Any]:
    """An uninitialised array, aligned where that pays."""
    nbytes = math.prod(shape) * kind.itemsize
    alignment = LINE if nbytes < HUGE_FROM else HUGE_PAGE
    try:
        memory = np.empty(nbytes + alignment, np.uint8)
        offset = -memory.__array_interface__["data"][0] % alignment
        return np.ndarray(shape, kind, memory, offset)
    except (MemoryError, ValueError, OverflowError):  # more than there is; more than an array can have
        raise MemoryError(
            f"an array of shape {shape} and dtype {kind} takes {nbytes} bytes, which cannot be allocated"
        ) from None


def streams(nbytes: int, *, new: bool) -> bool:
    """Whether so much output is written past the caches.

    Not new memory: the system clears its pages as they are first touched, and leaves them in the caches.
    """
    return nbytes >= STREAM_FROM and not new


def even_rows(out: NDArray[Any]) -> Iterator[tuple[Any, NDArray[Any]]]:
    """Parts of ``out``, whose last axis is a row, as their index and as evenly spaced rows, shape (rows, dim)."""
    if out.size == 0:
        return
    *lead, dim = out.shape
    if out.flags.c_contiguous:
        yield ..., out.reshape(-1, dim)
        return
    strides = [step for step, size in zip(out.strides, lead, strict=False) if size > 1]
    sizes = [size for size in lead if size > 1]
    if all(outer == size * step for outer, step, size in zip(strides, strides[1:], sizes[1:], strict=False)):
        step = strides[-1] if strides else 0
        yield ..., np.lib.stride_tricks.as_strided(out, (math.prod(lead), dim), (step, out.itemsize))
        return
    for i in range(len(out)):
        for part, rows in even_rows(out[i]):
            yield (i, *part) if isinstance(part, tuple) else (i, part), rows
