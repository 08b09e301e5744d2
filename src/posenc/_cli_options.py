"""What subcommands of the command line share: their parsers, the options of an encoding, the bar of progress."""

import argparse
import ast
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NoReturn

from posenc import Encoding, convention
from posenc.conventions import CONVENTIONS, with_defaults

BAR_AFTER = 0.5  # seconds

Subcommands = argparse._SubParsersAction  # what add_subparsers returns has no public name


class Parser(argparse.ArgumentParser):
    """Leaves it to `main` to report an error, so that every one is a single line."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        sys.stdout.flush()  # after --help: here a pipe without a reader is `main`'s
        super().exit(status, message)


def added(
    subcommands: "Subcommands[Parser]",
    name: str,
    run: Callable[[argparse.Namespace], str],
    *,
    summary: str,
    description: str,
    examples: str,
    **keywords: Any,
) -> Parser:
    """A new subcommand's parser; ``run`` returns what is to be printed."""
    parser = subcommands.add_parser(
        name,
        help=summary,
        description=description,
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        **keywords,
    )
    parser.set_defaults(run=run)
    return parser


# ---- an encoding -----------------------------------------------------------------------------------------------------


def add_encoding(parser: argparse.ArgumentParser) -> None:
    """Add the options that `encoding` reads."""
    group = parser.add_argument_group("the encoding", "the paper's by default; another project's by its name, or by parts")
    group.add_argument("--convention", metavar="NAME", help="one that 'posenc conventions' lists")
    group.add_argument(
        "-x", "--extra", metavar="KEY=VALUE", action="append", help="an extra of the convention, as padding_idx=1; repeatable"
    )
    group.add_argument("--base", metavar="BASE", type=float, help="of the frequencies base**(-2 k / DIM) (default: 10000)")
    group.add_argument("--layout", metavar="LAYOUT", help="interleaved or concatenated (default: interleaved)")
    group.add_argument("--cos-first", action="store_true", default=None, help="cosines where sines would stand")
    group.add_argument("--odd", metavar="ODD", help="odd widths: truncate, zero or error (default: truncate)")
    group.add_argument("--amplitude", metavar="A", type=float, help="what sines and cosines are multiplied by (default: 1)")


def encoding(arguments: argparse.Namespace, dim: int) -> Encoding:
    """The encoding of that width that the options of `add_encoding` ask for."""
    given = {name: getattr(arguments, name) for name in ("layout", "cos_first", "odd", "amplitude")}
    parts = {name: value for name, value in given.items() if value is not None}
    name = arguments.convention
    if name is None:
        for extra in arguments.extra or ():
            raise ValueError(f"extra is {extra!r}, of a convention; --convention must name it")
        return Encoding(dim, base=arguments.base, **parts)
    for part, value in parts.items():
        option = part.replace("_", "-")
        raise ValueError(f"convention is {name!r} and {option} {value!r}; a convention has its own {option}, give one of them")
    extras = _extras(arguments.extra or (), arguments.base)
    if name in CONVENTIONS:
        with_defaults(name, CONVENTIONS[name].extras, extras)  # before an extra is mistaken for another argument
    return convention(name, dim, **extras)


def _extras(words: Sequence[str], base: float | None) -> dict[str, Any]:
    extras = {} if base is None else {"base": base}
    for word in words:
        key, equals, text = word.partition("=")
        if not key or not equals:
            raise ValueError(f"extra is {word!r}; it must be KEY=VALUE")
        if key in extras:
            raise ValueError(f"extra is {word!r}; {key} is given twice")
        try:
            extras[key] = ast.literal_eval(text)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            raise ValueError(f"extra is {word!r}; its value must be a number, True, False or None") from None
    return extras


# ---- output ----------------------------------------------------------------------------------------------------------


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--json``."""
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


@contextmanager
def progress(total: int, *, quiet: bool) -> Iterator[Callable[[int], object]]:
    """Show, where there is a terminal and the package tqdm, how many of ``total`` bytes the given function was told of."""
    if quiet or not sys.stderr.isatty():
        yield lambda nbytes: None
        return
    try:
        tqdm = import_module("tqdm").tqdm
    except ImportError:
        yield lambda nbytes: None
        return
    with tqdm(total=total, unit="B", unit_scale=True, leave=False, delay=BAR_AFTER, file=sys.stderr) as bar:
        yield bar.update
