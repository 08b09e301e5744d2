"""``posenc verify``: which convention a .npy file follows, and how well it is rounded."""

import argparse
import json
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from posenc import CONVENTIONS, GRIDS, _cli_options

if TYPE_CHECKING:
    from posenc._match import Match

NO_CONVENTION, NOT_ROUNDED = 3, 4  # exit codes


def add_verify(subcommands: "_cli_options.Subcommands[_cli_options.Parser]") -> None:
    """Add ``posenc verify``."""
    parser = _cli_options.added(
        subcommands,
        "verify",
        _verify,
        summary="say which convention a .npy file follows, and how many of its entries are misrounded",
        description="Say which convention, base, first position and dtype the table in FILE follows, how many of its entries\n"
        "are not the correctly rounded ones, and which is the worst.\n"
        f"The exit code is {NO_CONVENTION} if no convention explains the table; with --strict it is {NOT_ROUNDED} if an entry\n"
        "is not the correctly rounded one, or that cannot be told.",
        examples="  posenc verify pe.npy\n"
        "  posenc verify pe.npy --strict --json\n"
        "  posenc verify pe.npy --convention fairseq --base 12345.678",
    )
    parser.add_argument("file", metavar="FILE", help="the .npy file: float32, float64 or float16, the columns last")
    parser.add_argument("--convention", metavar="NAME", help="look for this one only")
    parser.add_argument("--base", metavar="BASE", type=float, help="the base, if it is known")
    parser.add_argument("--first", metavar="N", type=int, help="position of the first row, if it is known")
    parser.add_argument("--sample", metavar="ROWS", type=int, help="compare so many rows only, evenly spread (default: all)")
    parser.add_argument("--strict", action="store_true", help="fail unless every entry is the correctly rounded one")
    _cli_options.add_json(parser)


def _verify(arguments: argparse.Namespace) -> str:
    from posenc._identify import identify

    table = _read(arguments.file)
    match = identify(
        table, convention=arguments.convention, base=arguments.base, first=arguments.first, sample=arguments.sample
    )
    text = _as_json(match, table) if arguments.json else _as_text(match, table)
    code = NO_CONVENTION if match is None else NOT_ROUNDED if arguments.strict and match.misrounded != 0 else 0
    if code:
        print(text)
        raise SystemExit(code)
    return text


def _read(name: str) -> NDArray[Any]:
    """The file's array, mapped into memory."""
    try:
        array = np.load(name, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        said = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"file is {name!r}; it must be a .npy file of numbers that are not none: {said}") from None
    if not isinstance(array, np.ndarray):
        raise ValueError(f"file is {name!r}; it must hold one array, as a .npy file does")
    return array


# ---- what is said ----------------------------------------------------------------------------------------------------


def _as_text(match: "Match | None", table: NDArray[Any]) -> str:
    kind = f"{table.shape} {table.dtype}"
    if match is None:
        return _aligned([("convention", "none that posenc knows"), ("table", kind)])
    name, *same = match.names
    lines = [("convention", f"{name} (the same values: {', '.join(same)})" if same else name)]
    if match.others:
        lines.append(("or", f"{', '.join(match.others)}, whose values are others; the table does not tell"))
    extras = {**_base(match), **match.extras}
    if extras:
        lines.append(("extras", ", ".join(f"{extra} {_shown(value)}" for extra, value in extras.items())))
    if match.encoding is not None and match.encoding.amplitude != 1.0 and name != "mlx":
        lines.append(("amplitude", repr(match.encoding.amplitude)))
    lines.append(("grid", _shape(match)) if match.shape is not None else ("positions", _positions(match, table)))
    narrow = match.dtype != table.dtype.newbyteorder("=")
    lines.append(("table", f"{kind}, of {match.dtype} numbers" if narrow else kind))
    if match.zero_rows:
        rows = ", ".join(map(str, match.zero_rows[:8])) + (", ..." if len(match.zero_rows) > 8 else "")
        lines.append(("zero rows", f"{rows} (not compared)"))
    return _aligned(lines + _rounding(match))


def _base(match: "Match") -> dict[str, Any]:
    """What the convention calls its base, and its default."""
    known = (CONVENTIONS if match.shape is None else GRIDS)[match.names[0]].extras
    return {called: known[called] for called in ("base", "max_period", "max_timescale") if called in known}


def _aligned(lines: list[tuple[str, str]]) -> str:
    return "\n".join(f"{label:<12} {text}" for label, text in lines)


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)


def _shape(match: "Match") -> str:
    shape = " x ".join(map(str, match.shape or ()))
    return f"{shape}, columns first" if match.channels_first else shape


def _positions(match: "Match", table: NDArray[Any]) -> str:
    if match.positions is not None:
        first = ", ".join(f"{point:.9g}" for point in match.positions[:6].tolist())
        return f"{first}{', ...' if len(match.positions) > 6 else ''}, not evenly spaced"
    if match.step == 1:
        return f"from {match.first}"
    return f"from {match.first:.9g}, {match.step:.9g} from row to row"


def _rounding(match: "Match") -> list[tuple[str, str]]:
    if match.misrounded is None:
        return [("misrounded", "cannot be told: some number above is an estimate")]
    share = 100.0 * match.misrounded / max(1, match.entries)
    if match.worst is None:
        return [("misrounded", f"none of {match.entries} entries")]
    worst = match.worst
    lines = [("misrounded", f"{share:.3g} % of {match.entries} entries")]
    at = ", ".join(map(str, worst.at))
    values = f"got {worst.got.hex()} ({worst.got:.9g}), want {worst.want.hex()} ({worst.want:.9g})"
    return [*lines, ("worst", f"[{at}]: {values}, {worst.ulps:.3g} ulp, {worst.error:.2g}")]


def _as_json(match: "Match | None", table: NDArray[Any]) -> str:
    said: dict[str, Any] = {"table": {"shape": table.shape, "dtype": str(table.dtype)}}
    if match is None:
        return json.dumps({**said, "names": []})
    fields = match._asdict()
    encoding = fields.pop("encoding")
    fields["positions"] = None if match.positions is None else match.positions.tolist()
    fields["dtype"] = str(match.dtype)
    fields["amplitude"] = None if encoding is None else encoding.amplitude
    fields["worst"] = None if match.worst is None else match.worst._asdict()
    return json.dumps({**said, **fields}, allow_nan=True)
