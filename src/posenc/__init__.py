"""Sinusoidal positional encodings: every entry correctly rounded, written at the speed of memory."""

from posenc import frequencies, rope, schemes
from posenc._config import show_config
from posenc._counting import positions_from_ids, positions_from_lengths, positions_from_mask
from posenc._encoding import Encoding
from posenc._functions import add, clear_cache, encode, rotate, similarity, sincos, table
from posenc._grid import grid
from posenc._grids import GRIDS, GridConvention
from posenc._threads import set_threads, threads
from posenc._version import __version__
from posenc.conventions import CONVENTIONS, Convention, convention

__all__ = [
    "CONVENTIONS",
    "GRIDS",
    "Convention",
    "Encoding",
    "GridConvention",
    "__version__",
    "add",
    "clear_cache",
    "convention",
    "encode",
    "frequencies",
    "grid",
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
