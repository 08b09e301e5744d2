"""What `posenc.identify` found, and how well a table's entries are rounded."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from posenc import _arrays
from posenc._encoding import Encoding
from posenc._load import core

_BLOCK_BYTES = 1 << 20  # of a table, compared at once


class Worst(NamedTuple):
    """The entry that is farthest from the correctly rounded one.

    Parameters
    ----------
    at : tuple of int
        Its index in the table.
    got, want : float
        The entry, and the correctly rounded one.
    error : float
        abs(got - want); NaN if the entry is not finite.
    ulps : float
        The same in units of the last place of ``want``.
    """

    at: tuple[int, ...]
    got: float
    want: float
    error: float
    ulps: float


class Match(NamedTuple):
    """What a table holds.

    Parameters
    ----------
    names : tuple of str
        Conventions that have these values, the likeliest first: of `posenc.CONVENTIONS`, or of `posenc.GRIDS` if ``shape`` is
        not None.
    extras : dict
        Of the first of ``names``, those that are not its defaults.
    others : tuple of str
        Conventions of other values that explain the table as well: it does not tell them apart.
    encoding : Encoding, or None
        The one that makes the table; None for a grid.
    first, step : int or float, or None
        Position of the first row, and from each row to the next; None if rows have ``positions``.
    positions : ndarray, or None
        The positions of rows that are not evenly spaced, int64, or float64 where they are estimates.
    shape : tuple of int, or None
        Of a grid: its points along each axis.
    dtype : dtype
        In which the entries are numbers: narrower than the table's if all of them are, so that it has been widened.
    is_fitted : bool
        Whether some number, as the base, is an estimate, as none that is round explains the table. Nothing is said of roundings
        then.
    channels_first : bool
        Whether the columns of a grid are the table's first axis, but for axes of length 1.
    zero_rows : tuple of int
        Rows of zeros, as for padding; at most a thousand. They are compared with nothing.
    entries : int
        How many were compared.
    misrounded : int or None
        How many of them are not the correctly rounded value of the formula, in ``dtype``.
    worst : Worst or None
        The worst of these.
    """

    names: tuple[str, ...]
    extras: Mapping[str, Any]
    others: tuple[str, ...]
    encoding: Encoding | None
    first: float | None
    step: float | None
    positions: NDArray[Any] | None
    shape: tuple[int, ...] | None
    dtype: np.dtype[Any]
    is_fitted: bool
    channels_first: bool = False
    zero_rows: tuple[int, ...] = ()
    entries: int = 0
    misrounded: int | None = None
    worst: Worst | None = None


Truth = Callable[[int, int, NDArray[Any]], None]  # writes the rows begin .. end


def rows_per_block(width: int) -> int:
    return max(1, _BLOCK_BYTES // (8 * width))


def judged(match: Match, table: NDArray[Any], truth: Truth, shape: tuple[int, ...], sample: NDArray[np.intp] | None) -> Match:
    """The match with what rows of the table, (rows, dim), are compared with the truth; ``shape`` is the table's own.

    All rows, or blocks of rows that begin at those of ``sample``.
    """
    length, width = table.shape
    size = rows_per_block(width)
    buffer = _arrays.fresh((min(size, length), width), match.dtype)
    zeros: list[int] = []
    entries = wrong = 0
    worst: tuple[float, int, int, float, float] | None = None
    for begin in range(0, length, size) if sample is None else sample.tolist():
        end = min(begin + size, length) if sample is None else begin + 1
        got, want = table[begin:end].astype(match.dtype), buffer[: end - begin]
        if not match.is_fitted:
            truth(begin, end, want)
        used = (got != 0).any(axis=1)
        if not used.all():
            zeros += (begin + np.flatnonzero(~used)[: 1000 - len(zeros)]).tolist()
        entries += int(used.sum()) * width
        if match.is_fitted:
            continue
        differs = (got != want) & used[:, None]
        count = np.count_nonzero(differs)
        if not count:
            continue
        wrong += int(count)
        with core.DefaultArithmetic(), np.errstate(all="ignore"):
            errors = np.where(differs, np.abs(got.astype(np.float64) - want.astype(np.float64)), 0.0)
        row, column = divmod(int(errors.argmax()), width)  # the first NaN, if there is one
        error = float(errors[row, column])
        if worst is None or not (error <= worst[0] or math.isnan(worst[0])):
            worst = error, begin + row, column, float(got[row, column]), float(want[row, column])
    if match.is_fitted:
        return match._replace(zero_rows=tuple(zeros), entries=entries)
    found = None if worst is None else _described(worst, shape, match.dtype)
    return match._replace(zero_rows=tuple(zeros), entries=entries, misrounded=wrong, worst=found)


def _described(worst: tuple[float, int, int, float, float], shape: tuple[int, ...], kind: np.dtype[Any]) -> Worst:
    error, row, column, got, want = worst
    index = tuple(map(int, np.unravel_index(row * shape[-1] + column, shape)))
    form = _arrays.FORMATS[kind]
    ulp = math.ldexp(1.0, max(math.frexp(want)[1] - form.precision, form.smallest)) if want else 2.0**form.smallest
    return Worst(index, got, want, error, error / ulp)


def narrowed(table: NDArray[Any], kind: np.dtype[Any]) -> np.dtype[Any]:
    """The narrowest dtype that holds all of the table's numbers, rows (rows, dim) of ``kind``."""
    for narrow in _narrower(kind):
        size = rows_per_block(table.shape[1])
        blocks = (table[begin : begin + size].astype(kind) for begin in range(0, len(table), size))
        with core.DefaultArithmetic(), np.errstate(all="ignore"):
            if all(bool((block.astype(narrow).astype(kind) == block).all()) for block in blocks):
                return narrow
    return kind


def _narrower(kind: np.dtype[Any]) -> list[np.dtype[Any]]:
    """Narrower dtypes, the narrowest first; of bfloat16 nothing can be said without ml_dtypes."""
    if kind.itemsize == 2:
        return []
    try:
        halves = [_arrays.checked_dtype("bfloat16", None), np.dtype(np.float16)]
    except ImportError:
        halves = [np.dtype(np.float16)]
    return halves if kind == np.float32 else [*halves, np.dtype(np.float32)]
