"""The conventions of grids in use, by name: a table of data. `posenc.grid` makes an array of an entry and its extras."""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from posenc import _check, _positions
from posenc.conventions import Extras, positives
from posenc.frequencies import Frequencies, paper, shifted, timescales

Coordinates = range | _positions.Points  # along an axis, or of all points of a mask


class Axis(NamedTuple):
    """One of a grid's axes."""

    number: int
    of: int  # so many
    size: int
    options: Extras  # its own

    def option(self, name: str) -> float:
        return _check.real(name, self.options[name])


class GridConvention(NamedTuple):
    """What a name stands for.

    Parameters
    ----------
    frequencies : callable
        Makes those of an axis, of its width and options.
    coordinates : callable
        Makes those of an axis.
    width : callable
        Columns of an axis, of ``dim`` and the axis.
    source : str
        The formula.
    users : str
        Who uses it.
    axes : mapping of int to str, optional
        The numbers of axes that it has, and their names. Any, without names, by default.
    order : str, optional
        The axes in the order of their columns; as they are by default.
    layout : {"interleaved", "concatenated", "apart"}
        Of the columns of an axis, as in `Encoding`; "apart": the sines of all axes, then their cosines.
    multiple : int
        Of which ``dim`` is to be one.
    extras : mapping
        Keywords of `grid`, and their defaults.
    note : str
        What else to know.
    """

    frequencies: Callable[[int, Extras], Frequencies]
    coordinates: Callable[[Axis], Coordinates]
    width: Callable[[int, Axis], int]
    source: str
    users: str
    axes: Mapping[int, str] | None = None
    order: str | None = None
    layout: str = "concatenated"
    multiple: int = 1
    extras: Extras = MappingProxyType({"first": 0, "scale": 1.0, "base": 10000.0})
    note: str = ""

    def __repr__(self) -> str:
        settings = {
            "axes": self.axes and dict(self.axes),
            "order": self.order,
            "layout": self.layout,
            "extras": dict(self.extras),
        }
        said = ", ".join(f"{name}={value!r}" for name, value in settings.items())
        return f"GridConvention({self.source}; {said}; used by {self.users}{'; ' if self.note else ''}{self.note})"


# ---- coordinates -----------------------------------------------------------------------------------------------------


def _first(axis: Axis) -> int:
    first = _check.integer("first", axis.options["first"])
    if first + axis.size - 1 > _check.INT64_MAX:
        raise ValueError(f"first is {first}, and the axis has {axis.size}; its last coordinate must be an int64")
    return first


def _indices(axis: Axis) -> Coordinates:
    """``first``, first + 1, ..., exact if ``first`` is an integer."""
    if hasattr(type(axis.options["first"]), "__index__"):
        first = _first(axis)
        return range(first, first + axis.size)
    return np.arange(axis.size, dtype=np.float64) + axis.option("first")


def _floats(axis: Axis) -> NDArray[np.float64]:
    indices = _indices(axis)
    if isinstance(indices, range):
        return (np.arange(axis.size, dtype=np.int64) + indices.start).astype(np.float64)
    return indices.astype(np.float64)


def _scaled(axis: Axis) -> Coordinates:
    scale = axis.option("scale")
    return _indices(axis) if scale == 1.0 else _floats(axis) * scale


def _interpolated(axis: Axis) -> Coordinates:
    return _divided(axis, axis.options["base_size"], "interpolation_scale")


def _divided(axis: Axis, base_size: float | None, scale_name: str) -> Coordinates:
    scale = _check.positive(scale_name, axis.options[scale_name])
    if base_size is None and scale == 1.0:
        return _indices(axis)
    shrunk = _floats(axis) if base_size is None else _floats(axis) / (axis.size / _check.positive("base_size", base_size))
    return shrunk / scale


def _of_video(axis: Axis) -> Coordinates:
    return _divided(axis, None, "temporal_interpolation_scale" if axis.number == 0 else "spatial_interpolation_scale")


def _counted(axis: Axis) -> Coordinates:
    mask, along = axis.options["mask"], axis.number - axis.of
    is_normalized = _is_normalized(axis) and axis.size > 0
    if mask is None:
        return _normalized(axis, _floats(axis), 0) if is_normalized else _indices(axis)
    before = _check.integer("first", _first(axis), least=_check.INT64_MIN + 1) - 1  # where nothing is counted yet
    steps = np.cumsum(mask, axis=along, dtype=np.int64) + before
    return _normalized(axis, steps.astype(np.float64), along) if is_normalized else steps


def _is_normalized(axis: Axis) -> bool:
    normalize = _check.flag("normalize", axis.options["normalize"])
    scale = axis.options["scale"]
    parts = None if scale is None else axis.option("scale"), axis.option("eps"), axis.option("offset")
    if not normalize and parts != (None, 1e-6, 0.0):
        raise ValueError(f"scale, eps and offset are {parts}, and normalize False; they are parts of normalize=True")
    return normalize


def _normalized(axis: Axis, counts: NDArray[np.float64], along: int) -> NDArray[np.float64]:
    scale = 2.0 * math.pi if axis.options["scale"] is None else axis.option("scale")
    last = counts.take([-1], axis=along) + axis.option("eps")
    normalized: NDArray[np.float64] = (counts + axis.option("offset")) / last * scale
    return normalized


# ---- the table -------------------------------------------------------------------------------------------------------


def _paper(width: int, options: Extras) -> Frequencies:
    return paper(width, options["base"])


def _unshifted(width: int, options: Extras) -> Frequencies:
    return shifted(width, 0, options["base"])


def _shifted(width: int, options: Extras) -> Frequencies:
    return shifted(width, 1, options["base"])


def _timescales(width: int, options: Extras) -> Frequencies:
    return timescales(width // 2, *positives(options, "min_timescale", "max_timescale"))


def _even_share(dim: int, axis: Axis) -> int:
    return -(-dim // (2 * axis.of)) * 2


_BASE = 10000.0

#: Name of a convention: what it stands for.
GRIDS: Mapping[str, GridConvention] = MappingProxyType(
    {
        "detr": GridConvention(
            *(_paper, _counted, lambda dim, axis: dim // 2),
            "base**(-2k/f), f = d/2, s0 c0 s1 c1 ... of y, then of x, counted from 1 over the mask; with normalize "
            "at (y + offset) / (y_last + eps) * scale",
            "DETR and its successors: Deformable DETR, DINO, Mask2Former, SAM 2",
            axes={2: "yx"},
            layout="interleaved",
            multiple=4,
            extras={"first": 1, "base": _BASE, "normalize": False, "scale": None, "eps": 1e-6, "offset": 0.0, "mask": None},
            note="scale=None is 2 pi; Deformable DETR has offset=-0.5; channels come last here",
        ),
        "mae": GridConvention(
            *(_unshifted, _interpolated, lambda dim, axis: dim // 2),
            "base**(-k/n), n = d/4, [s .. | c ..] of w, then of h, at index / (size / base_size) / interpolation_scale",
            "MAE, DiT, I-JEPA, PixArt, Stable Diffusion 3",
            axes={2: "hw"},
            order="wh",
            multiple=4,
            extras={"first": 0, "base": _BASE, "base_size": None, "interpolation_scale": 1.0},
            note="the columns of the width come first, those of the height second",
        ),
        "simplevit": GridConvention(
            *(_shifted, _scaled, lambda dim, axis: dim // 2),
            "base**(-k/(n-1)), n = d/4, [s .. | c ..] of x, then of y",
            "simple ViT, big_vision, MoCo v3",
            axes={2: "yx"},
            order="xy",
            multiple=4,
        ),
        "timm": GridConvention(
            *(_unshifted, _scaled, lambda dim, axis: dim // 2),
            "base**(-k/n), n = d/4, [s of h | s of w | c of h | c of w]",
            "build_sincos2d_pos_embed of timm",
            axes={2: "hw"},
            layout="apart",
            multiple=4,
            extras={"first": 0, "scale": 1.0, "base": _BASE, "interleave_sin_cos": False},
            note="interleave_sin_cos: [s of h | c of h | s of w | c of w]",
        ),
        "tensor2tensor": GridConvention(
            *(_timescales, _scaled, lambda dim, axis: dim // (2 * axis.of) * 2),
            "(1/min) (min/max)**(k/(n-1)), n = d // (2 axes), [s .. | c ..] of each axis, then zeros",
            "add_timing_signal_nd of tensor2tensor",
            extras={"first": 0, "scale": 1.0, "min_timescale": 1.0, "max_timescale": 10000.0},
            note="the original multiplies by min_timescale where it should divide, and is right only when that is 1",
        ),
        "multidim": GridConvention(
            *(_paper, _scaled, _even_share),
            "base**(-2k/w), w = d / axes rounded up to even, s0 c0 s1 c1 ... of x, of y, of z, cut to d",
            "positional-encodings on PyPI",
            axes={1: "x", 2: "xy", 3: "xyz"},
            layout="interleaved",
        ),
        "video": GridConvention(
            *(_unshifted, _of_video, lambda dim, axis: dim // 4 if axis.number == 0 else dim // 8 * 3),
            "base**(-k/n), [s .. | c ..] of t, d/4 wide, then of w and h as in mae, 3d/4 wide",
            "CogVideoX and other video models of diffusers",
            axes={3: "thw"},
            order="twh",
            multiple=16,
            extras={"first": 0, "base": _BASE, "spatial_interpolation_scale": 1.0, "temporal_interpolation_scale": 1.0},
        ),
    }
)
