"""Sinusoidal positional encodings: every entry correctly rounded, written at the speed of memory."""

from typing import TYPE_CHECKING, Any

from posenc import frequencies
from posenc._config import show_config
from posenc._counting import positions_from_ids, positions_from_lengths, positions_from_mask
from posenc._encoding import Encoding
from posenc._functions import add, clear_cache, encode, rotate, similarity, sincos, table
from posenc._threads import set_threads, threads
from posenc._version import __version__

if TYPE_CHECKING:
    from posenc import plot, rope, schemes
    from posenc._grid import grid
    from posenc._grids import GRIDS, GridConvention
    from posenc._identify import identify
    from posenc._match import Match
    from posenc.conventions import CONVENTIONS, Convention, convention

__all__ = [
    "CONVENTIONS",
    "GRIDS",
    "Convention",
    "Encoding",
    "GridConvention",
    "Match",
    "__version__",
    "add",
    "clear_cache",
    "convention",
    "encode",
    "frequencies",
    "grid",
    "identify",
    "plot",
    "positions_from_ids",
    "positions_from_lengths",
    "positions_from_mask",
    "rope",
    "rotate",
    "schemes",
    "set_threads",
    "show_config",
    "similarity",
    "sincos",
    "table",
    "threads",
]

_LATER = {  # imported when they are asked for, from these modules: a fifth of the import's time
    "arrow": "arrow",
    "CONVENTIONS": "conventions",
    "Convention": "conventions",
    "convention": "conventions",
    "conventions": "conventions",
    "dask": "dask",
    "GRIDS": "_grids",
    "GridConvention": "_grids",
    "Match": "_match",
    "grid": "_grid",
    "identify": "_identify",
    "plot": "plot",
    "rope": "rope",
    "schemes": "schemes",
    "torch": "torch",
}
_NEED_MORE = {"torch"}  # other packages: those who try every name of dir() need not have them


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'posenc' has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f"posenc.{_LATER[name]}")
    globals()[name] = value = module if _LATER[name] == name else getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *(_LATER.keys() - _NEED_MORE)})
