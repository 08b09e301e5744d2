"""The paper's encoding in float32 as people compute it, and how far it is off."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posenc import _check, _positions
from posenc._encoding import Encoding

Recipe = Callable[[NDArray[np.int64], int], ArrayLike]


def _row(angles: NDArray[Any], dim: int) -> NDArray[Any]:
    """Sines and cosines in turn, in the dtype of the angles."""
    rows = np.empty((len(angles), dim), angles.dtype)
    rows[:, 0::2] = np.sin(angles)
    rows[:, 1::2] = np.cos(angles[:, : dim // 2])
    return rows


def _frequencies(dim: int, kind: type[Any]) -> NDArray[Any]:
    frequencies: NDArray[Any] = np.exp(np.arange(0, dim, 2, dtype=kind) * kind(-math.log(10000.0) / dim))
    return frequencies


def float32(positions: NDArray[np.int64], dim: int) -> NDArray[Any]:
    """Everything in float32."""
    return _row(positions.astype(np.float32)[:, None] * _frequencies(dim, np.float32), dim)


def float32_angles(positions: NDArray[np.int64], dim: int) -> NDArray[Any]:
    """Frequencies and their products with positions in float64; these products, sines and cosines in float32."""
    return _row((positions[:, None] * _frequencies(dim, np.float64)).astype(np.float32), dim)


def float64(positions: NDArray[np.int64], dim: int) -> NDArray[Any]:
    """Everything in float64, rounded to float32 at the end."""
    return _row(positions[:, None] * _frequencies(dim, np.float64), dim).astype(np.float32)


def posenc(positions: NDArray[np.int64], dim: int) -> NDArray[Any]:
    """Correctly rounded."""
    return Encoding(dim).encode(positions)


USUAL: Mapping[str, Recipe] = {
    "NumPy, all in float32": float32,
    "float64 frequencies, float32 angles": float32_angles,
    "all in float64, rounded to float32": float64,
    "posenc, float32": posenc,
}


def checked(recipes: Any) -> Mapping[str, Recipe]:
    """Functions by name, those of `USUAL` for None."""
    if recipes is None:
        return USUAL
    if not isinstance(recipes, Mapping) or not all(isinstance(name, str) and callable(recipes[name]) for name in recipes):
        kind = type(recipes).__name__
        raise TypeError(f"recipes must be a mapping of names to functions, not {kind} {_check.shown(recipes)}")
    if not recipes:
        raise ValueError("recipes is empty; it must have at least one function")
    return recipes


def checked_positions(positions: Any) -> NDArray[np.int64]:
    """Integers from 1 on, at least one, along one axis."""
    if positions is None:
        return np.unique(np.rint(np.logspace(0.0, 7.0, 211)).astype(np.int64))
    points = _positions.checked(_positions.as_array(positions), None)
    if points.ndim != 1 or not len(points):
        raise ValueError(f"positions has shape {points.shape}; it must have one axis, of at least one position")
    if points.dtype != np.int64:
        raise TypeError("positions has fractions; it must be integers")
    _positions.check_all("positions", points, points < 1, "at least 1")
    return points.astype(np.int64)


def errors(name: str, recipe: Recipe, positions: NDArray[np.int64], dim: int) -> NDArray[np.float64]:
    """The largest absolute error of each row, against the correctly rounded float64."""
    rows = np.asarray(recipe(positions.copy(), dim))
    shape = (len(positions), dim)
    if rows.shape != shape or rows.dtype.kind == "c":
        raise ValueError(f"recipe {name!r} returned shape {rows.shape} of {rows.dtype}; it must be {shape} of real numbers")
    truth = Encoding(dim).encode(positions, dtype=np.float64)
    largest: NDArray[np.float64] = np.abs(rows.astype(np.float64) - truth).max(axis=1)
    return largest
