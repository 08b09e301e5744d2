"""Sinusoidal positional encodings: every entry correctly rounded, written at the speed of memory."""

from posenc import frequencies
from posenc._config import show_config
from posenc._encoding import Encoding
from posenc._functions import add, clear_cache, encode, table
from posenc._threads import set_threads, threads
from posenc._version import __version__

__all__ = [
    "Encoding",
    "__version__",
    "add",
    "clear_cache",
    "encode",
    "frequencies",
    "set_threads",
    "show_config",
    "table",
    "threads",
]
