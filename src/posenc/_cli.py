"""The command line, ``python -m posenc``. A subcommand is two functions: one adds its arguments, one runs it."""

import argparse
import os
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.lib import format as npy

from posenc import _arrays, _cli_plot, _encoding
from posenc._version import __version__

_SLICE_BYTES = 16 << 20  # of a table, made and written at once

_Subcommands = argparse._SubParsersAction  # what add_subparsers returns has no public name


class _Parser(argparse.ArgumentParser):
    """Leaves it to `main` to report an error, so that every one is a single line."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments, by default those of the process.

    Returns
    -------
    int
        The exit code: 0; 1 if memory, disk or permissions fall short; 2 if an argument is wrong; 130 after Ctrl-C.
    """
    parser = _Parser(prog="posenc", description="Sinusoidal positional encodings, every entry correctly rounded.")
    parser.add_argument("--version", action="version", version=f"posenc {__version__}")
    subcommands = parser.add_subparsers(metavar="COMMAND", required=True)
    for add in _SUBCOMMANDS:
        add(subcommands)
    try:
        arguments = parser.parse_args(argv)
        print(arguments.run(arguments))
        return 0
    except KeyboardInterrupt:
        message, code = "interrupted", 130
    except MemoryError as error:
        message, code = str(error) or "not enough memory", 1
    except OSError as error:
        message, code = str(error), 1
    except (TypeError, ValueError) as error:
        message, code = str(error), 2
    print("posenc:", " ".join(message.splitlines()), file=sys.stderr)
    return code


# ---- table -----------------------------------------------------------------------------------------------------------


def _add_table(subcommands: "_Subcommands[_Parser]") -> None:
    parser = subcommands.add_parser(
        "table",
        allow_abbrev=False,
        help="write a table of encodings as a .npy file",
        description="Write the encodings of LENGTH consecutive positions, each a row of DIM numbers, as a .npy file. "
        "Memory is bounded, whatever the length.",
    )
    parser.add_argument("length", metavar="LENGTH", type=int, help="rows, at least 0")
    parser.add_argument("dim", metavar="DIM", type=int, help="width of a row, at least 1")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the .npy file to write")
    parser.add_argument("--start", metavar="N", type=int, help="position of the first row (default: 0)")
    parser.add_argument("--dtype", metavar="DTYPE", help="float32, float64 or float16 (default: float32)")
    parser.add_argument("--base", metavar="BASE", type=float, help="of the frequencies base**(-2 k / DIM) (default: 10000)")
    parser.add_argument(
        "--layout", metavar="LAYOUT", default="interleaved", help="interleaved or concatenated (default: interleaved)"
    )
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists, once the new one is complete")
    parser.set_defaults(run=_table)


def _table(arguments: argparse.Namespace) -> str:
    begin = time.perf_counter()
    encoding = _encoding.Encoding(arguments.dim, base=arguments.base, layout=arguments.layout)
    length, start, kind = _whole_table(encoding, arguments)
    shape, row = (length, encoding.dim), encoding.dim * kind.itemsize
    rows = max(1, _SLICE_BYTES // row)
    with _replacing(arguments.output, length * row, force=arguments.force) as file:
        npy.write_array_header_1_0(file, {"descr": npy.dtype_to_descr(kind), "fortran_order": False, "shape": shape})
        buffer = encoding.table(min(rows, length), start=start, dtype=kind)
        file.write(buffer.data)
        for done in range(rows, length, rows):
            file.write(encoding.table(min(rows, length - done), start=start + done, out=buffer[: length - done]).data)
    seconds = time.perf_counter() - begin
    return f"shape {shape}, {kind}, {length * row} bytes, {seconds:.3g} s, {length * row / seconds / 1e9:.3g} GB/s"


def _whole_table(encoding: _encoding.Encoding, arguments: argparse.Namespace) -> tuple[int, int, np.dtype[Any]]:
    """Length, start and dtype, checked before anything is written as `Encoding.table` would: it sees slices only."""
    length, start = encoding._checked_range(arguments.length, arguments.start)
    kind = _arrays.checked_dtype(arguments.dtype, None)
    if kind.name == "bfloat16":
        raise ValueError("dtype is 'bfloat16'; a .npy file holds float32, float64 or float16")
    encoding._rows.check_domain(kind, _encoding.farthest(start, length))
    return length, start, kind


# ---- files -----------------------------------------------------------------------------------------------------------


@contextmanager
def _replacing(output: str, nbytes: int, *, force: bool) -> Iterator[BinaryIO]:
    """Open a file for ``nbytes`` that becomes ``output`` when the block is done, and vanishes when it is not."""
    target, mode = _target(output, force)
    directory = os.path.dirname(target)
    usage = shutil.disk_usage(directory)
    if usage.total and nbytes > usage.free:  # some file systems do not tell
        raise OSError(f"output is {output!r}; it takes {nbytes} bytes, and {usage.free} are free there")
    temporary = os.path.join(directory, f".posenc-{os.urandom(8).hex()}")  # short, as output's name may be the longest allowed
    try:
        with open(temporary, "xb") as file:
            yield file
        if mode is not None:
            os.chmod(temporary, mode)
        _target(output, force)  # another process may have made it meanwhile
        os.replace(temporary, target)
    except OSError as error:
        raise OSError(f"output is {output!r}; it cannot be written: {error.strerror}") from error
    finally:
        with suppress(OSError):
            os.unlink(temporary)


def _target(output: str, force: bool) -> tuple[str, int | None]:
    """Return the path to write, symbolic links followed, and the permissions of the file that is there, None without one."""
    mode = None
    try:
        target = os.path.realpath(output)
        with suppress(FileNotFoundError, NotADirectoryError):
            mode = os.stat(output).st_mode
    except (OSError, ValueError) as error:
        raise ValueError(f"output is {output!r}; {getattr(error, 'strerror', error)}") from None
    if not os.path.basename(output) or (mode is not None and stat.S_ISDIR(mode)):
        raise ValueError(f"output is {output!r}; it must name a file, not a directory")
    if not os.path.isdir(os.path.dirname(target)):
        raise ValueError(f"output is {output!r}; there is no directory {os.path.dirname(target)!r}")
    if mode is not None and not stat.S_ISREG(mode):
        raise ValueError(f"output is {output!r}; it exists and is not a regular file")
    if not force and os.path.lexists(output):
        raise ValueError(f"output is {output!r}; it exists, and only --force replaces it")
    return target, None if mode is None else mode & 0o777


_SUBCOMMANDS: tuple[Callable[["_Subcommands[_Parser]"], None], ...] = (
    _add_table,
    lambda subcommands: _cli_plot.add(subcommands, _replacing),
)
