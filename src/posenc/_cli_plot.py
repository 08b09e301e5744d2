"""The subcommand ``plot``: a picture of `posenc.plot` as a file."""

import argparse
import io
import os
import warnings
from typing import Any

from posenc import _axes, _check, _cli_options, _files, plot

_MOST_PIXELS = 10**8  # of 4 bytes in memory, while they are drawn
_FORMATS = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}  # without dates: the same file each time
_PICTURES = {  # name: default width, other options, whether those of an encoding
    "heatmap": (128, ("length", "start"), True),
    "similarity": (128, ("length",), True),
    "projected-similarity": (128, ("length",), True),
    "waves": (128, ("length",), True),
    "schemes": (8, ("length",), False),
    "recipe-error": (64, (), False),
}
_OPTIONS = ("length", "start")
_OF_ENCODING = ("convention", "extra", "base", "layout", "cos_first", "odd", "amplitude")


def add_plot(subcommands: "_cli_options.Subcommands[_cli_options.Parser]") -> None:
    """Add ``posenc plot``."""
    parser = _cli_options.added(
        subcommands,
        "plot",
        _plot,
        summary="draw a picture of an encoding as a .png, .svg or .pdf file",
        description="Draw a picture as a .png, .svg or .pdf file:\n" + ", ".join(_PICTURES) + ".\nNeeds Matplotlib.",
        examples="  posenc plot heatmap -o heatmap.png\n"
        "  posenc plot waves --dim 64 --length 500 --convention whisper -o waves.svg\n"
        "  posenc plot recipe-error --width 6 --height 4 --dpi 200 -o errors.png --force",
    )
    parser.add_argument("kind", metavar="KIND", type=_hyphenated, choices=tuple(_PICTURES), help="one of those above")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the file to write; its suffix is its format")
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists, once the new one is complete")
    parser.add_argument(
        "--dim", metavar="DIM", type=int, help="width of the encoding (default: 128; schemes 8, recipe-error 64)"
    )
    parser.add_argument("--length", metavar="LENGTH", type=int, help="positions; of similarities, offsets to either side")
    parser.add_argument("--start", metavar="N", type=int, help="first position of heatmap (default: the convention's, or 0)")
    parser.add_argument("--width", metavar="INCHES", type=float, help="of the picture")
    parser.add_argument("--height", metavar="INCHES", type=float, help="of the picture")
    parser.add_argument("--dpi", metavar="DPI", type=float, default=150.0, help="pixels per inch of a .png (default: 150)")
    _cli_options.add_encoding(parser)


def _hyphenated(kind: str) -> str:
    """A kind, which may be written as the function of `posenc.plot`."""
    return kind.replace("_", "-")


def _plot(arguments: argparse.Namespace) -> str:
    suffix = _suffix(arguments.output)
    usual = _axes.SIZES[arguments.kind.replace("-", "_")]
    width, height = (
        default if given is None else _check.positive(name, given)
        for name, given, default in zip(("width", "height"), (arguments.width, arguments.height), usual, strict=True)
    )
    dpi = _check.positive("dpi", arguments.dpi)
    if not width * height * dpi**2 <= _MOST_PIXELS:
        raise ValueError(f"width is {width:g}, height {height:g} and dpi {dpi:g}; they must make at most 10**8 pixels")
    picture = _drawn(arguments, suffix, (width, height), dpi)
    with _files.replacing(arguments.output, len(picture), force=arguments.force) as file:
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
    dim, options, of_encoding = _PICTURES[kind]
    dim = dim if arguments.dim is None else arguments.dim
    for name in (*_OPTIONS, *_OF_ENCODING):
        value = getattr(arguments, name)
        if value is not None and name not in (*options, *_OF_ENCODING * of_encoding):
            raise ValueError(f"{name.replace('_', '-')} is {value!r}; {kind} has no such option")
    given = {name: getattr(arguments, name) for name in options if getattr(arguments, name) is not None}
    encoding = _cli_options.encoding(arguments, dim)
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
