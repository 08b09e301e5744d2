"""The module of positional-encodings on PyPI."""

TITLE = "positional-encodings"
NEEDS = ("positional-encodings", "torch")
CONVENTION = "multidim"
FROM_ZERO = True


def table(length: int, dim: int, start: int = 0) -> object:
    """From a new module each time, as one keeps its last result; of its input it takes shape and dtype."""
    import torch
    from positional_encodings.torch_encodings import PositionalEncoding1D

    return PositionalEncoding1D(dim)(torch.empty(1, start + length, dim))[0, start:]
