"""Batches for PyTorch, made where they are collated."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from posenc import _arrays, _check
from posenc._encoding import Encoding
from posenc._torch_arguments import name_of, text_of
from posenc._torch_ops import as_array, as_tensor, encoding_of

# after _torch_ops, which says what to install
import torch  # isort: skip
from torch import Tensor  # isort: skip


class Padded(NamedTuple):
    """Sequences of one batch, each padded with zeros to the longest.

    Attributes
    ----------
    x : Tensor, shape (batch, longest, dim)
        Sequences and encodings; padding is 0.
    padding_mask : Tensor of bool, shape (batch, longest)
        True for padding.
    lengths : Tensor of int64, shape (batch,)
        Of the sequences.
    """

    x: Tensor
    padding_mask: Tensor
    lengths: Tensor


class Packed(NamedTuple):
    """Sequences of one batch, one behind another.

    Attributes
    ----------
    x : Tensor, shape (sum of lengths, dim)
        Sequences and encodings.
    cu_seqlens : Tensor of int32, shape (batch + 1,)
        Where each sequence begins, and where the last one ends.
    longest : int
        The length of the longest one.
    """

    x: Tensor
    cu_seqlens: Tensor
    longest: int


class Collate:
    """``collate_fn`` of a `torch.utils.data.DataLoader`: sequences become a batch, ``scale * x + encodings``, in its workers.

    Each sequence is read once and its sum written where it belongs.

    Parameters
    ----------
    dim : int
        Width of a row.
    packed : bool, default False
        Make a `Packed` instead of a `Padded`.
    padding_side : {"right", "left"}, default "right"
        Where padding stands, behind each sequence or before it; positions count the sequence alone. Packed has none.
    scale : float, default 1.0
        The sequences are multiplied by it.
    convention, **extras
        As of `PositionalEncoding`.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as above; when called, if the sequences are not tensors of one dtype, each (length, dim), on the
        CPU, without a gradient.

    Examples
    --------
    A dataset of more than sequences calls it in a function of its own: ``collate([sample["x"] for sample in samples])``.

    >>> import posenc.torch, torch
    >>> collate = posenc.torch.Collate(4)
    >>> batch = collate([torch.zeros(2, 4), torch.zeros(3, 4)])
    >>> batch.x.shape, batch.padding_mask.tolist()
    (torch.Size([2, 3, 4]), [[False, False, True], [False, False, False]])
    >>> posenc.torch.Collate(4, packed=True)([torch.zeros(2, 4), torch.zeros(3, 4)]).cu_seqlens
    tensor([0, 2, 5], dtype=torch.int32)
    """

    def __init__(
        self,
        dim: int,
        *,
        packed: bool = False,
        padding_side: Literal["right", "left"] = "right",
        scale: float = 1.0,
        convention: str | Encoding = "transformer",
        **extras: Any,
    ) -> None:
        self.encoding = encoding_of(text_of(dim, convention, extras))
        self.packed = _check.flag("packed", packed)
        self.padding_side = _check.choice("padding_side", padding_side, ("right", "left"))
        self.scale = _check.real("scale", scale)
        if packed and padding_side == "left":
            raise ValueError("padding_side is 'left' and packed True; packed sequences have no padding")

    def __call__(self, sequences: Sequence[Tensor]) -> Padded | Packed:
        """The batch."""
        lengths, dim = self._checked_lengths(sequences), self.encoding.dim
        longest, left = max(lengths), self.padding_side == "left"
        kind = _arrays.checked_dtype(name_of(sequences[0].dtype), None)
        if self.packed:
            ends = list(accumulate(lengths, initial=0))
            _check.integer("the sum of the lengths", ends[-1], most=2**31 - 1)
            x = _arrays.fresh((ends[-1], dim), kind)
            parts = [x[begin:end] for begin, end in pairwise(ends)]
        else:
            x = _arrays.fresh((len(lengths), longest, dim), kind)
            begins = [longest - n if left else 0 for n in lengths]
            parts = [row[begin : begin + n] for row, begin, n in zip(x, begins, lengths, strict=True)]
            for row, begin, n in zip(x, begins, lengths, strict=True):
                row[:begin] = row[begin + n :] = 0
        for sequence, part in zip(sequences, parts, strict=True):
            self.encoding.add(as_array(sequence), scale=self.scale, out=part)
        if self.packed:
            return Packed(as_tensor(x), torch.tensor(ends, dtype=torch.int32), longest)
        is_padding = np.arange(longest) >= np.array(lengths)[:, None]
        mask = torch.from_numpy(is_padding[:, ::-1].copy() if left else is_padding)
        return Padded(as_tensor(x), mask, torch.tensor(lengths))

    def _checked_lengths(self, sequences: Sequence[Tensor]) -> list[int]:
        if not sequences:
            raise ValueError("sequences is empty; a batch has at least one")
        for i, sequence in enumerate(sequences):
            if not isinstance(sequence, Tensor):
                raise TypeError(f"sequences[{i}] must be a Tensor, not {type(sequence).__name__}")
            name_of(sequence.dtype, f"sequences[{i}]")
            if sequence.ndim != 2 or sequence.shape[1] != self.encoding.dim:
                shape = tuple(sequence.shape)
                raise ValueError(f"sequences[{i}] has shape {shape}; it must be (length, {self.encoding.dim})")
            if sequence.dtype != sequences[0].dtype:
                raise TypeError(
                    f"sequences[{i}] has dtype {sequence.dtype}; it must be that of the first, {sequences[0].dtype}"
                )
        return [len(sequence) for sequence in sequences]
