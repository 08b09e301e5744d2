"""What posenc is measured against: the same tables as people write them by hand."""

import importlib
import importlib.util
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

BASE = 10000.0


def python_loop(length: int, dim: int) -> list[list[float]]:
    """Plain Python, an entry at a time. ``dim`` is even, here and below."""
    frequencies = [BASE ** (-k / dim) for k in range(0, dim, 2)]
    rows = []
    for position in range(length):
        row = []
        for frequency in frequencies:
            angle = position * frequency
            row.append(math.sin(angle))
            row.append(math.cos(angle))
        rows.append(row)
    return rows


def numpy_float64(positions: int | NDArray[Any], dim: int, dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """NumPy with angles, sines and cosines in float64, stored as ``dtype``, of so many positions or of these."""
    positions = np.arange(positions) if isinstance(positions, int) else positions
    frequencies = np.exp(np.arange(0, dim, 2) * (-math.log(BASE) / dim))
    angles = positions[:, None] * frequencies
    pe = np.empty((len(positions), dim), dtype)
    pe[:, 0::2] = np.sin(angles)
    pe[:, 1::2] = np.cos(angles)
    return pe


def numpy_float32(positions: int | NDArray[Any], dim: int) -> NDArray[np.float32]:
    """NumPy with everything in float32, of so many positions or of these."""
    positions = np.arange(positions) if isinstance(positions, int) else positions
    step = np.float32(-math.log(BASE) / dim)
    frequencies = np.exp(np.arange(0, dim, 2, dtype=np.float32) * step)
    angles = positions.astype(np.float32)[:, None] * frequencies
    pe = np.empty((len(positions), dim), np.float32)
    pe[:, 0::2] = np.sin(angles)
    pe[:, 1::2] = np.cos(angles)
    return pe


def has_torch() -> bool:
    """Whether `torch_float32` can run."""
    return importlib.util.find_spec("torch") is not None


def timm_grid(height: int, width: int, dim: int) -> object:
    """A grid by timm's own function."""
    return importlib.import_module("timm.layers.pos_embed_sincos").build_sincos2d_pos_embed([height, width], dim)


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


def torch_float32(length: int, dim: int) -> object:
    """PyTorch's usual table, in its default dtype."""
    torch: Any = importlib.import_module("torch")
    frequencies = torch.exp(torch.arange(0, dim, 2).float() * (-math.log(BASE) / dim))
    angles = torch.arange(length).float().unsqueeze(1) * frequencies
    pe = torch.zeros(length, dim)
    pe[:, 0::2] = torch.sin(angles)
    pe[:, 1::2] = torch.cos(angles)
    return pe


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
