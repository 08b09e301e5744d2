"""Pictures of encodings, drawn by Matplotlib on axes that are given, or on a new figure of pyplot.

Each function returns the axes that it drew on. Where an ``encoding`` is asked for, an int is the width of the paper's.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posenc import _axes, _check, _recipes
from posenc import schemes as _schemes
from posenc._encoding import Encoding, farthest

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["heatmap", "projected_similarity", "recipe_error", "schemes", "similarity", "waves"]

_BLUE, _ORANGE = "#0072B2", "#D55E00"  # Okabe and Ito's, told apart by everyone, as are the next
_OTHERS = (_ORANGE, "#009E73", "#E69F00", "#CC79A7", "#56B4E9")
_DIVERGING = "RdBu_r"
_FAR = 2**40  # positions beyond are drawn relative to the first: float64 is too coarse for ticks between them
_WAVE = 0.4  # of the distance between two waves: how high they are

_SCHEMES = (  # name, what is wrong with it
    ("integer", "no bound: it drowns\nthe embeddings"),
    ("unit interval", "the step depends\non the length"),
    ("binary", "jumps: neighbours may\ndiffer in every bit"),
    ("sine", "a sine alone\ncannot be shifted"),
    ("sine and cosine", "bounded, smooth,\na shift is a rotation"),
)


def heatmap(encoding: Encoding | int, length: int = 128, *, start: int | None = None, ax: "Axes | None" = None) -> "Axes":
    """The table of an encoding in colours: a row for each position, a column for each dimension.

    Parameters
    ----------
    encoding : Encoding or int
        What is drawn, or the width of the paper's.
    length : int, default 128
        Positions, at least 1.
    start : int, optional
        The first position, by default the encoding's.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Its image holds ``encoding.table(length, start=start)``. A colour bar stands beside it.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as above.
    ImportError
        If Matplotlib is missing.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import posenc
    >>> ax = posenc.plot.heatmap(64, 100, ax=Figure().subplots())
    >>> ax.get_ylabel(), ax.images[0].get_array().shape
    ('position', (100, 64))
    """
    e = _axes.encoding(encoding)
    length, first = e._checked_range(_check.integer("length", length, least=1), start)
    rows = e.table(length, start=first)
    [ax] = _axes.axes("heatmap", ax, 1)
    far = farthest(first, length) > _FAR
    top, limit = 0 if far else first, abs(e.amplitude)
    image = ax.imshow(
        rows,
        cmap=_DIVERGING,
        vmin=-limit,
        vmax=limit,
        aspect="auto",
        interpolation="nearest",
        extent=(-0.5, e.dim - 0.5, top + length - 0.5, top - 0.5),
    )
    pair = ("cos", "sin") if e.cos_first else ("sin", "cos")
    order = "{0}, {1}, {0}, {1}, …" if e.layout == "interleaved" else "all {0}, then all {1}"
    ax.set(xlabel=f"dimension ({order.format(*pair)})", ylabel=f"position - {first}" if far else "position")
    ax.set_title(f"Sinusoidal encoding, d = {e.dim}")
    _axes.whole_numbers(ax, "both")
    bar = ax.figure.colorbar(image, ax=ax, label="value", pad=0.02)
    bar.set_ticks([-limit, -limit / 2, 0.0, limit / 2, limit])
    return ax


def similarity(encoding: Encoding | int, offsets: ArrayLike | range | None = None, *, ax: "Axes | None" = None) -> "Axes":
    """The dot product of two encodings against their distance: symmetric, and smaller far away.

    Parameters
    ----------
    encoding : Encoding or int
        What is drawn, or the width of the paper's.
    offsets : array_like or range, optional
        Distances in positions, at least one and at most 2**52 in size, along one axis; -128 to 128 by default.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Its first line is ``encoding.similarity(offsets)``, not normalised. The second, dashed, is the largest value at that
        distance or beyond among those drawn: it shows how the dot product decays in waves. A third joins two equal values at
        opposite offsets, if there are any.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as above, or the width is odd and truncated.
    ImportError
        If Matplotlib is missing.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import posenc
    >>> ax = posenc.plot.similarity(64, range(-100, 101), ax=Figure().subplots())
    >>> float(ax.lines[0].get_ydata().max())
    32.0
    """
    e, k = _axes.encoding(encoding), _axes.offsets(offsets)
    values = e.similarity(k)
    [ax] = _axes.axes("similarity", ax, 1)
    ax.plot(k, values, color=_BLUE, label="dot product")
    distance, which = np.unique(np.abs(k), return_inverse=True)
    largest = np.full(len(distance), -np.inf)
    np.maximum.at(largest, which, values)
    beyond = np.maximum.accumulate(largest[::-1])[::-1][which]
    order = np.argsort(k, kind="stable")
    ax.plot(k[order], beyond[order], color=_ORANGE, ls="--", lw=1.2, label="decays in waves: the largest from this distance on")
    both = distance[np.isin(distance, k) & np.isin(-distance, k) & (distance > 0)]
    if len(both):
        mark = both[len(both) // 4]
        ends = np.array([-mark, mark])
        ax.plot(ends, e.similarity(ends), "o-", color="0.5", lw=1, ms=5, label=f"symmetric: equal at k = ±{mark:g}")
    ax.set(xlabel="offset k (positions)", ylabel="PE(t) · PE(t + k), not normalised")
    ax.set_title(f"Dot product against distance, d = {e.dim}")
    ax.margins(x=0)
    low, high = values.min(), values.max()
    ax.set_ylim(low - 0.5 * (high - low or 1.0), high + 0.05 * (high - low or 1.0))  # with room for the legend
    ax.legend(frameon=False, loc="lower center")
    return ax


def projected_similarity(
    encoding: Encoding | int,
    offsets: ArrayLike | range | None = None,
    *,
    position: int = 256,
    draws: int = 4,
    seed: int = 0,
    ax: "Axes | None" = None,
) -> "Axes":
    """The dot product through random projections, as attention has it: the distance is lost.

    PE(t)^T W_Q^T W_K PE(t + k), where the entries of W_Q and W_K are independent, normal, of variance 1 / dim.

    Parameters
    ----------
    encoding : Encoding or int
        What is drawn, or the width of the paper's.
    offsets : array_like or range, optional
        k, distances in positions, at least one and at most 2**52 in size, along one axis; -128 to 128 by default.
    position : int, default 256
        t, at most 2**52 in size. Without projections it does not matter, with them it does.
    draws : int, default 4
        How many pairs of W_Q and W_K, at least 1.
    seed : int, default 0
        Of the generator, at least 0.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        A line for each draw, then that of the bare ``encoding.similarity(offsets)``; each is divided by its largest absolute
        value, since their sizes differ by a factor of about the root of dim.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as above, or the width is odd and truncated.
    ImportError
        If Matplotlib is missing.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import posenc
    >>> ax = posenc.plot.projected_similarity(64, draws=3, ax=Figure().subplots())
    >>> len(ax.lines)
    4
    """
    e, k = _axes.encoding(encoding), _axes.offsets(offsets)
    position = _check.integer("position", position, least=-_axes.LARGEST, most=_axes.LARGEST)
    draws = _check.integer("draws", draws, least=1)
    generator = np.random.default_rng(_check.integer("seed", seed, least=0))
    bare = e.similarity(k)
    here, there = e.encode(position, dtype=np.float64), e.encode(position + k, dtype=np.float64)
    [ax] = _axes.axes("projected_similarity", ax, 1)
    for draw in range(draws):
        query, key = generator.normal(0.0, e.dim**-0.5, (2, e.dim, e.dim))
        scores = there @ (key.T @ (query @ here))
        label = f"through random $W_Q$, $W_K$ ({draws} draws)" if draw == 0 else None
        ax.plot(k, _axes.scaled(scores), color=_OTHERS[draw % len(_OTHERS)], lw=0.9, label=label)
    ax.plot(k, _axes.scaled(bare), color=_BLUE, lw=2.5, label="bare dot product")
    ax.set(xlabel="offset k (positions)", ylabel="dot product, largest size = 1")
    ax.set_title(f"Random projections lose the distance, d = {e.dim}, t = {position}")
    ax.margins(x=0)
    ax.set_ylim(-1.05, 1.4)
    ax.legend(frameon=False, loc="upper center", ncols=2)
    return ax


def waves(
    encoding: Encoding | int, length: int = 200, *, pairs: Sequence[int] | None = None, ax: "Axes | None" = None
) -> "Axes":
    """The sines of some pairs along position, each above the next, with its wavelength.

    Parameters
    ----------
    encoding : Encoding or int
        What is drawn, or the width of the paper's.
    length : int, default 200
        Positions, at least 2, from the encoding's first.
    pairs : sequence of int, optional
        Which, from 0; by default eight of them, evenly spread, or all if they are fewer.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Line i is the sine of the i-th pair in float64, without the amplitude, times 0.4, minus i.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as above.
    ImportError
        If Matplotlib is missing.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import posenc
    >>> ax = posenc.plot.waves(64, pairs=[0, 4, 8], ax=Figure().subplots())
    >>> [text.get_text() for text in ax.texts]
    ['6.28', '19.9', '62.8']
    """
    e = _axes.encoding(encoding)
    length, first = e._checked_range(_check.integer("length", length, least=2), None)
    chosen = _axes.pairs(e, pairs)
    points = np.linspace(first, first + length - 1, max(1024, length))
    sines, _ = e.replace(amplitude=1.0).sincos(points, dtype=np.float64)
    [ax] = _axes.axes("waves", ax, 1)
    for i, k in enumerate(chosen):
        ax.plot(points, _WAVE * sines[:, k] - i, color=_BLUE, lw=1.4)
        ax.axhline(-i, color="0.5", lw=0.5, zorder=0)
        ax.annotate(_axes.number(e.wavelengths[k]), (1.01, -i), xycoords=("axes fraction", "data"), va="center")
    ax.set_yticks([-i for i in range(len(chosen))], [f"k = {k}" for k in chosen])
    ax.tick_params(left=False)
    for side in ("left", "right", "top"):
        ax.spines[side].set_visible(False)
    ax.set(xlabel="position", ylabel="sine of pair k")
    ax.set_title(f"Waves of the encoding, d = {e.dim}", loc="left")
    ax.set_title("wavelength (positions)", loc="right", fontsize="medium")
    ax.margins(x=0)
    _axes.whole_numbers(ax, "x")
    return ax


def schemes(
    length: int = 16, dim: int = 8, *, axes: "Sequence[Axes] | NDArray[np.object_] | None" = None
) -> NDArray[np.object_]:
    """The codes that came before beside sines and cosines, each with what is wrong with it.

    Parameters
    ----------
    length : int, default 16
        Positions, 1 to 2**dim.
    dim : int, default 8
        Columns of those codes that have several, 1 to 200.
    axes : five of matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    ndarray of five matplotlib.axes.Axes
        Their images hold `posenc.schemes.integer`, `~posenc.schemes.unit_interval`, `~posenc.schemes.binary`,
        `~posenc.schemes.sine` with octaves, and `posenc.table`, on one scale of colours from -1 to 1.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as above.
    ImportError
        If Matplotlib is missing.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import posenc
    >>> axes = posenc.plot.schemes(axes=Figure().subplots(1, 5))
    >>> [ax.images[0].get_array().shape for ax in axes]
    [(16, 1), (16, 1), (16, 8), (16, 8), (16, 8)]
    """
    length = _check.integer("length", length, least=1)
    codes: tuple[NDArray[Any], ...] = (
        _schemes.integer(length)[:, None],
        _schemes.unit_interval(length)[:, None],
        _schemes.binary(length, dim),
        _schemes.sine(length, dim, octaves=True),
        Encoding(dim).table(length),
    )
    drawn = _axes.axes("schemes", axes, len(_SCHEMES))
    for ax, code, (name, wrong) in zip(drawn, codes, _SCHEMES, strict=True):
        image = ax.imshow(code, cmap=_DIVERGING, vmin=-1.0, vmax=1.0, aspect="auto", interpolation="nearest")
        bold = name.replace(" ", r"\ ")
        ax.set_title(f"$\\mathbf{{{bold}}}$\n{wrong}", fontsize="small", linespacing=1.3)
        ax.set_xlabel("dimension" if code.shape[1] > 1 else "one number")
        _axes.whole_numbers(ax, "both")
        ax.tick_params(labelleft=ax is drawn[0])
        if code.shape[1] == 1:
            ax.set_xticks([])
        if code.dtype != np.float32 and length <= 32:
            _axes.write_entries(ax, code)
    drawn[0].set_ylabel("position")
    drawn[0].figure.colorbar(image, ax=list(drawn), label="value", ticks=[-1, 0, 1], extend="max", pad=0.01, aspect=40)
    return drawn


def recipe_error(
    dim: int = 64,
    positions: ArrayLike | range | None = None,
    *,
    recipes: "Mapping[str, _recipes.Recipe] | None" = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """How far the usual ways to compute the paper's encoding are off along position.

    Parameters
    ----------
    dim : int, default 64
        Width.
    positions : array_like of int, or range, optional
        From 1 on, along one axis; by default 1 to 10**7, evenly on a logarithmic scale.
    recipes : mapping of str to function, optional
        What is measured, by name: functions of positions, int64, and ``dim`` that return an array of shape (positions, dim).
        By default NumPy in float32 all the way, as tutorials have it; float32 angles from float64 frequencies; float64
        rounded to float32; `posenc.encode`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Both axes are logarithmic. A line for each recipe: the largest absolute error of its row, against the correctly
        rounded float64. Shaded is what lies within half a float32 ulp below 1, 2**-25, as correctly rounded rows do.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as above, or a recipe returns something else.
    ImportError
        If Matplotlib is missing.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import posenc
    >>> ax = posenc.plot.recipe_error(8, range(1, 100), ax=Figure().subplots())
    >>> bool(ax.lines[3].get_ydata().max() <= 2.0**-25)
    True
    """
    dim = Encoding(dim).dim
    p, chosen = _recipes.checked_positions(positions), _recipes.checked(recipes)
    errors = {name: _recipes.errors(name, recipe, p, dim) for name, recipe in chosen.items()}
    [ax] = _axes.axes("recipe_error", ax, 1)
    for i, (name, values) in enumerate(errors.items()):
        look: dict[str, Any] = {"color": _OTHERS[i % len(_OTHERS)], "lw": 1.2}
        if chosen[name] is _recipes.posenc:  # below others, and wider than they are
            look |= {"color": _BLUE, "lw": 3.0, "zorder": 1.5}
        ax.plot(p, values, **look, label=name)
    ax.axhspan(0.0, 2.0**-25, color="0.5", alpha=0.25, lw=0, label="within half a float32 ulp, $2^{-25}$")
    ax.set(xscale="log", yscale="log", xlabel="position", ylabel="largest absolute error of a row")
    ax.set_title(f"Error of float32 recipes, d = {dim}")
    ax.margins(x=0)
    ax.set_ylim(2.0**-28, None)
    ax.legend(frameon=False, loc="upper left")
    return ax
