"""Encodings for PyTorch: a module, functions of tensors, and what DataLoader's workers collate with.

Needs PyTorch (``pip install "posenc[torch]"``, which brings ml_dtypes for bfloat16); ``posenc.torch`` is imported when it is
asked for. Sums are operators of their own, ``torch.ops.posenc``: compiled and exported without a break in the graph.

On the CPU the core adds to the tensor's own memory. For tensors elsewhere a table is made on the CPU and kept on their device,
float32 (float64 for float64), of a power of two of rows from position 0: at most 256 MiB, 512 MiB of all. Rows beyond, and
before 0, are made on the CPU at each call. There, explicit positions wait for the device to say how large they are, unless
they are on the CPU.

``convention`` is a name in `posenc.CONVENTIONS`, its extras keywords, or an `Encoding` for everything else.
"""

from __future__ import annotations

from typing import Any

from posenc import _check, _torch_ops, rope
from posenc._encoding import Encoding
from posenc._torch_arguments import check_positions, check_x, checked_places, checked_sum, holds, integer, name_of, text_of
from posenc._torch_batches import Collate, Packed, Padded
from posenc._torch_ops import add_here, as_array, as_tensor, encoding_of, is_here

# after _torch_ops, which says what to install
import torch  # isort: skip
from torch import Tensor, nn  # isort: skip

__all__ = [
    "Collate",
    "Packed",
    "Padded",
    "PositionalEncoding",
    "add",
    "add_",
    "clear_cache",
    "encode",
    "rope_cache",
    "table",
]


class PositionalEncoding(nn.Module):
    """``dropout(scale * x + encodings)``: the class of the PyTorch tutorial, for sequences of any length, of any floats.

    It has no parameters and no buffers, so nothing in a ``state_dict``, and nothing to move to a device.

    Parameters
    ----------
    dim : int
        Width of x's last axis, at least 1.
    dropout : float, default 0.0
        Probability of an `torch.nn.Dropout` of the sum, in training.
    batch_first : bool, default True
        Whether x is (batch, sequence, dim) or, if False, (sequence, batch, dim), as the tutorial has it.
    scale : float, default 1.0
        x is multiplied by it, as by ``dim**0.5`` in the paper. Finite.
    convention : str or Encoding, default "transformer"
        Whose encodings.
    **extras
        Of the convention, if it is a name. For one with a ``scale`` of its own, give its Encoding.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as above.

    Notes
    -----
    The sum is that of `posenc.add`, by bits: in float32 (float64 for float64), rounded to x's dtype once. The result has x's
    dtype, under autocast, too; the tutorial's class makes float32 of x of 16 bits. The gradient for x is ``scale`` times that
    of the sum; positions have none. `torch.func` works, but of its derivatives none in compiled code.

    A checkpoint of a model with the tutorial's class has a buffer ``pe``. It is taken if it holds these encodings, within what
    a recipe in float32 loses; a ``pe`` of other encodings, or a learned one, is an unexpected key.

    Examples
    --------
    >>> import posenc.torch, torch
    >>> module = posenc.torch.PositionalEncoding(512, dropout=0.1, scale=512**0.5)
    >>> module
    PositionalEncoding(
      512, convention='transformer', scale=22.627416997969522, batch_first=True
      (dropout): Dropout(p=0.1, inplace=False)
    )
    >>> module(torch.zeros(32, 100, 512)).shape
    torch.Size([32, 100, 512])
    """

    def __init__(
        self,
        dim: int,
        *,
        dropout: float = 0.0,
        batch_first: bool = True,
        scale: float = 1.0,
        convention: str | Encoding = "transformer",
        **extras: Any,
    ) -> None:
        super().__init__()
        self._text = text_of(dim, convention, extras)
        self._said = "".join(f", {name}={value!r}" for name, value in {"convention": convention, **extras}.items())
        self.dim = self.encoding.dim
        self.scale = _check.real("scale", scale)
        self.batch_first = _check.flag("batch_first", batch_first)
        self.dropout = nn.Dropout(dropout)

    @property
    def encoding(self) -> Encoding:
        """The encoding that is added."""
        return encoding_of(self._text)

    def forward(
        self, x: Tensor, *, start: int | None = None, positions: Tensor | None = None, padding_mask: Tensor | None = None
    ) -> Tensor:
        """``dropout(scale * x + encodings)``.

        Parameters
        ----------
        x : Tensor of floats, shape (batch, sequence, dim), (sequence, batch, dim) or (sequence, dim)
            As ``batch_first`` says. With more axes the sequence is still the last but one, or the first.
        start : int, optional
            Position of the first element, by default the encoding's: how many there were before, in a stream or a cache.
        positions : Tensor of integers or floats, optional
            Of shape (sequence,), or one that broadcasts to x.shape[:-1]; instead of ``start``. Floats are taken exactly.
        padding_mask : Tensor of bool, shape (batch, sequence), optional
            True for padding, whatever ``batch_first``, as ``key_padding_mask`` of `torch.nn.MultiheadAttention`; with
            ``attention_mask`` of Hugging Face's models it is ``attention_mask == 0``. Padding gets ``scale * x`` alone, and
            positions count the other elements: 0, 1, ... from ``start`` on, wherever the padding stands.

        Returns
        -------
        Tensor, the shape and dtype of x

        Raises
        ------
        TypeError, ValueError
            If an argument is not as above.

        Examples
        --------
        >>> import posenc.torch, torch
        >>> module, x = posenc.torch.PositionalEncoding(2), torch.zeros(1, 3, 2)
        >>> module(x, padding_mask=torch.tensor([[True, False, False]]))
        tensor([[[0.0000, 0.0000],
                 [0.0000, 1.0000],
                 [0.8415, 0.5403]]])
        >>> module(x[:, :1], start=1)
        tensor([[[0.8415, 0.5403]]])
        """
        check_x(x, self.dim)
        axis = -2 if self.batch_first else -x.ndim
        places = checked_places(x, axis, start, positions, padding_mask)
        total = _torch_ops.add(x, self._text, self.scale, axis, *places)
        return self.dropout(total) if self.dropout.training else total  # a call saved

    def extra_repr(self) -> str:
        """The arguments."""
        return f"{self.dim}{self._said}, scale={self.scale!r}, batch_first={self.batch_first}"

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        if holds(state_dict.get(f"{prefix}pe"), self.encoding):
            del state_dict[f"{prefix}pe"]
        super()._load_from_state_dict(state_dict, prefix, *rest)


def table(
    length: int,
    dim: int,
    *,
    start: int | None = None,
    dtype: torch.dtype = torch.float32,
    convention: str | Encoding = "transformer",
    **extras: Any,
) -> Tensor:
    """The encodings of consecutive positions, each entry correctly rounded.

    Parameters
    ----------
    length, dim : int
        Rows, at least 0, and their width, at least 1.
    start : int, optional
        Position of the first row, by default the encoding's.
    dtype : torch.dtype, default torch.float32
        Or float64, float16, bfloat16.
    convention, **extras
        As of `PositionalEncoding`.

    Returns
    -------
    Tensor, shape (length, dim)
        On the CPU.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as above.

    See Also
    --------
    posenc.table : the same as an array.

    Examples
    --------
    >>> import posenc.torch, torch
    >>> posenc.torch.table(2, 4, dtype=torch.bfloat16)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8398, 0.5391, 0.0100, 1.0000]], dtype=torch.bfloat16)
    """
    name_of(dtype)
    length, start = integer("length", length, least=0), None if start is None else integer("start", start)
    made: Tensor = _torch_ops.TABLE(length, text_of(dim, convention, extras), start, dtype)
    return made


def encode(
    positions: Tensor,
    dim: int,
    *,
    dtype: torch.dtype = torch.float32,
    convention: str | Encoding = "transformer",
    **extras: Any,
) -> Tensor:
    """The encodings of any positions, as of diffusion's timesteps, each entry correctly rounded.

    Parameters
    ----------
    positions : Tensor of integers or floats, any shape
        Floats are taken exactly. It must not require a gradient: there is none.
    dim : int
        Width of a row.
    dtype : torch.dtype, default torch.float32
        Or float64, float16, bfloat16.
    convention, **extras
        As of `PositionalEncoding`.

    Returns
    -------
    Tensor, shape positions.shape + (dim,)
        On the device of ``positions``.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as above.

    See Also
    --------
    posenc.encode : the same of arrays.

    Examples
    --------
    >>> import posenc.torch, torch
    >>> posenc.torch.encode(torch.tensor([0.5, 999.0]), 4, convention="diffusion")
    tensor([[ 0.8776,  1.0000,  0.4794,  0.0050],
            [ 0.9996, -0.8445, -0.0265, -0.5356]])
    """
    check_positions(positions)
    name_of(dtype)
    encoded: Tensor = _torch_ops.ENCODE(positions, text_of(dim, convention, extras), dtype)
    return encoded


def add(
    x: Tensor,
    *,
    positions: Tensor | None = None,
    start: int | None = None,
    axis: int = -2,
    scale: float = 1.0,
    padding_mask: Tensor | None = None,
    convention: str | Encoding = "transformer",
    **extras: Any,
) -> Tensor:
    """``scale * x + encodings``.

    Parameters
    ----------
    x : Tensor of floats, shape (..., dim)
        Of any strides.
    positions, start, padding_mask
        As of `PositionalEncoding.forward`.
    axis : int, default -2
        The axis of the sequence. Not the last.
    scale : float, default 1.0
        Finite.
    convention, **extras
        As of `PositionalEncoding`.

    Returns
    -------
    Tensor, the shape and dtype of x

    Raises
    ------
    TypeError, ValueError
        If an argument is not as above.

    See Also
    --------
    posenc.add : the same of arrays.

    Examples
    --------
    >>> import posenc.torch, torch
    >>> posenc.torch.add(torch.ones(2, 4), scale=2.0)
    tensor([[2.0000, 3.0000, 2.0000, 3.0000],
            [2.8415, 2.5403, 2.0100, 2.9999]])
    """
    return _torch_ops.add(x, *checked_sum(x, positions, start, axis, scale, padding_mask, convention, extras))


def add_(
    x: Tensor,
    *,
    positions: Tensor | None = None,
    start: int | None = None,
    axis: int = -2,
    scale: float = 1.0,
    padding_mask: Tensor | None = None,
    convention: str | Encoding = "transformer",
    **extras: Any,
) -> Tensor:
    """``scale * x + encodings``, written into x.

    Parameters are those of `add`. In memory that is the CPU's; where a gradient is asked for, elsewhere, and in compiled code
    the sum is made first and then copied into x.

    Returns
    -------
    Tensor
        x itself.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as of `add`.
    RuntimeError
        If PyTorch allows no change of x: a leaf that requires a gradient.

    Examples
    --------
    >>> import posenc.torch, torch
    >>> x = torch.zeros(32, 100, 512, dtype=torch.float16)
    >>> posenc.torch.add_(x) is x
    True
    """
    arguments = checked_sum(x, positions, start, axis, scale, padding_mask, convention, extras)
    asks = x.requires_grad and torch.is_grad_enabled()
    if asks or not is_here(x) or type(x) not in (Tensor, nn.Parameter) or torch.compiler.is_compiling():
        return x.copy_(_torch_ops.add(x, *arguments))
    array = as_array(x.detach())
    add_here(array, *arguments, out=array)
    if not x.is_inference():
        torch.autograd.graph.increment_version(x)
    return x


def rope_cache(
    length: int,
    schedule: rope.Schedule | int,
    *,
    layout: rope.Two | rope.One,
    start: int = 0,
    dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, Tensor] | Tensor:
    """Cosines and sines of consecutive positions as rotary caches have them, each entry correctly rounded.

    Parameters
    ----------
    length : int
        Positions, at least 0.
    schedule : Schedule or int
        Of `posenc.rope`; an int is the width of a head, for ``rope.default(width)``.
    layout : {"split", "halves", "pairs", "row", "stacked", "complex"}
        As of `posenc.rope.cache`.
    start : int, default 0
        The first position.
    dtype : torch.dtype, default torch.float32
        Or float64, float16, bfloat16. "complex" has complex64 for float32 and complex128 for float64, and no other.

    Returns
    -------
    (Tensor, Tensor) or Tensor
        Of the shapes of `posenc.rope.cache`, on the CPU; of two the cosines come first.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as above.

    Examples
    --------
    >>> import posenc, posenc.torch, torch
    >>> cosines, sines = posenc.torch.rope_cache(4096, 128, layout="halves", dtype=torch.bfloat16)
    >>> cosines.shape
    torch.Size([4096, 128])
    >>> schedule = posenc.rope.llama3(128, 8.0, 8192, base=500000.0)
    >>> posenc.torch.rope_cache(4096, schedule, layout="complex").dtype
    torch.complex64
    """
    if not isinstance(schedule, rope.Schedule):
        schedule = rope.default(schedule)
    made: Any = rope.cache(length, schedule, layout=layout, start=start, dtype=name_of(dtype))
    return (as_tensor(made[0]), as_tensor(made[1])) if isinstance(made, tuple) else as_tensor(made)


def clear_cache() -> None:
    """Forget the tables that are kept on other devices than the CPU.

    See Also
    --------
    posenc.clear_cache : what is kept in the host's memory.

    Examples
    --------
    >>> import posenc.torch
    >>> posenc.torch.clear_cache()
    """
    _torch_ops.TABLES.clear()
