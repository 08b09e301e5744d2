"""The grid that a table holds: every convention of grids is tried on the shapes that its first rows allow."""

import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from posenc._grid import grid
from posenc._grids import GRIDS
from posenc._match import Match, Truth, rows_per_block

_BASES = (10000.0, 20.0, 100.0, 500.0, 1000.0, 100000.0, 1000000.0)
_CORNER = 6  # points along each axis that are looked at first
_FEW_POINTS = 256
_MOST_ENTRIES = 1 << 25  # of a grid whose coordinates depend on its size, which is made whole
_LOST = 2.0**-20  # of a coordinate: what float32 arithmetic loses, which computes coordinates, too

Shape = tuple[int, ...]
Options = dict[str, Any]

#: Conventions and options by the number of axes, the commonest first.
_TRIED: dict[int, list[tuple[str, Options]]] = {
    2: [
        ("mae", {}),
        ("mae", {"order": "hw"}),
        ("timm", {}),
        ("timm", {"interleave_sin_cos": True}),
        ("simplevit", {}),
        ("simplevit", {"order": "yx"}),
        ("detr", {}),
        ("detr", {"order": "xy"}),
        ("detr", {"normalize": True}),
        ("detr", {"normalize": True, "offset": -0.5}),
        ("multidim", {}),
        ("multidim", {"order": "yx"}),
        ("tensor2tensor", {}),
        ("tensor2tensor", {"order": (1, 0)}),
    ],
    3: [
        ("video", {}),
        ("multidim", {}),
        ("multidim", {"order": "zyx"}),
        ("tensor2tensor", {}),
        ("tensor2tensor", {"order": (2, 1, 0)}),
    ],
}


class _Found(NamedTuple):
    """A grid, behind ``skipped`` rows of zeros."""

    name: str
    options: Options
    shape: Shape
    skipped: int


def grid_matches(
    array: NDArray[Any], kind: np.dtype[Any], unit: float, only: str | None, base: float | None
) -> Iterator[tuple[Match, Truth, float]]:
    """Grids that the first points of a table, (..., dim), may be of; each with the truth and the error to allow it.

    The grids of the same values follow each other in one match.
    """
    if only is not None and only not in GRIDS:
        return
    rows = array.reshape(-1, array.shape[-1])
    skipped = _leading_zeros(rows)
    if skipped >= len(rows):
        return
    for bases in ((10000.0,), _BASES[1:]) if base is None else ((base,),):
        for shape in _shapes(array, rows, skipped, unit):
            found: list[_Found] = []
            for one, (name, options) in itertools.product(bases, _TRIED[len(shape)]):
                if only in (None, name):
                    for more in _with_steps(name, options, shape, rows[skipped:]):
                        candidate = _Found(name, _with_base(name, more, one), shape, skipped)
                        if _fits(candidate, rows, unit):
                            found.append(candidate)
            if found:
                yield from _as_matches(found, kind, rows.shape[1], unit)


def _leading_zeros(rows: NDArray[Any]) -> int:
    used = (rows[:64] != 0).any(axis=1)
    return int(used.argmax()) if used.any() else len(rows)


def _with_base(name: str, options: Options, base: float) -> Options:
    called = "max_timescale" if name == "tensor2tensor" else "base"
    return options if base == 10000.0 else {**options, called: base}


def _with_steps(name: str, options: Options, shape: Shape, rows: NDArray[Any]) -> Iterator[Options]:
    """The options, and with them those that stretch coordinates as the first rows say, whose first frequency is 1."""
    yield options
    dim = rows.shape[1]
    if name == "mae" and dim % 4 == 0 and max(shape) > 1:
        along = int(shape[1] >= shape[0])  # the longer axis tells more
        begin = 0 if (along == 1) == (options.get("order") != "hw") else dim // 2
        step = _step(rows[1 if along else shape[1]], begin, begin + dim // 4)
        turns = range(4 if math.prod(shape) <= _FEW_POINTS else 1)  # where a point may be more than a turn from the next
        steps = [step % (2.0 * math.pi) + 2.0 * math.pi * turn for turn in turns]
        sizes = dict.fromkeys(float(f"{shape[along] * one:.{digits}g}") for digits in range(1, 7) for one in steps)
        if shape[0] != shape[1] or abs(step - 1.0) > 1e-2:
            yield from ({**options, "base_size": size} for size in sizes if size > 0.0)
    if name == "video" and dim % 16 == 0 and shape[0] > 1 and shape[-1] > 1:
        both = _step(rows[shape[1] * shape[2]], 0, dim // 8), _step(rows[1], dim // 4, dim // 4 + dim // 16 * 3)
        names = "temporal_interpolation_scale", "spatial_interpolation_scale"
        if min(both) > 0.0:
            scales = {called: float(f"{1.0 / step:.5g}") for called, step in zip(names, both, strict=True)}
            if set(scales.values()) != {1.0}:
                yield {**options, **{called: scale for called, scale in scales.items() if scale != 1.0}}


def _step(row: NDArray[Any], sine: int, cosine: int) -> float:
    return math.atan2(float(row[sine]), float(row[cosine]))


# ---- shapes ----------------------------------------------------------------------------------------------------------


def _shapes(array: NDArray[Any], rows: NDArray[Any], skipped: int, unit: float) -> Iterator[Shape]:
    """Those of the array, and those into which its rows may be divided."""
    points = len(rows) - skipped
    own = array.shape[:-1]
    if len(own) in _TRIED and not skipped:
        yield own
    if len(own) == 2 and not skipped:  # frames, and the points of each
        yield from ((own[0], *pair) for pair in _divided(rows[: own[1]], unit))
    if len(own) == 1:
        yield from _divided(rows[skipped:], unit)
        lines = [size for size in _divisors(points) if 1 < size < points and _returns(rows[skipped:], size, unit)]
        yield from (
            (points // (size * height), height, size)
            for size in lines
            for height in _divisors(points // size)
            if 1 < height < points // size
        )


def _divided(rows: NDArray[Any], unit: float) -> Iterator[Shape]:
    """Heights and widths, the squarest first."""
    points = len(rows)
    widths = [size for size in _divisors(points) if size in (1, points) or _returns(rows, size, unit)]
    widths.sort(key=lambda size: abs(math.log(size * size / points)))
    yield from ((points // size, size) for size in widths)


def _divisors(number: int) -> list[int]:
    small = [i for i in range(1, math.isqrt(number) + 1) if number % i == 0]
    return sorted({*small, *(number // i for i in small)})


def _returns(rows: NDArray[Any], size: int, unit: float) -> bool:
    """Whether what changes from the first point to the second is again what it was after so many."""
    first, second, again = (rows[i].astype(np.float64) for i in (0, 1, size))
    changes = np.abs(second - first) > 4.0 * unit
    return bool((np.abs(again - first)[changes] <= 4.0 * unit).all())


# ---- values ----------------------------------------------------------------------------------------------------------


def _is_whole(options: Options) -> bool:
    """Whether coordinates depend on the size of the grid."""
    return bool(options.get("normalize")) or "base_size" in options


def _fits(found: _Found, rows: NDArray[Any], unit: float) -> bool:
    """Whether the first points along each axis are those of the grid."""
    shape, dim = found.shape, rows.shape[1]
    if _is_whole(found.options) and math.prod(shape) * dim > _MOST_ENTRIES:
        return False
    corner = tuple(min(size, _CORNER) for size in shape)
    try:
        made = _grid(found, shape if _is_whole(found.options) else corner, dim, np.float64)
    except ValueError:  # not of that width
        return False
    wanted = made[tuple(slice(size) for size in corner)].reshape(-1, dim)
    numbers = np.ravel_multi_index(tuple(np.indices(corner).reshape(len(corner), -1)), shape)
    errors = np.abs(rows[found.skipped + numbers].astype(np.float64) - wanted)
    return bool((errors <= 2.0 * unit + _LOST * 16.0).all())


def _grid(found: _Found, shape: Shape, dim: int, dtype: Any, first: Shape | None = None) -> NDArray[Any]:
    options = found.options if first is None else {**found.options, "first": first}
    return grid(shape, dim, convention=found.name, dtype=dtype, **options)


def _as_matches(found: list[_Found], kind: np.dtype[Any], dim: int, unit: float) -> Iterator[tuple[Match, Truth, float]]:
    corners = [_corner(one, dim) for one in found]
    done: set[int] = set()
    for i, one in enumerate(found):
        if i in done:
            continue
        same = [j for j in range(i, len(found)) if np.array_equal(corners[i], corners[j])]
        done.update(same)
        names = tuple(dict.fromkeys(found[j].name for j in same))
        others = tuple(dict.fromkeys(found[j].name for j in range(len(found)) if j not in same))
        match = Match(
            names=names,
            extras=one.options,
            others=tuple(name for name in others if name not in names),
            encoding=None,
            first=None,
            step=None,
            positions=None,
            shape=one.shape,
            dtype=kind,
            is_fitted=False,
        )
        yield match, _truth(one, dim, kind), 2.0 * unit + _LOST * (1.0 + max(one.shape))


def _corner(found: _Found, dim: int) -> NDArray[np.float64]:
    return _grid(found, found.shape if _is_whole(found.options) else tuple(min(s, 3) for s in found.shape), dim, np.float64)


def _truth(found: _Found, dim: int, kind: np.dtype[Any]) -> Truth:
    """Writes rows of the table, by whole lines of the first axis."""
    shape, begins_at = found.shape, int(GRIDS[found.name].extras["first"])
    line = math.prod(shape[1:])
    whole = _grid(found, shape, dim, kind).reshape(-1, dim) if _is_whole(found.options) else None
    held: dict[int, NDArray[Any]] = {}  # the lines made last
    most = max(1, rows_per_block(dim) // line)

    def lines(number: int) -> NDArray[Any]:
        """``most`` lines from a multiple of that."""
        if number not in held:
            held.clear()
            count = min(most, shape[0] - number)
            first = (begins_at + number, *(begins_at,) * (len(shape) - 1))
            held[number] = _grid(found, (count, *shape[1:]), dim, kind, first).reshape(-1, dim)
        return held[number]

    def truth(begin: int, end: int, out: NDArray[Any]) -> None:
        zeros = max(0, min(end, found.skipped) - begin)
        out[:zeros] = 0
        row = begin + zeros - found.skipped
        while row < end - found.skipped:
            if whole is not None:
                made, at = whole, row
            else:
                number = row // line // most * most
                made, at = lines(number), row - number * line
            count = min(end - found.skipped - row, len(made) - at)
            place = row + found.skipped - begin
            out[place : place + count] = made[at : at + count]
            row += count

    return truth
