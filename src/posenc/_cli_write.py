"""Subcommands that write a .npy file, in slices: ``table``, ``encode``, ``add``."""

import argparse
import json
import math
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posenc import Encoding, _arrays, _cli_options, _encoding, _files, _positions, _sums, _threads

_SLICE_BYTES = 16 << 20  # of the file, made and written at once

_Slices = Iterator[NDArray[Any]]

# ---- what they share -------------------------------------------------------------------------------------------------


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", metavar="FILE", required=True, help="the .npy file to write; - is standard output, to a pipe"
    )
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists, once the new one is complete")
    parser.add_argument("--threads", metavar="N", type=int, help="threads to use (default: as posenc does)")
    parser.add_argument("--quiet", action="store_true", help="no bar of progress, no summary")
    _cli_options.add_json(parser)
    _cli_options.add_encoding(parser)


def _add_dtype(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dtype", metavar="DTYPE", help="float32, float64 or float16 (default: float32)")


def _written(
    arguments: argparse.Namespace, encoding: Encoding, shape: tuple[int, ...], kind: np.dtype[Any], slices: _Slices
) -> str:
    """Write an array of that shape, whose rows the slices are, and say what was done. Nothing is made before the file is."""
    begin = time.perf_counter()
    output, nbytes = arguments.output, math.prod(shape) * kind.itemsize
    if output == "-" and arguments.json:
        raise ValueError("output is '-' and --json given; standard output holds one of them")
    with (
        _files.replacing(output, nbytes, force=arguments.force) as file,
        _cli_options.progress(nbytes, quiet=arguments.quiet) as advance,
    ):
        _files.write_header(file, shape, kind)
        for part in slices:
            file.write(part.data)
            advance(part.nbytes)
    seconds = time.perf_counter() - begin
    if arguments.json:
        about = {"output": output, "shape": shape, "dtype": str(kind), "bytes": nbytes, "seconds": seconds}
        return json.dumps({**about, "encoding": repr(encoding)})
    if arguments.quiet or output == "-":
        return ""
    return f"shape {shape}, {kind}, {nbytes} bytes, {seconds:.3g} s, {nbytes / seconds / 1e9:.3g} GB/s"


def _checked_dtype(dtype: str | None) -> np.dtype[Any]:
    if dtype == "bfloat16":
        raise ValueError(
            "dtype is 'bfloat16'; a .npy file holds float32, float64 or float16, posenc.table and encode make bfloat16 arrays"
        )
    return _arrays.checked_dtype(dtype, None)


def _check_threads(arguments: argparse.Namespace) -> None:
    if arguments.threads is not None:
        _threads.checked("threads", arguments.threads)


def _rows_of(encoding: Encoding, kind: np.dtype[Any]) -> int:
    """How many rows a slice has."""
    return max(1, _SLICE_BYTES // (encoding.dim * kind.itemsize))


# ---- table -----------------------------------------------------------------------------------------------------------


def add_table(subcommands: "_cli_options.Subcommands[_cli_options.Parser]") -> None:
    """Add ``posenc table``."""
    parser = _cli_options.added(
        subcommands,
        "table",
        _table,
        summary="write a table of encodings as a .npy file",
        description="Write the encodings of LENGTH consecutive positions, each a row of DIM numbers, as a .npy file.\n"
        "Memory is bounded, whatever the length.",
        examples="  posenc table 8192 1024 -o pe.npy\n"
        "  posenc table 8192 1024 -o pe.npy --dtype float64 --start 4096 --force\n"
        "  posenc table 1024 512 -o pe.npy --convention fairseq -x padding_idx=0",
    )
    parser.add_argument("length", metavar="LENGTH", type=int, help="rows, at least 0")
    parser.add_argument("dim", metavar="DIM", type=int, help="width of a row, at least 1")
    parser.add_argument("--start", metavar="N", type=int, help="position of the first row (default: the convention's, or 0)")
    _add_dtype(parser)
    _add_options(parser)


def _table(arguments: argparse.Namespace) -> str:
    encoding = _cli_options.encoding(arguments, arguments.dim)
    # checked before anything is written as `Encoding.table` would: it sees slices only
    length, start = encoding._checked_range(arguments.length, arguments.start)
    kind = _checked_dtype(arguments.dtype)
    _check_threads(arguments)
    encoding._rows.check_domain(kind, _encoding.farthest(start, length))
    slices = _table_slices(encoding, length, start, kind, arguments.threads)
    return _written(arguments, encoding, (length, encoding.dim), kind, slices)


def _table_slices(encoding: Encoding, length: int, start: int, kind: np.dtype[Any], threads: int | None) -> _Slices:
    rows = _rows_of(encoding, kind)
    buffer = encoding.table(min(rows, length), start=start, dtype=kind, threads=threads)
    yield buffer
    for done in range(rows, length, rows):
        count = min(rows, length - done)
        yield encoding.table(count, start=start + done, out=buffer[:count], threads=threads)


# ---- encode ----------------------------------------------------------------------------------------------------------


def add_encode(subcommands: "_cli_options.Subcommands[_cli_options.Parser]") -> None:
    """Add ``posenc encode``."""
    parser = _cli_options.added(
        subcommands,
        "encode",
        _encode,
        summary="write the encodings of given positions as a .npy file",
        description="Write each position's encoding, a row of DIM numbers, as a .npy file: shape positions.shape + (DIM,).\n"
        "Positions are integers (int64) or floats, all taken exactly. A .npy file of them is read in slices, memory is\n"
        "bounded; text, with white space between numbers, takes 8 bytes a number.",
        examples="  posenc encode positions.npy 512 -o pe.npy\n"
        "  seq 0 2 1000 | posenc encode - 512 -o pe.npy\n"
        "  posenc encode timesteps.txt 320 -o pe.npy --convention diffusion -x max_period=10000",
    )
    parser.add_argument("positions", metavar="POSITIONS", help="a .npy file or text; - is standard input, of either")
    parser.add_argument("dim", metavar="DIM", type=int, help="width of a row, at least 1")
    _add_dtype(parser)
    _add_options(parser)


def _encode(arguments: argparse.Namespace) -> str:
    encoding = _cli_options.encoding(arguments, arguments.dim)
    kind = _checked_dtype(arguments.dtype)
    _check_threads(arguments)
    with _files.any_numbers("positions", arguments.positions) as positions:
        _check_positions_dtype(positions)
        slices = _encode_slices(encoding, positions, kind, arguments.threads)
        return _written(arguments, encoding, (*positions.shape, encoding.dim), kind, slices)


def _encode_slices(encoding: Encoding, positions: _files.Numbers, kind: np.dtype[Any], threads: int | None) -> _Slices:
    rows = _rows_of(encoding, kind)
    buffer = _arrays.fresh((min(rows, positions.size), encoding.dim), kind)
    for part in _checked_slices(positions, rows):
        yield encoding.encode(part, out=buffer[: len(part)], threads=threads)


def _check_positions_dtype(positions: _files.Numbers) -> None:
    _positions.checked(np.empty(0, positions.dtype), None)


def _checked_slices(positions: _files.Numbers, count: int) -> _Slices:
    """Slices of positions, as int64 or float64; an error names the place in the whole, not that in its slice."""
    done = 0

    def place(match: re.Match[str]) -> str:
        index = np.unravel_index(done + int(match[1]), positions.shape)
        return f"positions[{', '.join(map(str, index))}]" if index else "positions"

    for part in positions.slices(count):
        try:
            points = _positions.checked(part, None)
        except ValueError as error:
            raise ValueError(re.sub(r"^positions\[(\d+)\]", place, str(error))) from None
        yield points
        done += len(part)


# ---- add -------------------------------------------------------------------------------------------------------------


def add_add(subcommands: "_cli_options.Subcommands[_cli_options.Parser]") -> None:
    """Add ``posenc add``."""
    parser = _cli_options.added(
        subcommands,
        "add",
        _add,
        summary="add encodings to the embeddings of a .npy file",
        description="Write scale * x + encodings, of x's shape and dtype, where x is a .npy file of embeddings, shape\n"
        "(..., sequence, width). Memory is bounded, whatever the shape.",
        examples="  posenc add embeddings.npy -o inputs.npy\n"
        "  posenc add embeddings.npy -o embeddings.npy --force      (in place, once all is done)\n"
        "  posenc add packed.npy -o inputs.npy --positions positions.npy --scale 22.627",
    )
    parser.add_argument("x", metavar="X", help="the .npy file, float32, float64 or float16, in C order; - is standard input")
    parser.add_argument("--scale", metavar="S", type=float, default=1.0, help="what x is multiplied by (default: 1)")
    parser.add_argument("--axis", metavar="AXIS", type=int, default=-2, help="x's axis of the sequence (default: -2)")
    parser.add_argument("--start", metavar="N", type=int, help="position of the first row (default: the convention's, or 0)")
    parser.add_argument(
        "--positions",
        metavar="FILE",
        help="those of x's rows, in place of --axis and --start: a .npy file or text, that broadcasts to x.shape[:-1] "
        "(held in memory if it is smaller)",
    )
    _add_options(parser)


def _add(arguments: argparse.Namespace) -> str:
    if arguments.x == "-" == arguments.positions:
        raise ValueError("x and positions are both '-'; standard input holds one of them")
    _check_threads(arguments)
    with ExitStack() as stack:
        x = stack.enter_context(_files.npy_numbers("x", arguments.x))
        _arrays.checked_x(np.empty((0, *x.shape[-1:]) if x.shape else (), x.dtype))
        encoding = _cli_options.encoding(arguments, x.shape[-1])
        kind = x.dtype.newbyteorder("=")
        sum_kind = kind if kind == np.float64 else _arrays.FLOAT32
        scale = _sums.checked_scale(arguments.scale, _arrays.FORMATS[sum_kind])
        lead, rows = x.shape[:-1], _rows_of(encoding, kind)
        if arguments.positions is None:
            along = _sums.checked_axis(arguments.axis, len(x.shape))
            length, start = encoding._checked_range(lead[along], arguments.start)
            encoding._rows.check_domain(sum_kind, _encoding.farthest(start, length))
            points = _consecutive(lead, along, start, rows)
        else:
            if arguments.start is not None or arguments.axis != -2:
                raise TypeError(f"positions is given with start={arguments.start} and axis={arguments.axis}; they exclude it")
            encoding._rows.check_domain(sum_kind, 0)
            points = _given(stack.enter_context(_files.any_numbers("positions", arguments.positions)), lead, rows)
        make: Callable[..., NDArray[Any]] = encoding.add
        slices = _sums_of(make, x, kind, points, rows, scale=scale, threads=arguments.threads)
        return _written(arguments, encoding, x.shape, kind, slices)


def _sums_of(
    add: Callable[..., NDArray[Any]], x: _files.Numbers, kind: np.dtype[Any], points: _Slices, rows: int, **options: Any
) -> _Slices:
    dim = x.shape[-1]
    for flat, positions in zip(x.slices(rows * dim), points, strict=True):
        part = flat.reshape(-1, dim).astype(kind, copy=False)
        yield add(part, positions=positions, out=part, **options)


def _consecutive(lead: tuple[int, ...], along: int, start: int, rows: int) -> _Slices:
    """Positions of all rows of that shape, in C order, that go from ``start`` along one axis."""
    total, inner = math.prod(lead), math.prod(lead[along + 1 :])
    for begin in range(0, total, rows):
        numbers = np.arange(begin, min(begin + rows, total), dtype=np.int64)
        yield numbers // inner % lead[along] + start


def _given(positions: _files.Numbers, lead: tuple[int, ...], rows: int) -> _Slices:
    """Positions of all rows of that shape, in C order."""
    _check_positions_dtype(positions)
    _positions.check_broadcast("positions", positions.shape, lead)
    if positions.size == math.prod(lead):
        return _checked_slices(positions, rows)
    whole = next(positions.slices(positions.size)).reshape(positions.shape)
    return _broadcast(np.broadcast_to(_positions.checked(whole, None), lead), rows)


def _broadcast(points: NDArray[Any], rows: int) -> _Slices:
    for begin in range(0, points.size, rows):
        yield points.flat[begin : begin + rows]
