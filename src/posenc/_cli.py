"""The command line, ``posenc`` and ``python -m posenc``. A subcommand is two functions: one adds its arguments, one runs it."""

import argparse
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

from posenc import _cli_plot, _cli_show, _cli_verify, _cli_write
from posenc._cli_options import Parser, Subcommands
from posenc._version import __version__

_SUBCOMMANDS: tuple[Callable[["Subcommands[Parser]"], None], ...] = (
    _cli_write.add_table,
    _cli_write.add_encode,
    _cli_write.add_add,
    _cli_plot.add_plot,
    _cli_verify.add_verify,
    _cli_show.add_conventions,
    _cli_show.add_info,
    _cli_show.add_bench,
)

_EPILOG = """\
examples:
  posenc table 8192 1024 -o pe.npy
  posenc add embeddings.npy -o inputs.npy
  posenc conventions whisper

exit codes: 0; 1 memory, disk, permissions or a package fall short; 2 an argument is wrong; verify has 3 and 4; 130 after
Ctrl-C; 141 nobody reads the output; 143 after SIGTERM. An error is one line on stderr. A file that is not complete is not left
behind.
'posenc COMMAND --help' shows a command's arguments."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments, by default those of the process.

    Returns
    -------
    int
        The exit code: 0; 1 if memory, disk, permissions or a package fall short; 2 if an argument is wrong; 130 after Ctrl-C;
        141 if nobody reads the output any more.

    Raises
    ------
    SystemExit
        After ``--help``, ``--version`` and ``bench``; after ``verify`` if no convention fits (3), or, asked to be strict, an
        entry is misrounded (4); after SIGTERM (143) and SIGHUP (129).
    """
    try:
        with _exits_by_signals():
            arguments = _parser().parse_args(argv)
            said = arguments.run(arguments)
            if said:
                print(said, flush=True)
        return 0
    except BrokenPipeError:
        _drop_output()
        return 141
    except KeyboardInterrupt:
        message, code = "interrupted", 130
    except MemoryError as error:
        message, code = str(error) or "not enough memory", 1
    except (OSError, ImportError) as error:
        _drop_output()
        message, code = str(error), 1
    except (TypeError, ValueError) as error:
        message, code = str(error), 2
    print("posenc:", " ".join(message.splitlines()), file=sys.stderr)
    return code


def _parser() -> Parser:
    parser = Parser(
        prog="posenc",
        description="Sinusoidal positional encodings, every entry correctly rounded.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"posenc {__version__}")
    subcommands = parser.add_subparsers(metavar="COMMAND", required=True)
    for add in _SUBCOMMANDS:
        add(subcommands)
    return parser


@contextmanager
def _exits_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP, where nothing else is said, end the block as an exit does, so that it cleans up."""

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
            if signal.getsignal(number) is signal.SIG_DFL:
                before[number] = signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _drop_output() -> None:
    """Lead standard output nowhere if it takes nothing more: the interpreter writes what is left when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
