"""Positions of tokens that stand among padding, or in sequences packed one behind another."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posenc import _arrays, _check
from posenc._positions import check_all, of_kind

_INT64 = np.dtype(np.int64)


def positions_from_mask(mask: ArrayLike) -> NDArray[np.int64]:
    """Positions of the tokens that a mask keeps: 0, 1, 2, ... along the last axis, wherever the padding stands.

    Parameters
    ----------
    mask : array_like of bool, shape (..., length)
        True, or the integer 1, for a token; False, or 0, for padding.

    Returns
    -------
    ndarray of int64, the shape of ``mask``
        How many tokens stand before this one; 0 for padding.

    Raises
    ------
    TypeError
        If ``mask`` is neither bool nor integers, or a masked array.
    ValueError
        If ``mask`` has no axis, or an integer in it is neither 0 nor 1.
    MemoryError
        If the positions do not fit in memory.

    Notes
    -----
    The first token has position 0 as the padding has. Where the encoding is to tell them apart, ``where=mask`` of
    `posenc.encode` and `posenc.add` gives padding no encoding.

    Examples
    --------
    Padding to the left and to the right:

    >>> import posenc
    >>> posenc.positions_from_mask([[0, 0, 1, 1], [1, 1, 1, 0]])
    array([[0, 0, 0, 1],
           [0, 1, 2, 0]])
    """
    marks = of_kind("mask", mask, "biu", "bool, or integers that are 0 or 1")
    _check_sequence("mask", marks)
    positions = _arrays.fresh(marks.shape, _INT64)
    if marks.dtype != np.bool_:
        check_all("mask", marks, (marks < 0) | (marks > 1), "0 or 1")
        marks = marks.astype(np.bool_)
    _count(marks, positions)
    positions -= marks
    return positions


def positions_from_ids(ids: ArrayLike, padding_idx: int) -> NDArray[np.int64]:
    """Positions of token ids as fairseq counts them: ``padding_idx`` + 1, + 2, ... along the last axis.

    Parameters
    ----------
    ids : array_like of int, shape (..., length)
        Token ids.
    padding_idx : int
        The id that is padding, wherever it stands. An int64.

    Returns
    -------
    ndarray of int64, the shape of ``ids``
        ``padding_idx`` for padding; else that plus how many tokens there are up to this one, itself counted.

    Raises
    ------
    TypeError
        If ``ids`` are not integers, or a masked array, or ``padding_idx`` is not an integer.
    ValueError
        If ``ids`` has no axis, or ``padding_idx`` or a position is not an int64.
    MemoryError
        If the positions do not fit in memory.

    References
    ----------
    ``make_positions`` in https://github.com/facebookresearch/fairseq/blob/main/fairseq/utils.py

    Examples
    --------
    >>> import posenc
    >>> posenc.positions_from_ids([[5, 6, 1], [1, 7, 8]], 1)
    array([[2, 3, 1],
           [1, 2, 3]])
    """
    tokens = of_kind("ids", ids, "iu", "integers, of int64 or uint64 at most")
    _check_sequence("ids", tokens)
    padding_idx = _check.integer("padding_idx", padding_idx)
    positions = _arrays.fresh(tokens.shape, _INT64)
    _count(tokens != padding_idx, positions)
    most = int(positions.max(initial=0))
    if padding_idx + most > _check.INT64_MAX:
        limit = _check.INT64_MAX - most
        raise ValueError(f"padding_idx is {padding_idx}; it must be at most {limit}, as positions go {most} beyond it")
    positions += padding_idx
    return positions


def positions_from_lengths(lengths: ArrayLike) -> NDArray[np.int64]:
    """Positions in packed sequences: 0, 1, ... ``n`` - 1 for each length ``n``, one behind another.

    Parameters
    ----------
    lengths : array_like of int, shape (sequences,)
        Tokens of each sequence, at least 0.

    Returns
    -------
    ndarray of int64, shape (sum of ``lengths``,)
        How many tokens of the same sequence stand before this one.

    Raises
    ------
    TypeError
        If ``lengths`` are not integers, or a masked array.
    ValueError
        If ``lengths`` is not one-dimensional, or a length is negative.
    MemoryError
        If the positions do not fit in memory.

    Examples
    --------
    >>> import posenc
    >>> posenc.positions_from_lengths([3, 0, 2])
    array([0, 1, 2, 0, 1])
    """
    counts = of_kind("lengths", lengths, "iu", "integers, of int64 or uint64 at most")
    if counts.ndim != 1:
        raise ValueError(f"lengths has shape {counts.shape}; it must be one-dimensional")
    check_all("lengths", counts, counts < 0, "at least 0")
    steps = _arrays.fresh((sum(counts.tolist()),), _INT64)  # the sum is Python's, which does not overflow
    sizes = counts[counts > 0].astype(np.int64)
    steps.fill(1)
    steps[:1] = 0
    steps[np.cumsum(sizes[:-1])] = 1 - sizes[:-1]  # from the last position of a sequence to 0
    np.cumsum(steps, out=steps)
    return steps


def _check_sequence(name: str, array: NDArray[Any]) -> None:
    if array.ndim == 0:
        raise ValueError(f"{name} has shape (); it must have at least one axis, the last that of the sequence")


def _count(marks: NDArray[np.bool_], out: NDArray[np.int64]) -> None:
    """Number the True along the last axis 1, 2, 3, ... into ``out``, and the False 0."""
    out[...] = marks
    np.cumsum(out, axis=-1, out=out)
    out *= marks
