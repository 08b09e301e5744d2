"""timm's grid of two axes."""

import importlib
import sys
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from . import GRID_WIDTH

TITLE = "timm, grid"
NEEDS = ("torch",)  # and timm, of which one file is enough
CONVENTION = "grid: timm"
FROM_ZERO = True


def table(length: int, dim: int, start: int = 0) -> object:
    """The points row by row; ``dim`` is a multiple of 4."""
    height, width = shape(length)
    points = builder()([height, start + width], dim)
    return points.reshape(height, start + width, dim)[:, start:].reshape(length, dim)


def ours(length: int, dim: int) -> object:
    """The same grid by posenc."""
    import posenc

    return posenc.grid(shape(length), dim, convention="timm")


def shape(length: int) -> tuple[int, int]:
    """Height and width of a grid of so many points."""
    width = min(length, GRID_WIDTH)
    if length % width:
        raise ValueError(f"length is {length}; a grid has a multiple of {GRID_WIDTH} points, or fewer than these")
    return length // width, width


@cache
def builder() -> Callable[..., Any]:
    """The function of timm, from its file alone where the whole package wants a torchvision that is not there."""
    name = "timm.layers.pos_embed_sincos"
    try:
        module = importlib.import_module(name)
    except (ImportError, RuntimeError):
        found = find_spec("timm")
        if found is None or not found.submodule_search_locations:
            raise
        for package in [name for name in sys.modules if name.partition(".")[0] == "timm"]:
            del sys.modules[package]
        folder = Path(found.submodule_search_locations[0])
        for package, path in (("timm", folder), ("timm.layers", folder / "layers")):
            sys.modules[package] = ModuleType(package)
            sys.modules[package].__path__ = [str(path)]
        module = importlib.import_module(name)
    return module.build_sincos2d_pos_embed  # type: ignore[no-any-return]
