"""The builder of M2M100's table in transformers, which is fairseq's: the row of the padding is zero."""

TITLE = "transformers, M2M100"
NEEDS = ("transformers", "torch")
CONVENTION = "fairseq"
FROM_ZERO = True
BLANK = (1,)


def table(length: int, dim: int, start: int = 0) -> object:
    """What its ``get_embedding`` returns."""
    from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding

    return M2M100SinusoidalPositionalEmbedding.get_embedding(start + length, dim, padding_idx=1)[start:]
