"""What the comparisons with the functions of other packages share: imports, loud skips, bounds.

Our side is float64, so that only the other side rounds.

- ``ROUNDED``: the function computes in float64 and rounds to float32 once, which moves an entry of at most 1 by 2**-25.
- ``bound(angle)``: it computes in float32. A frequency w = exp(-x) is off by 2**-23 (x + 1) w at most, and x exp(-x) < 0.37;
  the product p w rounds once more, and sine and cosine add about an ulp. That is less than (1 + angle) 2**-22, where angle is
  the largest of the row: 2.4e-5 at position 99 for frequencies up to 1.
"""

import importlib
import itertools
import sys
import warnings
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

EMBEDDINGS = "diffusers.models.embeddings"
MULTIDIM = "positional_encodings.torch_encodings"
TIMM = "timm.layers.pos_embed_sincos"
ROUNDED = 1.001 * 2**-25

#: Packages whose __init__ imports much that the module needed does not, and their subpackages of which that is true too.
ALONE = {"timm": [], "vit_pytorch": [], "depthcharge": [], "official": [], "opennmt": ["opennmt.utils"]}


@cache
def imported(module):
    """A module, without the __init__ of its packages if ALONE says so; what it warns of is not ours."""
    top, *_ = parts = module.split(".")
    if top not in ALONE or top in sys.modules or not find_spec(top):
        return quietly(importlib.import_module, module)
    folder = find_spec(top).submodule_search_locations[0]
    for name in [*map(".".join, itertools.accumulate([part] for part in parts[:-1])), *ALONE[top]]:
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = [str(Path(folder, *name.split(".")[1:]))]
    try:
        return quietly(importlib.import_module, module)
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == top]:
            del sys.modules[name]


def real(module, what):
    """A package's module, or a skip that says what has not been compared."""
    try:
        return imported(module)
    except ImportError as error:
        pytest.skip(f"NOT COMPARED: {what} with {module}: {error}")


def hf(model):
    return f"transformers.models.{model}.modeling_{model}"


def quietly(function, *arguments, **keywords):
    """What a package's function returns; what it warns of is not ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments, **keywords)


def called(function, *arguments, **keywords):
    """The same as an array."""
    return quietly(lambda: np.asarray(function(*arguments, **keywords)))


def bound(angle, unit=2**-22):
    return (1.0 + np.abs(angle)) * unit


def close(theirs, ours, allowed):
    """Nowhere further apart than allowed; else the worst place is shown."""
    assert theirs.shape == ours.shape, f"theirs has shape {theirs.shape}, ours {ours.shape}"
    apart = np.abs(theirs - ours)
    excess = np.where(np.isnan(apart), np.inf, apart - allowed)
    worst = np.unravel_index(np.argmax(excess), excess.shape)
    assert excess[worst] <= 0.0, f"at {tuple(map(int, worst))} theirs {theirs[worst]!r}, ours {ours[worst]!r}"
