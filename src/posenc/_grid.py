"""`grid`: the encodings of a grid's points.

Each axis has an encoding of its own width. Its rows are made once, in the output, where the indices along all other axes are 0,
and copied from there.
"""

import math
from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from posenc import _arrays, _check, _foreign, _positions, _threads
from posenc._grids import GRIDS, Axis, Coordinates, GridConvention
from posenc._load import core
from posenc._rows import SLICE_BYTES, Rows
from posenc.conventions import with_defaults
from posenc.frequencies import paper_pairs

_MOST_AXES = 63  # NumPy's arrays have 64, and one is the encodings'


def grid(
    shape: Sequence[int] | None,
    dim: int,
    *,
    convention: str,
    order: str | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: _foreign.Out | None = None,
    threads: int | None = None,
    **extras: Any,
) -> NDArray[Any]:
    """The encodings of the points of a grid, each entry correctly rounded.

    Parameters
    ----------
    shape : sequence of int, or None
        Points along each axis: (height, width), or (frames, height, width). None with a ``mask``, which has a shape of its own.
    dim : int
        Width of a row.
    convention : str
        One of `posenc.GRIDS`, each of which says its formula, axes, defaults and users: "detr", "mae", "simplevit" and "timm"
        for two axes, "video" for three, "multidim" for one to three, "tensor2tensor" for any.
    order : str or sequence of int, optional
        The axes in the order of their columns, by their names in the convention ("hw" makes the height come first in "mae"), or
        by their numbers in ``shape``.
    dtype : {"float32", "float64", "float16", "bfloat16"}, optional
        By default that of ``out``, else float32.
    out : ndarray, shape shape + (dim,), optional
        Written and returned. In native byte order, writeable, aligned, each row contiguous, rows not overlapping.
        Or others, as for `posenc.table`.
    threads : int, optional
        At most this many threads; small grids are written by one. By default see `posenc.set_threads`.
    **extras
        What the convention leaves open. One value for all axes, or a sequence of one for each in the order of ``shape``:

        - ``base``: of the frequencies. "tensor2tensor" has ``min_timescale`` and ``max_timescale``.
        - ``first``: coordinate of the first point.
        - ``scale``: what coordinates are multiplied by; in "detr" after ``normalize``, 2 pi by default.
        - ``base_size``, ``interpolation_scale`` of "mae": coordinates become index / (size / base_size) / interpolation_scale.
        - ``eps``, ``offset`` of "detr": with ``normalize``, coordinates become (y + offset) / (y_last + eps) * scale.

        One value only: ``normalize`` and ``mask`` of "detr", the latter booleans, shape (..., height, width), True where the
        image is: coordinates count it; ``interleave_sin_cos`` of "timm"; ``spatial_interpolation_scale`` and
        ``temporal_interpolation_scale`` of "video", which divide.

    Returns
    -------
    ndarray, shape shape + (dim,)
        ``out``, or a new array. Channels come last. Rows are in the order of ``shape`` whatever the order of columns.

    Raises
    ------
    TypeError
        If an argument is of the wrong type, an extra is not one of the convention, or ``out`` is of another dtype.
    ValueError
        If there is no such convention, it has no such number of axes or width, or a value or ``out`` is not as above.
    MemoryError
        If the grid does not fit in memory.

    Notes
    -----
    Integer coordinates are exact. Others are computed in float64 in the order said above, each operation rounded; the entries
    are those of the resulting float64.

    What other packages have is here, with a grid's height H, its width W and its number of frames T:

    ====================================================  ======================================================================
    `get_2d_sincos_pos_embed(d, n)` of MAE, DiT           `grid((n, n), d, convention="mae")`, reshaped to (n * n, d)
    `get_2d_sincos_pos_embed(d, (H, W))` of diffusers     `grid((H, W), d, convention="mae", base_size=16)`; its `base_size` and
                                                          `interpolation_scale` are ours
    `get_3d_sincos_pos_embed(d, (W, H), T)` of diffusers  `grid((T, H, W), d, convention="video")`, reshaped to (T, H * W, d):
                                                          it has the width first; its two scales are ours
    `build_sincos2d_pos_embed([H, W], d)` of timm         `grid((H, W), d, convention="timm")`; `temperature` is `base`,
                                                          `interleave_sin_cos` the same
    ... with `reverse_coord=True`                         `grid((W, H), d, convention="timm")`: it reverses the grid, too
    `posemb_sincos_2d` of simple ViT, big_vision          `grid((H, W), d, convention="simplevit")`; `temperature` is `base`
    `PositionEmbeddingSine(f)` of DETR                    `grid((H, W), 2 * f, convention="detr")`, channels last; `temperature`
                                                          is `base`; `normalize`, `scale` the same; `mask` is True where the
                                                          image is
    `DetrSinePositionEmbedding(f)` of transformers        the same
    ... of Deformable DETR                                with `normalize=True, offset=-0.5`
    ... with `temperatureH`, `temperatureW`               with `base=(temperatureH, temperatureW)`
    `build_2d_sinusoidal_position_embedding` of RT-DETR   `grid((H, W), d, convention="mae", order="hw")`
    `PositionalEncoding2D(d)` on PyPI, and `3D`           `grid((X, Y), d, convention="multidim")`, `grid((X, Y, Z), ...)`
    `add_timing_signal_nd(x)` of tensor2tensor            `x + grid(x.shape[1:-1], d, convention="tensor2tensor")`
    `posemb_sincos_3d` of vit-pytorch                     `grid((T, H, W), d, convention="tensor2tensor", order=(2, 1, 0))`
    ====================================================  ======================================================================

    Examples
    --------
    >>> import posenc
    >>> posenc.grid((2, 3), 4, convention="mae")[1].round(3)  # [sin w, cos w, sin h, cos h] of the second line
    array([[ 0.   ,  1.   ,  0.841,  0.54 ],
           [ 0.841,  0.54 ,  0.841,  0.54 ],
           [ 0.909, -0.416,  0.841,  0.54 ]], dtype=float32)
    >>> posenc.grid((2, 3), 8, convention="detr", normalize=True, base=(10000.0, 20.0)).shape
    (2, 3, 8)
    """
    entry = GRIDS[_check.choice("convention", convention, tuple(GRIDS))]
    options = with_defaults(convention, entry.extras, extras)
    mask = _checked_mask(options["mask"], shape) if options.get("mask") is not None else None
    shape = _checked_shape(shape) if mask is None else mask.shape
    axes = _checked_axes(convention, entry, shape if mask is None else shape[-2:], {**options, "mask": mask})
    dim = _checked_dim(convention, entry, dim, len(axes))
    layout = entry.layout
    if layout == "apart" and _check.flag("interleave_sin_cos", options["interleave_sin_cos"]):
        layout = "concatenated"
    in_order = [axes[i] for i in _checked_order(convention, entry, order, len(axes))]
    given: Any = out
    if out is not None:
        out = _foreign.as_out(out)
    kind = _arrays.checked_dtype(dtype, out)
    if threads is not None:
        threads = _threads.checked("threads", threads)
    shape = (*shape, dim)
    if out is None:
        out = _arrays.fresh(shape, kind)
    else:
        _arrays.check_out(out, shape)
    bands, tail = _bands(entry, layout, in_order, dim)  # after the array: coordinates may be as long as it, and less clear
    for band in bands:
        band.rows.check_domain(kind, _positions.farthest(band.points))
    if out.size:
        stream = _arrays.streams(out.nbytes, new=given is None)
        for band in bands:
            band.write(out, threads, stream, whole=mask is not None)
        pieces = [] if mask is not None else [piece for band in bands for piece in band.pieces()]
        _spread(out, pieces + ([(-1, dim - tail, tail)] if tail else []), threads, stream)
    return out if given is None else given


class _Band(NamedTuple):
    """The columns of an axis."""

    axis: int
    points: Coordinates
    rows: Rows
    begin: int
    second: int | None  # column of the first cosine, if sines and cosines are apart
    width: int  # of both, or of each

    def pieces(self) -> list[tuple[int, int, int]]:
        """What it is of the grid, for `core.spread`."""
        if self.second is None:
            return [(self.axis, self.begin, self.width)]
        if self.second == self.begin + self.width:
            return [(self.axis, self.begin, 2 * self.width)]
        return [(self.axis, self.begin, self.width), (self.axis, self.second, self.width)]

    def write(self, out: NDArray[Any], threads: int | None, stream: bool, *, whole: bool) -> None:
        """Make the rows, at all points or at those where the indices along the other axes are 0."""
        where = () if whole else tuple(slice(None) if i == self.axis else 0 for i in range(out.ndim - 1))
        first = out[where][..., self.begin : self.begin + self.width]
        second = None if self.second is None else out[where][..., self.second : self.second + self.width]
        used = _threads.for_work(threads, first.nbytes)
        for part, rows in _arrays.even_rows(first):
            flat = self.points.start if isinstance(self.points, range) else self.points[part].ravel()
            others = None if second is None else next(_arrays.even_rows(second[part]))[1]
            self.rows.write(rows, flat, used, stream=stream and whole, second=others)


def _bands(entry: GridConvention, layout: str, axes: list[Axis], dim: int) -> tuple[list[_Band], int]:
    """The axes' columns, the axes given in their order, and how many columns are left."""
    bands: list[_Band] = []
    begin = 0
    for axis in axes:
        whole = entry.width(dim, axis)
        width = min(whole, dim - begin)
        with core.DefaultArithmetic(), np.errstate(all="ignore"):
            points = entry.coordinates(axis)
        if not isinstance(points, range):
            points = _positions.checked(points, None, f"coordinates of axis {axis.number}")
        frequencies = entry.frequencies(whole, axis.options)
        if width == 0:
            continue
        if layout == "interleaved":
            pairs = -(-width // 2)
            if pairs < len(frequencies):
                frequencies = paper_pairs(pairs, whole, axis.option("base"))
            rows = Rows(frequencies, width, width, interleaved=True, cos_first=False, amplitude=1.0)
            bands.append(_Band(axis.number, points, rows, begin, None, width))
            begin += width
        else:
            n = width // 2
            rows = Rows(frequencies, 2 * n, 2 * n, interleaved=False, cos_first=False, amplitude=1.0)
            second = begin + dim // 2 if layout == "apart" else begin + n
            bands.append(_Band(axis.number, points, rows, begin, second, n))
            begin += n if layout == "apart" else width
    return bands, 0 if layout == "apart" else dim - begin


def _spread(out: NDArray[Any], pieces: list[tuple[int, int, int]], threads: int | None, stream: bool) -> None:
    """Copy what is known of rows to all others, with a look at signals now and then."""
    if not pieces:
        return
    buffer = out.view(np.uint16) if out.itemsize == 2 else out  # bfloat16 is nothing that buffers know
    length = math.prod(out.shape[:-1])
    used = _threads.for_work(threads, out.nbytes)
    step = max(1, SLICE_BYTES // (out.shape[-1] * out.itemsize))
    for begin in range(0, length, step):
        core.spread(buffer, pieces, begin, min(begin + step, length), used, stream)


# ---- arguments -------------------------------------------------------------------------------------------------------


def _checked_shape(shape: Any) -> tuple[int, ...]:
    if isinstance(shape, str | bytes) or not isinstance(shape, Sequence | np.ndarray) or _is_number(shape):
        raise TypeError(f"shape must be a sequence of integers, not {type(shape).__name__} {_check.shown(shape)}")
    return tuple(_check.integer(f"shape[{i}]", size, least=0) for i, size in enumerate(islice(shape, _MOST_AXES + 1)))


def _is_number(value: Any) -> bool:
    """Whether an array is of no axis."""
    return isinstance(value, np.ndarray) and value.ndim == 0


def _checked_mask(mask: ArrayLike, shape: Any) -> NDArray[np.bool_]:
    array = _positions.of_kind("mask", mask, "b", "booleans, True where the image is")
    if array.ndim < 2:
        raise ValueError(f"mask has shape {array.shape}; it must be (..., height, width)")
    if shape is not None and _checked_shape(shape) != array.shape:
        both = f"shape is {_check.shown(shape)} and mask has shape {array.shape}"
        raise ValueError(f"{both}; a mask has the shape, which may be None")
    return array


def _checked_axes(name: str, entry: GridConvention, shape: tuple[int, ...], options: dict[str, Any]) -> list[Axis]:
    """The axes, each with its own of the options."""
    n = len(shape)
    if entry.axes is not None and n not in entry.axes:
        counts = " or ".join(map(str, entry.axes))
        raise ValueError(f"shape is {shape}; for {name!r} it must have {counts} axes")
    if not 0 < n <= _MOST_AXES:
        raise ValueError(f"shape has {n} axes; it must have 1 to {_MOST_AXES}")
    shared = ("mask", "normalize", "interleave_sin_cos", "spatial_interpolation_scale", "temporal_interpolation_scale")
    each = [dict(options) for _ in shape]
    for option, value in options.items():
        if option in shared or not isinstance(value, list | tuple | np.ndarray) or _is_number(value):
            continue
        if len(value) != n:
            raise ValueError(f"{option} is {_check.shown(value)}; it must be one number, or {n}, one for each axis of shape")
        for own, one in zip(each, value, strict=True):
            own[option] = one
    return [Axis(i, n, size, own) for i, (size, own) in enumerate(zip(shape, each, strict=True))]


def _checked_dim(name: str, entry: GridConvention, dim: int, axes: int) -> int:
    dim = _check.integer("dim", dim, least=1, most=1 << 40)
    if dim % entry.multiple:
        raise ValueError(f"dim is {dim}; for {name!r} it must be a multiple of {entry.multiple}")
    if entry.axes is None and dim < 2 * axes:
        raise ValueError(f"dim is {dim} and shape has {axes} axes; for {name!r} it must be at least twice as many")
    return dim


def _checked_order(name: str, entry: GridConvention, order: str | Sequence[int] | None, axes: int) -> Sequence[int]:
    """The axes' numbers in the order of their columns."""
    names = "" if entry.axes is None else entry.axes[axes]
    if order is None:
        order = entry.order or range(axes)
    wanted = f"{names!r} or {tuple(range(axes))}, in any order" if names else f"{tuple(range(axes))}, in any order"
    if isinstance(order, str):
        numbers = [names.find(letter) for letter in order]
    else:
        try:
            numbers = [_check.integer("order", number) for number in islice(order, axes + 1)]
        except TypeError:
            raise TypeError(f"order is {_check.shown(order)}; for {name!r} it must be {wanted}") from None
    if sorted(numbers) != list(range(axes)):
        raise ValueError(f"order is {_check.shown(order)}; for {name!r} it must be {wanted}")
    return numbers
