"""Subcommands that show something: ``conventions``, ``info``, ``bench``."""

import argparse
import json
import runpy
import shutil
import sys
import textwrap
from contextlib import nullcontext, suppress
from importlib.util import find_spec
from typing import Any

from posenc import CONVENTIONS, GRIDS, GridConvention, _cli_options, _files, convention, grid, show_config
from posenc.conventions import Convention

# ---- conventions -----------------------------------------------------------------------------------------------------


def add_conventions(subcommands: "_cli_options.Subcommands[_cli_options.Parser]") -> None:
    """Add ``posenc conventions``."""
    parser = _cli_options.added(
        subcommands,
        "conventions",
        _conventions,
        summary="list the conventions, or show one with a row",
        description="List the conventions, their formulas and who uses them; or show one, with the row of a position, and for\n"
        "grids of several axes with the last cell of the first line.",
        examples="  posenc conventions\n"
        "  posenc conventions fairseq --dim 8 --position 2\n"
        "  posenc conventions --json | jq -r '.conventions[].name'",
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="the one to show")
    parser.add_argument("--dim", metavar="DIM", type=int, help="width of the row (default: 4, or the least that a grid has)")
    parser.add_argument("--position", metavar="P", default="1", help="its position, an integer or a float (default: 1)")
    _cli_options.add_json(parser)


def _conventions(arguments: argparse.Namespace) -> str:
    name = arguments.name
    if name is not None and name not in CONVENTIONS and name not in GRIDS:
        known = ", ".join(map(repr, dict.fromkeys((*CONVENTIONS, *GRIDS))))
        raise ValueError(f"name is {name!r}; it must be one of {known}")
    position = _files.number("position", arguments.position)
    entries = [_entry(key, entry) for key, entry in CONVENTIONS.items() if name in (None, key)]
    grids = [_grid_entry(key, entry) for key, entry in GRIDS.items() if name in (None, key)]
    if name is not None:
        for shown in entries:
            encoding = convention(name, 4 if arguments.dim is None else arguments.dim)
            row = encoding.encode(position, dtype="float64")
            shown |= {"dim": encoding.dim, "position": position, "frequencies": encoding.frequencies.tolist()}
            shown["row"] = row.tolist()
        for shown in grids:
            with suppress(ValueError) if entries else nullcontext():  # of two of a name, one may not have that width
                shown |= _cell(name, GRIDS[name], arguments.dim)
    if arguments.json:
        return json.dumps({"conventions": entries, "grids": grids}, indent=2)
    if name is not None:
        return "\n\n".join(map(_in_full, (*entries, *grids)))
    return "\n".join([*map(_in_short, entries), "", "grids of two and more axes:", "", *map(_in_short, grids)])


def _entry(name: str, entry: Convention) -> dict[str, Any]:
    """What can be said without a width; None for what depends on it or on extras."""
    settings = {key: getattr(entry, key) for key in ("layout", "cos_first", "odd", "first", "amplitude")}
    plain = {key: None if callable(value) else value for key, value in settings.items()}
    about = {"name": name, "formula": entry.source, "users": entry.users, **plain}
    return {**about, "extras": dict(entry.extras), "note": entry.note}


def _grid_entry(name: str, entry: GridConvention) -> dict[str, Any]:
    axes = None if entry.axes is None else list(entry.axes.values())
    about = {"name": name, "formula": entry.source, "users": entry.users, "axes": axes, "order": entry.order}
    return {**about, "layout": entry.layout, "multiple": entry.multiple, "extras": dict(entry.extras), "note": entry.note}


def _cell(name: str, entry: GridConvention, dim: int | None) -> dict[str, Any]:
    """A cell that tells the last axis from the others."""
    axes = 2 if entry.axes is None or 2 in entry.axes else max(entry.axes)
    cell = (*(0,) * (axes - 1), 1)
    dim = max(4, entry.multiple) if dim is None else dim
    row = grid(tuple(i + 1 for i in cell), dim, convention=name, dtype="float64")[cell]
    return {"dim": dim, "cell": cell, "row": row.tolist()}


def _in_short(entry: dict[str, Any]) -> str:
    indent = " " * 15
    about = f"{entry['formula']}; {entry['users']}"
    return textwrap.fill(
        about,
        max(40, shutil.get_terminal_size().columns),
        initial_indent=f"{entry['name']:15}",
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _in_full(entry: dict[str, Any]) -> str:
    lines = []
    for key, value in entry.items():
        if value is None or value == "":
            continue
        if key in ("row", "frequencies"):
            value = " ".join(map(repr, value))
        elif key == "extras":
            value = ", ".join(f"{extra}={default!r}" for extra, default in value.items())
        elif key == "axes":
            value = ", ".join(value)
        lines.append(f"{key + ':':13}{value}")
    return "\n".join(lines)


# ---- info ------------------------------------------------------------------------------------------------------------


def add_info(subcommands: "_cli_options.Subcommands[_cli_options.Parser]") -> None:
    """Add ``posenc info``."""
    parser = _cli_options.added(
        subcommands,
        "info",
        _info,
        summary="show version, kernel, OpenMP and threads",
        description="Show the version, the kernel in use and those that run here, OpenMP, and the threads of a large call.",
        examples="  posenc info\n  POSENC_NUM_THREADS=4 posenc info --json",
    )
    _cli_options.add_json(parser)


def _info(arguments: argparse.Namespace) -> str:
    config = show_config("dicts") or {}
    if arguments.json:
        return json.dumps(config)
    return "\n".join(f"{name + ':':13}{value}" for name, value in config.items())


# ---- bench -----------------------------------------------------------------------------------------------------------


def add_bench(subcommands: "_cli_options.Subcommands[_cli_options.Parser]") -> None:
    """Add ``posenc bench``."""
    parser = _cli_options.added(
        subcommands,
        "bench",
        _bench,
        summary="measure the speed here; 'posenc bench --help' shows its own options",
        description="Measure the speed here.",
        examples="  posenc bench --quick",
        add_help=False,
        prefix_chars="\0",  # all arguments are the bench's, with or without a dash
    )
    parser.add_argument("rest", nargs="*")


def _bench(arguments: argparse.Namespace) -> str:
    if find_spec("posenc.bench") is None:
        raise ImportError("this installation has no posenc.bench; in a checkout, python -m bench measures the same")
    before = sys.argv
    sys.argv = ["posenc bench", *arguments.rest]
    try:
        runpy.run_module("posenc.bench", run_name="__main__", alter_sys=True)  # its exit code is that of the SystemExit
    finally:
        sys.argv = before
    return ""
