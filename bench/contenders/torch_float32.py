"""PyTorch's usual recipe, in its default dtype."""

import math

TITLE = "PyTorch recipe"
NEEDS = ("torch",)


def table(length: int, dim: int, start: int = 0) -> object:
    """A tensor; ``dim`` is even."""
    import torch

    frequencies = torch.exp(torch.arange(0, dim, 2).float() * (-math.log(10000.0) / dim))
    angles = torch.arange(start, start + length).float().unsqueeze(1) * frequencies
    pe = torch.zeros(length, dim)
    pe[:, 0::2] = torch.sin(angles)
    pe[:, 1::2] = torch.cos(angles)
    return pe
