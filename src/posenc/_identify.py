"""`identify`: the convention that a table follows, and how well its entries are rounded."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posenc import _arrays, _check, _foreign
from posenc._grids import GRIDS
from posenc._identify_grid import grid_matches
from posenc._identify_sequence import Sample, of_sequence, sampled
from posenc._match import Match, judged
from posenc.conventions import CONVENTIONS


def identify(
    table: ArrayLike,
    *,
    convention: str | None = None,
    base: float | None = None,
    first: int | None = None,
    sample: int | None = None,
) -> Match | None:
    """Which convention, base and first position a table follows, and how many of its entries are misrounded.

    Parameters
    ----------
    table : array_like of float, shape (rows, dim)
        float32, float64, float16 or bfloat16. Axes of length 1 are ignored, so that (1, rows, dim) and (rows, 1, dim) will do.
        With more axes its last one is that of the columns: a grid, which may have them first instead, or sequences, one after
        another. A memory-mapped file is read piece by piece.
    convention : str, optional
        Look for this one only, of `posenc.CONVENTIONS` or `posenc.GRIDS`.
    base : float, optional
        The base (or longest timescale, or period), where it is known.
    first : int, optional
        The position of the first row, where it is known: each row is at the position after that of the row before.
    sample : int, optional
        Compare so many rows, evenly spread, with the correctly rounded ones; all rows by default.

    Returns
    -------
    Match, or None
        None if no convention explains the table.

    Raises
    ------
    TypeError
        If ``table`` does not hold floats, or an argument is of the wrong type.
    ValueError
        If ``table`` is empty or has no row of two columns or more, or an argument has a wrong value.

    Notes
    -----
    Recognised are every named convention with any base, and diffusers' shifts and scales, tensor2tensor's timescales and
    depthcharge's wavelengths; an amplitude; positions to 3e7, fewer where even the slowest pair has turned 512 times. What
    cannot be told from the table is not: ``others`` holds what would explain it as well. A table of width 2 has one
    frequency, a table of one row one position.

    Examples
    --------
    >>> import numpy as np
    >>> import posenc
    >>> angles = np.arange(100, dtype=np.float32)[:, None] * np.float32(10000) ** -np.linspace(0, 1, 16, dtype=np.float32)
    >>> match = posenc.identify(np.concatenate([np.sin(angles), np.cos(angles)], axis=1))
    >>> match.names[0], match.first, match.misrounded > 0
    ('whisper', 0, True)
    >>> posenc.identify(posenc.table(100, 32, base=500000.0)).extras
    {'base': 500000.0}
    >>> posenc.identify(np.eye(4)) is None
    True
    """
    array, kind = _checked_table(table)
    if convention is not None:
        convention = _check.choice("convention", convention, tuple({**CONVENTIONS, **GRIDS}))
    base = None if base is None else _check.positive("base", base)
    first = None if first is None else _check.integer("first", first)
    if sample is not None:
        sample = _check.integer("sample", sample, least=1)
    with np.errstate(all="ignore"):
        return _identified(array, kind, _Asked(convention, base, first, sample))


class _Asked(NamedTuple):
    """What is known of a table, and how many of its rows are to be compared."""

    convention: str | None
    base: float | None
    first: int | None
    sample: int | None

    def rows(self, length: int) -> NDArray[np.intp] | None:
        """Numbers of the rows to compare; None for all."""
        if self.sample is None or self.sample >= length:
            return None
        return np.linspace(0, length - 1, self.sample).astype(np.intp)


def _identified(array: NDArray[Any], kind: np.dtype[Any], asked: _Asked) -> Match | None:
    *lead, dim = array.shape
    rows = array.reshape(-1, dim)
    looked_at = sampled(rows, kind)
    if looked_at is None:
        return None
    found = of_sequence(looked_at, asked.convention, asked.base, asked.first)
    if found is not None and found[0].positions is None:
        return _judged(*found, rows, array.shape, asked)
    if asked.first is None:
        points = array.reshape(*([size for size in lead if size > 1] or [1]), dim)
        in_grid = _in_grid(points, array.shape, looked_at, asked)
        if in_grid is None and points.ndim == 3:
            in_grid = _in_grid_below(points, array.shape, looked_at, asked)
        if in_grid is not None:
            return in_grid
    return None if found is None else _judged(*found, rows, array.shape, asked)


def _in_grid(points: NDArray[Any], shape: tuple[int, ...], looked_at: Sample, asked: _Asked) -> Match | None:
    """The grid of these points, (..., dim), if they are of one."""
    rows = points.reshape(-1, points.shape[-1])
    for match, truth, allowed in grid_matches(points, looked_at.kind, looked_at.unit, asked.convention, asked.base):
        compared = judged(match, rows, truth, shape, asked.rows(len(rows)))
        if compared.worst is None or compared.worst.error <= allowed:
            return compared
    return None


def _in_grid_below(points: NDArray[Any], shape: tuple[int, ...], looked_at: Sample, asked: _Asked) -> Match | None:
    """The same of points (dim, height, width)."""
    turned = np.moveaxis(points, 0, -1)
    match = _in_grid(turned, turned.shape, looked_at, asked)
    if match is None or match.worst is None:
        return match and match._replace(channels_first=True)
    *point, channel = match.worst.at
    at = np.unravel_index(np.ravel_multi_index((channel, *point), points.shape), shape)
    return match._replace(channels_first=True, worst=match.worst._replace(at=tuple(map(int, at))))


def _checked_table(table: Any) -> tuple[NDArray[Any], np.dtype[Any]]:
    """The table, and its dtype in native byte order."""
    array = _foreign.as_array("table", table)
    kind = array.dtype.newbyteorder("=")
    if not _arrays._is_supported(kind):
        raise TypeError(f"table has dtype {array.dtype}; it must be {_arrays.SUPPORTED}")
    if array.size == 0 or array.ndim < 2 or array.shape[-1] < 2:
        raise ValueError(f"table has shape {array.shape}; it must have rows of two columns or more")
    return array, kind


def _judged(match: Match, is_doubtful: bool, rows: NDArray[Any], shape: tuple[int, ...], asked: _Asked) -> Match:
    encoding, first, step, positions = match.encoding, match.first, match.step, match.positions
    assert encoding is not None

    def truth(begin: int, end: int, out: NDArray[Any]) -> None:
        if positions is not None:
            encoding.encode(positions[begin:end], out=out)
        elif isinstance(first, int) and isinstance(step, int) and step == 1:
            encoding.table(end - begin, start=first + begin, out=out)
        elif isinstance(first, int) and isinstance(step, int) and step:
            encoding.encode(range(first + step * begin, first + step * end, step), out=out)
        else:
            encoding.encode(first + step * np.arange(begin, end), out=out)  # type: ignore[operator]

    compared = judged(match, rows, truth, shape, asked.rows(len(rows)))
    if is_doubtful and compared.misrounded:  # else every entry speaks for the numbers
        return compared._replace(is_fitted=True, misrounded=None, worst=None)
    return compared
