"""Arrays that results are written into: their dtypes, what ``out`` must be, new ones."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray


class Format(NamedTuple):
    precision: int  # bits of the significand
    smallest: int  # exponent of the smallest subnormal
    overflow: float  # first magnitude that rounds to infinity
    integer: type[np.unsignedinteger[Any]]  # of the same width


FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
FORMATS = {
    FLOAT32: Format(24, -149, 2.0**128 - 2.0**103, np.uint32),
    FLOAT64: Format(53, -1074, math.inf, np.uint64),
}
SUPPORTED = " or ".join(map(str, FORMATS))

ALIGN_FROM = 64 << 10  # bytes of output that repay alignment to cache lines
LINE = 64
HUGE_FROM = 4 << 20  # bytes from which NumPy asks for huge pages: aligned, no two threads fault in, and clear, the same one
HUGE_PAGE = 2 << 20


def checked_dtype(dtype: DTypeLike | None, out: Any) -> np.dtype[Any]:
    """The dtype of the result, from ``dtype`` and ``out``, which must agree."""
    if out is not None:
        if not isinstance(out, np.ndarray) or isinstance(out, np.ma.MaskedArray):
            raise TypeError(f"out must be an ndarray, not {type(out).__name__}")
        if out.dtype not in FORMATS:
            raise TypeError(f"out has dtype {out.dtype}; it must be {SUPPORTED} in native byte order")
    if dtype is None:
        return FLOAT32 if out is None else out.dtype
    try:
        kind = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError):  # NumPy parses strings
        raise TypeError(f"dtype is {dtype!r}; it must be {SUPPORTED}") from None
    if kind not in FORMATS:
        raise TypeError(f"dtype is {dtype!r}; it must be {SUPPORTED} in native byte order")
    if out is not None and out.dtype != kind:
        raise TypeError(f"dtype is {kind} and out has dtype {out.dtype}; they must agree")
    return kind


def check_out(out: NDArray[Any], shape: tuple[int, int]) -> None:
    """Raise unless a table of that shape can be written into ``out``."""
    if out.shape != shape:
        raise ValueError(f"out has shape {out.shape}; it must be {shape}")
    if not out.flags.writeable:
        raise ValueError("out is read-only; it must be writeable")
    if not out.flags.aligned:
        raise ValueError("out is not aligned to its elements; it must be")
    rows, row = out.strides[0], shape[1] * out.itemsize
    if out.size and shape[1] > 1 and out.strides[1] != out.itemsize:
        raise ValueError(f"out has strides {out.strides}; its last axis must be contiguous, {out.itemsize} bytes a step")
    if shape[0] > 1 and abs(rows) < row:
        raise ValueError(f"out has strides {out.strides}; its rows overlap, they must be at least {row} bytes apart")


def fresh(shape: tuple[int, int], kind: np.dtype[Any]) -> NDArray[Any]:
    """An uninitialised array, aligned where that pays."""
    nbytes = shape[0] * shape[1] * kind.itemsize
    try:
        if nbytes < ALIGN_FROM:
            return np.empty(shape, kind)
        alignment = LINE if nbytes < HUGE_FROM else HUGE_PAGE
        memory = np.empty(nbytes + alignment, np.uint8)
    except (MemoryError, ValueError):  # more than there is; more than an array can have
        raise MemoryError(
            f"a table of shape {shape} and dtype {kind} takes {nbytes} bytes, which cannot be allocated"
        ) from None
    offset = -memory.__array_interface__["data"][0] % alignment
    return np.ndarray(shape, kind, memory, offset)
