"""The function behind Whisper's encoder in transformers."""

TITLE = "transformers, Whisper"
NEEDS = ("transformers", "torch")
CONVENTION = "whisper"
FROM_ZERO = True


def table(length: int, dim: int, start: int = 0) -> object:
    """What its ``sinusoids`` returns; ``dim`` is even."""
    from transformers.models.whisper.modeling_whisper import sinusoids

    return sinusoids(start + length, dim)[start:]
