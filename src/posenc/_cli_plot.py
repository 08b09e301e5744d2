"""The subcommand ``plot``: a picture of `posenc.plot` as a file."""

import argparse
import io
import os
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, BinaryIO

from posenc import _axes, _check, convention, plot

_MOST_PIXELS = 10**8  # of 4 bytes in memory, while they are drawn
_FORMATS = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}  # without dates: the same file each time
_PICTURES = {  # name: default width, other options
    "heatmap": (128, ("length", "start", "convention")),
    "similarity": (128, ("length", "convention")),
    "projected-similarity": (128, ("length", "convention")),
    "waves": (128, ("length", "convention")),
    "schemes": (8, ("length",)),
    "recipe-error": (64, ()),
}
_WITH_OPTIONAL = ("length", "start", "convention")

Replacing = Callable[..., AbstractContextManager[BinaryIO]]


def add(subcommands: Any, replacing: Replacing) -> None:
    """Add the subcommand; ``replacing`` opens the file that it writes."""
    parser = subcommands.add_parser(
        "plot",
        allow_abbrev=False,
        help="draw a picture of an encoding as a .png, .svg or .pdf file",
        description="Draw a picture as a .png, .svg or .pdf file: " + ", ".join(_PICTURES) + ". Needs Matplotlib.",
    )
    parser.add_argument("kind", metavar="KIND", type=_hyphenated, choices=tuple(_PICTURES), help="one of those above")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the file to write; its suffix is its format")
    parser.add_argument(
        "--dim", metavar="DIM", type=int, help="width of the encoding (default: 128; schemes 8, recipe-error 64)"
    )
    parser.add_argument("--length", metavar="LENGTH", type=int, help="positions; of similarities, offsets to either side")
    parser.add_argument("--start", metavar="N", type=int, help="first position of heatmap (default: the encoding's)")
    parser.add_argument("--convention", metavar="NAME", help="of posenc.CONVENTIONS (default: transformer)")
    parser.add_argument("--width", metavar="INCHES", type=float, help="of the picture")
    parser.add_argument("--height", metavar="INCHES", type=float, help="of the picture")
    parser.add_argument("--dpi", metavar="DPI", type=float, default=150.0, help="pixels per inch of a .png (default: 150)")
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists, once the new one is complete")
    parser.set_defaults(run=lambda arguments: _plot(arguments, replacing))


def _hyphenated(kind: str) -> str:
    """A kind, which may be written as the function of `posenc.plot`."""
    return kind.replace("_", "-")


def _plot(arguments: argparse.Namespace, replacing: Replacing) -> str:
    suffix = _suffix(arguments.output)
    usual = _axes.SIZES[arguments.kind.replace("-", "_")]
    width, height = (
        default if given is None else _check.positive(name, given)
        for name, given, default in zip(("width", "height"), (arguments.width, arguments.height), usual, strict=True)
    )
    dpi = _check.positive("dpi", arguments.dpi)
    if not width * height * dpi**2 <= _MOST_PIXELS:
        raise ValueError(f"width is {width:g}, height {height:g} and dpi {dpi:g}; they must make at most 10**8 pixels")
    try:
        picture = _drawn(arguments, suffix, (width, height), dpi)
    except ImportError as error:
        raise OSError(str(error)) from None
    with replacing(arguments.output, len(picture), force=arguments.force) as file:
        file.write(picture)
    size = f"{width * dpi:.0f} x {height * dpi:.0f} pixels" if suffix == "png" else f"{width:g} x {height:g} inches"
    return f"{arguments.kind}, {size}, {len(picture)} bytes"


def _suffix(output: str) -> str:
    suffix = os.path.splitext(output)[1].removeprefix(".").lower()
    if suffix not in _FORMATS:
        raise ValueError(f"output is {output!r}; its name must end in {', '.join('.' + known for known in _FORMATS)}")
    return suffix


def _drawn(arguments: argparse.Namespace, suffix: str, size: tuple[float, float], dpi: float) -> bytes:
    """The bytes of the file. No window, and nothing of Matplotlib's state, is left behind."""
    _axes.check_matplotlib()
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure, file = Figure(figsize=size, layout="constrained"), io.BytesIO()
    _draw(arguments, figure)
    with rc_context({"svg.hashsalt": "posenc"}), warnings.catch_warnings():
        warnings.filterwarnings("error", "constrained_layout not applied")
        try:
            figure.savefig(file, format=suffix, dpi=dpi, metadata=_FORMATS[suffix])
        except UserWarning as warning:
            if "constrained_layout" not in str(warning):
                raise
            raise ValueError(f"width is {size[0]:g} and height {size[1]:g}; the picture needs more inches") from None
    return file.getvalue()


def _draw(arguments: argparse.Namespace, figure: Any) -> None:
    kind = arguments.kind
    dim, options = _PICTURES[kind]
    dim = dim if arguments.dim is None else arguments.dim
    given = {name: getattr(arguments, name) for name in _WITH_OPTIONAL if getattr(arguments, name) is not None}
    for name, value in given.items():
        if name not in options:
            raise ValueError(f"{name} is {value!r}; {kind} has no such option")
    encoding = convention(given.pop("convention", "transformer"), dim)
    if kind == "schemes":
        plot.schemes(dim=dim, axes=figure.subplots(1, 5), **given)
    elif kind == "recipe-error":
        plot.recipe_error(dim, ax=figure.subplots())
    elif kind == "heatmap":
        plot.heatmap(encoding, ax=figure.subplots(), **given)
    elif kind == "waves":
        plot.waves(encoding, ax=figure.subplots(), **given)
    else:
        length = _check.integer("length", given.get("length", 128), least=1, most=10**7)
        draw = plot.similarity if kind == "similarity" else plot.projected_similarity
        draw(encoding, range(-length, length + 1), ax=figure.subplots())
