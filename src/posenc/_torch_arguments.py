"""Arguments of `posenc.torch`, at the door."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from posenc import _check, _sums
from posenc._encoding import Encoding
from posenc._torch_ops import NAMES
from posenc.conventions import CONVENTIONS
from posenc.conventions import convention as named

# after _torch_ops, which says what to install
import torch  # isort: skip
from torch import Tensor  # isort: skip


def text_of(dim: int, convention: str | Encoding, extras: dict[str, Any]) -> str:
    """The repr of the encoding."""
    if isinstance(convention, Encoding):
        if extras:
            raise TypeError(f"{next(iter(extras))} is given with an Encoding; only a convention's name takes extras")
        if convention.dim != _check.integer("dim", dim):
            raise ValueError(f"dim is {dim}; it must be that of the encoding, {convention.dim}")
        return repr(convention)
    _check.choice("convention", convention, tuple(CONVENTIONS))
    try:
        return _named(dim, convention, **extras)
    except TypeError:  # also for what cannot be hashed; this says which argument is wrong
        return repr(named(convention, dim, **extras))


@lru_cache(maxsize=256, typed=True)
def _named(dim: int, convention: str, **extras: Any) -> str:
    return repr(named(convention, dim, **extras))


# What torch.compiler.assume_constant_result sets, which imports the compiler to do so.
text_of._dynamo_marked_constant = True  # type: ignore[attr-defined]


def integer(name: str, value: int, **limits: int) -> int:
    """An int64; what is compiled may have a symbol for it."""
    return value if torch.compiler.is_compiling() else _check.integer(name, value, **limits)


def name_of(dtype: torch.dtype, owner: str | None = None) -> str:
    """What the core calls it."""
    if dtype not in NAMES:
        said = f"dtype is {dtype}" if owner is None else f"{owner} has dtype {dtype}"
        raise TypeError(f"{said}; it must be torch's float32, float64, float16 or bfloat16")
    return NAMES[dtype]


def check_x(x: Tensor, dim: int) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(f"x must be a Tensor, not {type(x).__name__}")
    name_of(x.dtype, "x")
    if x.ndim < 2 or x.shape[-1] != dim:
        raise ValueError(
            f"x has shape {tuple(x.shape)}; it must be that of a sequence, and its last axis {dim}, the encoding's"
        )


def check_positions(positions: Tensor) -> None:
    if not isinstance(positions, Tensor):
        raise TypeError(f"positions must be a Tensor, not {type(positions).__name__}")
    if positions.dtype == torch.bool or positions.is_complex():
        raise TypeError(f"positions has dtype {positions.dtype}; it must be integers or floats")
    if positions.requires_grad and torch.is_grad_enabled():
        raise ValueError("positions requires a gradient, which is not made; positions.detach() is right")


def checked_places(
    x: Tensor, axis: int, start: int | None, positions: Tensor | None, padding: Tensor | None
) -> tuple[int | None, Tensor | None, Tensor | None]:
    """Start, positions and padding, these in the order of x's axes."""
    if positions is not None:
        if start is not None:
            raise TypeError(f"positions is given with start={start}; they exclude each other")
        check_positions(positions)
        if positions.ndim == 1:
            positions = positions.reshape(-1, *(1,) * (-axis - 2))
    elif start is not None:
        start = integer("start", start)
    if padding is not None:
        if not isinstance(padding, Tensor):
            raise TypeError(f"padding_mask must be a Tensor, not {type(padding).__name__}")
        if padding.dtype != torch.bool:
            raise TypeError(f"padding_mask has dtype {padding.dtype}; it must be torch.bool, True for padding")
        given = tuple(padding.shape)
        if padding.ndim == x.ndim - 1:
            padding = padding.movedim(-1, axis + 1)
        if padding.shape != x.shape[:-1]:
            right = (*x.shape[:axis], *x.shape[axis + 1 : -1], x.shape[axis])
            raise ValueError(f"padding_mask has shape {given}; it must be {right}, for x of shape {tuple(x.shape)}")
    return start, positions, padding


def checked_sum(
    x: Tensor,
    positions: Tensor | None,
    start: int | None,
    axis: int,
    scale: float,
    padding_mask: Tensor | None,
    convention: str | Encoding,
    extras: dict[str, Any],
) -> tuple[str, float, int, int | None, Tensor | None, Tensor | None]:
    """What the operators take behind x."""
    if not isinstance(x, Tensor):
        raise TypeError(f"x must be a Tensor, not {type(x).__name__}")
    text = text_of(x.shape[-1] if x.ndim else 0, convention, extras)
    check_x(x, x.shape[-1])
    axis = _sums.checked_axis(axis, x.ndim) - x.ndim
    return text, _check.real("scale", scale), axis, *checked_places(x, axis, start, positions, padding_mask)


def holds(pe: Any, encoding: Encoding) -> bool:
    """Whether it is a table of the encoding from its first position, as recipes in float32 make it.

    A frequency w = exp(-x) is off by 2**-23 (x + 1) w at most there, and x exp(-x) < 0.37; the product p w rounds once more,
    and sine and cosine add about an ulp: less than (1 + p w) 2**-22 for an amplitude of 1. Then pe's own dtype rounds.
    """
    if not isinstance(pe, Tensor) or pe.is_meta or not pe.is_floating_point() or pe.ndim == 0 or pe.shape[-1] != encoding.dim:
        return False
    theirs = pe.detach().cpu().to(torch.float64).reshape(-1, encoding.dim).numpy()
    ours = encoding.table(len(theirs), dtype="float64")
    farthest = np.abs(np.arange(len(theirs)) + encoding.first)[:, None] * np.abs(encoding.frequencies).max(initial=0.0)
    allowed = abs(encoding.amplitude) * ((1.0 + farthest) * 2.0**-22 + torch.finfo(pe.dtype).eps)
    return bool((np.abs(theirs - ours) <= allowed).all())
