"""The builder of Marian's table in transformers, an interpreted step for each entry."""

TITLE = "transformers, Marian"
NEEDS = ("transformers", "torch")
CONVENTION = "marian"
FROM_ZERO = True
ROWS = 64
JUDGED = 4


def table(length: int, dim: int, start: int = 0) -> object:
    """What its ``create_weight`` returns."""
    from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

    return MarianSinusoidalPositionalEmbedding(start + length, dim).create_weight()[start:]
