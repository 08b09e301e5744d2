"""The embedding of timesteps in diffusers, with its default arguments."""

TITLE = "diffusers, timesteps"
NEEDS = ("diffusers", "torch")
CONVENTION = "diffusers"


def table(length: int, dim: int, start: int = 0) -> object:
    """Of whole timesteps in a row."""
    import torch
    from diffusers.models.embeddings import get_timestep_embedding

    return get_timestep_embedding(torch.arange(start, start + length), dim)
