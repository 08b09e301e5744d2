"""What posenc is held against in the rows of the goals, where it is no table of a contender."""

import importlib
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .contenders.timm_grid import builder as timm_builder

DASK_ROWS = 4096  # of a block


def timm_grid(height: int, width: int, dim: int) -> object:
    """A grid by timm's own function."""
    return timm_builder()([height, width], dim)


def diffusers_grid(*shape: int) -> object:
    """A grid of (height, width) or (frames, height, width) points by the own functions of diffusers."""
    embeddings = importlib.import_module("diffusers.models.embeddings")
    *frames, height, width, dim = shape
    if frames:
        return embeddings.get_3d_sincos_pos_embed(dim, (width, height), frames[0])
    return embeddings.get_2d_sincos_pos_embed(dim, (height, width))


def transformers_cache(length: int, dim: int) -> Callable[[], object]:
    """Cosines and sines by the module of LLaMA in transformers."""
    torch: Any = importlib.import_module("torch")
    llama = importlib.import_module("transformers.models.llama.modeling_llama")
    module = llama.LlamaRotaryEmbedding(llama.LlamaConfig(head_dim=dim, max_position_embeddings=length))
    x, positions = torch.zeros(1), torch.arange(length)[None]

    def forward() -> object:
        with torch.no_grad():
            return module(x, positions)

    return forward


def torch_module(x: NDArray[Any], table: NDArray[Any]) -> Callable[[], object]:
    """The tutorial's module, ``x + pe[:, :n]``, in inference, with a table for longer sequences."""
    torch: Any = importlib.import_module("torch")
    embeddings = torch.from_numpy(x)
    pe = torch.cat([torch.from_numpy(table)] * 2)[None]
    n = x.shape[1]

    def forward() -> object:
        with torch.no_grad():
            return embeddings + pe[:, :n]

    return forward


def torch_in_place(x: NDArray[Any], table: NDArray[Any]) -> tuple[Any, Callable[[], object]]:
    """A tensor of the memory of ``x``, and its sum with the table in place."""
    torch: Any = importlib.import_module("torch")
    tensor, pe = torch.from_numpy(x), torch.from_numpy(table)
    return tensor, partial(tensor.add_, pe)


def posenc_module(x: NDArray[Any]) -> Callable[[], object]:
    """The module of `posenc.torch`, in inference."""
    torch: Any = importlib.import_module("torch")
    module = importlib.import_module("posenc.torch").PositionalEncoding(x.shape[-1]).eval()
    embeddings = torch.from_numpy(x)

    def forward() -> object:
        with torch.no_grad():
            return module(embeddings)

    return forward


def arrow_lists(x: NDArray[Any], ends: NDArray[Any], table: NDArray[Any]) -> tuple[Any, Callable[[], object]]:
    """A column of Arrow whose lists are the rows of ``x`` up to each end, and its sum with the table's rows by NumPy."""
    pa: Any = importlib.import_module("pyarrow")
    dim = x.shape[1]

    def wrapped(rows: NDArray[Any]) -> Any:
        return pa.ListArray.from_arrays(ends.astype(np.int32), pa.FixedSizeListArray.from_arrays(rows.reshape(-1), dim))

    column = wrapped(x)

    def add() -> object:
        positions = np.concatenate([np.arange(n) for n in np.diff(ends)])
        return wrapped(column.values.flatten().to_numpy().reshape(-1, dim) + table[positions])

    return column, add


def dask_float32(length: int, dim: int) -> Any:
    """A dask array in float32, in blocks of `DASK_ROWS` rows."""
    da: Any = importlib.import_module("dask.array")
    frequencies = da.exp(da.arange(0, dim, 2, chunks=-1, dtype=np.float32) * np.float32(-math.log(10000.0) / dim))
    angles = da.arange(length, chunks=DASK_ROWS, dtype=np.float32)[:, None] * frequencies
    return da.stack([da.sin(angles), da.cos(angles)], axis=-1).reshape(length, dim)


def rope(x: NDArray[Any], cosines: NDArray[Any], sines: NDArray[Any], *, by_torch: bool) -> Callable[[], object]:
    """Rotary embeddings of pairs (i, i + d / 2) by hand: x * cos + rotate_half(x) * sin."""
    half = x.shape[-1] // 2
    if not by_torch:
        return lambda: x * cosines + np.concatenate([-x[..., half:], x[..., :half]], -1) * sines
    torch: Any = importlib.import_module("torch")
    q, cos, sin = (torch.from_numpy(array) for array in (x, cosines, sines))
    return lambda: q * cos + torch.cat([-q[..., half:], q[..., :half]], -1) * sin


def filled(length: int, dim: int, dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """A new array with every entry the same: the cost of its memory alone."""
    array = np.empty((length, dim), dtype)
    array.fill(1.0)
    return array
