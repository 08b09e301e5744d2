"""What the pictures of `posenc.plot` share: their arguments, axes to draw on, ticks and numbers."""

import math
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from posenc import _check, _positions
from posenc._encoding import Encoding

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LARGEST = 2**52  # of an offset, and of a position to which it is added
SIZES = {  # of a new figure, width and height in inches
    "heatmap": (7.0, 4.5),
    "similarity": (7.0, 4.0),
    "projected_similarity": (7.0, 4.0),
    "waves": (7.0, 4.5),
    "schemes": (9.0, 4.5),
    "recipe_error": (7.0, 4.5),
}


def check_matplotlib() -> None:
    """Raise if Matplotlib is missing."""
    if find_spec("matplotlib") is None:
        raise ImportError('pictures need the package matplotlib: pip install "posenc[plot]"')


def axes(picture: str, given: Any, count: int) -> NDArray[np.object_]:
    """``count`` axes: those given, or those of a new figure of pyplot, side by side."""
    check_matplotlib()
    if given is None:
        from matplotlib import pyplot

        figure = pyplot.figure(figsize=SIZES[picture], layout="constrained")
        return np.array(figure.subplots(1, count, squeeze=False)[0], object)
    from matplotlib.axes import Axes

    found = np.array(given, object).ravel()
    if len(found) != count or not all(isinstance(ax, Axes) for ax in found):
        wanted = "ax must be a Matplotlib Axes" if count == 1 else f"axes must be {count} Matplotlib Axes"
        raise TypeError(f"{wanted}, not {type(given).__name__} {_check.shown(given)}")
    return found


def encoding(given: Any) -> Encoding:
    """An encoding, the paper's for a width."""
    if isinstance(given, Encoding):
        return given
    if isinstance(given, bool) or not hasattr(type(given), "__index__"):
        raise TypeError(f"encoding must be an Encoding or a width, not {type(given).__name__} {_check.shown(given)}")
    return Encoding(given)


def offsets(given: Any) -> _positions.Points:
    """Distances along one axis, at least one, -128 to 128 for None."""
    points = _positions.checked(_positions.as_array(range(-128, 129) if given is None else given, "offsets"), None, "offsets")
    if points.ndim != 1 or not len(points):
        raise ValueError(f"offsets has shape {points.shape}; it must have one axis, of at least one offset")
    _positions.check_all("offsets", points, (points < -LARGEST) | (points > LARGEST), "at most 2**52 in size, to be drawn")
    return points


def pairs(e: Encoding, given: Any) -> list[int]:
    """Numbers of pairs of an encoding, eight evenly spread ones or all for None."""
    n = len(e.frequencies)
    if n == 0:
        raise ValueError(f"encoding is {e}; it must have at least one pair")
    if given is None:
        return [round(i * (n - 1) / 7) for i in range(8)] if n > 8 else list(range(n))
    try:
        chosen = [_check.integer(f"pairs[{i}]", k, least=0, most=n - 1) for i, k in enumerate(given)]
    except TypeError as error:
        if str(error).startswith("pairs["):
            raise
        raise TypeError(f"pairs must be integers, not {type(given).__name__} {_check.shown(given)}") from None
    if not chosen:
        raise ValueError("pairs is empty; it must be at least one pair")
    return chosen


def whole_numbers(ax: "Axes", axis: Literal["x", "y", "both"]) -> None:
    """Ticks at integers, written in full."""
    ax.locator_params(axis, integer=True)
    ax.ticklabel_format(axis=axis, style="plain", useOffset=False)


def number(value: float) -> str:
    """Three digits, or all those before the point."""
    if not math.isfinite(value):
        return "∞"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.3g}"


def scaled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divided by their largest size, unless that is 0."""
    return values / (np.abs(values).max() or 1.0)


def write_entries(ax: "Axes", code: NDArray[Any]) -> None:
    """Write each entry of an image of few numbers, from -1 to 1 in colours, into its cell."""
    form = "{:.2f}" if code.dtype.kind == "f" else "{:d}"
    for (row, column), value in np.ndenumerate(code):
        colour = "white" if abs(value) > 0.7 else "black"
        ax.text(column, row, form.format(value), ha="center", va="center", color=colour, fontsize="small")
