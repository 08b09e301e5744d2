"""What `posenc.torch` is made of: tensors as arrays and back, and operators that PyTorch traces, compiles and differentiates.

Design:
a) An operator takes its encoding as its repr, which means the same in every process: in the caches of compiled graphs, in
   exported programs, in workers. It is read back without ``eval``.
b) On the CPU an operator is one call of the core on the tensor's own memory. Elsewhere the core's table, made on the CPU, is
   kept on the device, and the sum is made of the core's operations in the core's order, in float32 or float64: the same bits,
   where the device's arithmetic is IEEE's.
c) Tables are made once for a power of two of rows and never changed; a longer one is another table. They are looked up by all
   that they depend on, so none is stale, and those stored first go first.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posenc import _arrays, _positions, frequencies
from posenc._cache import Cache
from posenc._counting import positions_from_mask
from posenc._encoding import Encoding

try:
    import torch
except ImportError:
    raise ImportError("posenc.torch needs PyTorch: pip install 'posenc[torch]'") from None
from torch import Tensor
from torch.autograd import forward_ad

#: What the core calls the dtypes that it has.
NAMES = {torch.float32: "float32", torch.float64: "float64", torch.float16: "float16", torch.bfloat16: "bfloat16"}

TABLES = Cache(512 << 20)  # of all devices
TABLE_BYTES = TABLES.limit // 2  # what would take more is made on the CPU at each call
_FEWEST_ROWS = 256
_LOG2_LARGEST_ANGLE = 60  # of a row that was not asked for; 2**64 is the domain's

# ---- tensors, arrays, encodings --------------------------------------------------------------------------------------


def as_array(tensor: Tensor) -> NDArray[Any]:
    """The memory of a tensor on the CPU as an array; bfloat16, which NumPy has not, is that of ml_dtypes."""
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(_arrays.checked_dtype("bfloat16", None))
    return tensor.numpy()


def as_tensor(array: NDArray[Any]) -> Tensor:
    """The memory of an array as a tensor."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def is_here(tensor: Tensor) -> bool:
    """Whether the core can read the tensor's memory."""
    return tensor.device.type == "cpu"


@lru_cache(maxsize=256)
def encoding_of(text: str) -> Encoding:
    """The encoding whose repr that is."""
    encoding = _value(ast.parse(text, mode="eval").body)
    if not isinstance(encoding, Encoding):
        raise ValueError(f"encoding is {text!r}; it must be the repr of an Encoding")
    return encoding


def _value(node: ast.expr) -> Any:
    """Of literals and of calls of Encoding, of a rule of `posenc.frequencies`, of its ``scaled``; of nothing else."""
    make: Callable[..., Any]
    match node:
        case ast.Call(func=ast.Name(id="Encoding")):
            make = Encoding
        case ast.Call(func=ast.Attribute(value=ast.Name(id="frequencies"), attr=rule)) if rule in frequencies.__all__:
            make = getattr(frequencies, rule)
        case ast.Call(func=ast.Attribute(value=ast.Call() as unscaled, attr="scaled")):
            make = _value(unscaled).scaled
        case _:
            return ast.literal_eval(node)
    return make(*map(_value, node.args), **{str(word.arg): _value(word.value) for word in node.keywords})


# ---- elsewhere than on the CPU ---------------------------------------------------------------------------------------


def _range(text: str, first: int, length: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Rows of consecutive positions, not to be written to."""
    table = _table(text, first, first + length, dtype, device)
    if table is not None:
        return table[first : first + length]
    return as_tensor(encoding_of(text).table(length, start=first, dtype=NAMES[dtype])).to(device)


def _at(text: str, positions: Tensor, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Rows of any positions; of integers it is asked how large they are, which waits for the device."""
    if positions.numel() and not positions.is_floating_point():
        whole = positions.to(torch.int64)
        low, high = torch.aminmax(whole)
        table = _table(text, int(low), int(high) + 1, dtype, device)
        if table is not None:
            return torch.nn.functional.embedding(whole.to(device), table)  # a copy, of single ones, too
    return as_tensor(encoding_of(text).encode(as_array(positions.cpu()), dtype=NAMES[dtype])).to(device)


def _table(text: str, first: int, end: int, dtype: torch.dtype, device: torch.device) -> Tensor | None:
    """The rows from 0 to ``end`` and more, or None if there are too many to keep, or the first is before 0."""
    encoding = encoding_of(text)
    rows = max(_FEWEST_ROWS, 1 << max(end - 1, 0).bit_length())
    too_many = rows * encoding.dim * dtype.itemsize > TABLE_BYTES
    if first < 0 or too_many or rows.bit_length() + encoding._rows.frequencies.log2_largest > _LOG2_LARGEST_ANGLE:
        return None

    def make() -> Tensor:
        return as_tensor(encoding.table(rows, start=0, dtype=NAMES[dtype])).to(device)

    return TABLES.get((text, rows, dtype, device), make)


def _add_elsewhere(
    x: Tensor, text: str, scale: float, axis: int, start: int | None, positions: Tensor | None, padding: Tensor | None
) -> Tensor:
    kind = torch.float64 if x.dtype == torch.float64 else torch.float32
    if positions is not None:
        _positions.check_broadcast("positions", tuple(positions.shape), tuple(x.shape[:-1]))
        if padding is not None:
            positions = positions.masked_fill(padding.to(positions.device), 0)
        rows = _at(text, positions, kind, x.device)
    else:
        length, first = encoding_of(text)._checked_range(x.shape[axis], start)
        rows = _range(text, first, length, kind, x.device)
        if padding is None:
            rows = rows.reshape(length, *(1,) * (-axis - 2), x.shape[-1])
        else:
            rows = rows[((~padding).cumsum(axis + 1) - 1).clamp_(min=0).to(x.device)]
    scaled = x.to(kind) if scale == 1.0 else x.to(kind) * scale
    total = scaled + rows
    if padding is not None:
        total = torch.where(padding.to(x.device).unsqueeze(-1), scaled, total)
    return total.to(x.dtype).contiguous()


# ---- operators -------------------------------------------------------------------------------------------------------

# not torch.library.custom_op, whose first call imports the compiler, which takes a second and more

torch.library.define(
    "posenc::add",
    "(Tensor x, str encoding, float scale, int axis, SymInt? start, Tensor? positions, Tensor? padding) -> Tensor",
)
torch.library.define("posenc::encode", "(Tensor positions, str encoding, ScalarType dtype) -> Tensor")
torch.library.define("posenc::table", "(SymInt length, str encoding, SymInt? start, ScalarType dtype) -> Tensor")
ADD, ENCODE, TABLE = (getattr(torch.ops.posenc, name).default for name in ("add", "encode", "table"))


def _add(
    x: Tensor, text: str, scale: float, axis: int, start: int | None, positions: Tensor | None, padding: Tensor | None
) -> Tensor:
    """``scale * x + encodings``.

    ``axis`` is negative; ``padding``, True where there are no encodings, has x's shape without the last axis.
    """
    if is_here(x):
        array = as_array(x.detach() if x.requires_grad else x)
        return as_tensor(add_here(array, text, scale, axis, start, positions, padding))
    return _add_elsewhere(x, text, scale, axis, start, positions, padding)


torch.library.impl("posenc::add", "CompositeExplicitAutograd", _add)


def add_here(
    x: NDArray[Any],
    text: str,
    scale: float,
    axis: int,
    start: int | None,
    positions: Tensor | None,
    padding: Tensor | None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """The same of arrays."""
    encoding = encoding_of(text)
    points = None if positions is None else as_array(positions.detach().cpu())
    if padding is None:
        if points is None:
            return encoding.add(x, start=start, axis=axis, scale=scale, out=out)
        return encoding.add(x, positions=points, scale=scale, out=out)
    where = ~as_array(padding.cpu())
    if points is None:
        _, first = encoding._checked_range(x.shape[axis], start)
        points = np.moveaxis(positions_from_mask(np.moveaxis(where, axis + 1, -1)) + first, -1, axis + 1)
    return encoding.add(x, positions=points, scale=scale, where=where, out=out)


@torch.library.impl("posenc::encode", "CompositeExplicitAutograd")
def _(positions: Tensor, text: str, dtype: torch.dtype) -> Tensor:
    """The encodings of positions, on their device."""
    if is_here(positions):
        return as_tensor(encoding_of(text).encode(as_array(positions.detach()), dtype=NAMES[dtype]))
    return _at(text, positions.detach(), dtype, positions.device)


@torch.library.impl("posenc::table", "CompositeExplicitAutograd")
def _(length: int, text: str, start: int | None, dtype: torch.dtype) -> Tensor:
    """The encodings of consecutive positions, on the CPU."""
    return as_tensor(encoding_of(text).table(length, start=start, dtype=NAMES[dtype]))


# ---- what PyTorch asks of them ---------------------------------------------------------------------------------------


@torch.library.register_fake("posenc::add")
def _(x: Tensor, *_: Any) -> Tensor:
    return x.new_empty(x.shape)


@torch.library.register_fake("posenc::encode")
def _(positions: Tensor, text: str, dtype: torch.dtype) -> Tensor:
    return positions.new_empty((*positions.shape, encoding_of(text).dim), dtype=dtype)


@torch.library.register_fake("posenc::table")
def _(length: int, text: str, start: int | None, dtype: torch.dtype) -> Tensor:
    return torch.empty((length, encoding_of(text).dim), dtype=dtype, device="cpu")


class Sum(torch.autograd.Function):
    """The operator ``add`` with its derivatives, in the form that `torch.func` takes, too; it refuses those of an operator."""

    @staticmethod
    def forward(x: Tensor, *rest: Any) -> Tensor:
        total: Tensor = ADD(x, *rest)
        return total

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.scale = inputs[2]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        return gradient if ctx.scale == 1.0 else gradient * ctx.scale, None, None, None, None, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: None) -> Tensor:
        return tangent * ctx.scale

    @staticmethod
    def vmap(
        info: Any, axes: Any, x: Tensor, text: str, scale: float, axis: int, start: int | None, *rest: Any
    ) -> tuple[Tensor, int]:
        """The mapped axis becomes the first of x, which any number may stand before; what else has it, broadcasts."""
        lead = x.ndim - 1 - (axes[0] is not None)
        x = x.expand(info.batch_size, *x.shape) if axes[0] is None else x.movedim(axes[0], 0)
        positions, padding = (
            tensor if mapped is None else _in_front(tensor, mapped, lead) for tensor, mapped in zip(rest, axes[5:], strict=True)
        )
        return add(x, text, scale, axis, start, positions, padding), 0


def add(x: Tensor, *rest: Any) -> Tensor:
    """What the operator makes, with its derivatives; where none are asked for, and for compilers, the operator itself.

    Where nobody looks on, what the operator calls: a single row takes half as long.
    """
    if torch.compiler.is_compiling():
        make = ADD
    elif _is_forward_mode() or (x.requires_grad and torch.is_grad_enabled()):
        make = Sum.apply
    else:
        make = _add if _is_alone(x, rest[-2:]) else ADD
    total: Tensor = make(x, *rest)
    return total


def _is_alone(x: Tensor, others: tuple[Tensor | None, ...]) -> bool:
    """Whether these are tensors and nothing else, and no tracer, mode or transform is to see an operator."""
    plain = all(tensor is None or type(tensor) is Tensor for tensor in (x, *others))
    return plain and not torch.jit.is_tracing() and not any(look() for look in _ONLOOKERS)


def _is_forward_mode() -> bool:
    """Whether tensors may have tangents, which an operator loses; PyTorch has no public word for it."""
    return getattr(forward_ad, "_current_level", 0) >= 0


# PyTorch has no public words for these; without one of them somebody is always looking on.
_ONLOOKERS = [
    getattr(torch._C, "_len_torch_dispatch_stack", lambda: True),
    getattr(torch._C, "_len_torch_function_stack", lambda: True),
    getattr(getattr(torch._C, "_functorch", None), "peek_interpreter_stack", lambda: True),
]

torch.library.register_autograd("posenc::add", Sum.backward, setup_context=Sum.setup_context)
torch.library.register_vmap("posenc::add", Sum.vmap)


def _in_front(tensor: Tensor, mapped: int, lead: int) -> Tensor:
    """The mapped axis before all ``lead`` axes that the others broadcast to."""
    tensor = tensor.movedim(mapped, 0)
    return tensor.reshape(tensor.shape[0], *(1,) * (lead + 1 - tensor.ndim), *tensor.shape[1:])


@torch.library.register_vmap("posenc::encode")
def _(info: Any, axes: Any, positions: Tensor, text: str, dtype: torch.dtype) -> tuple[Tensor, int]:
    return ENCODE(positions.movedim(axes[0], 0), text, dtype), 0
