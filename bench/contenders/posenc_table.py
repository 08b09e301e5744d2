"""posenc itself: held to the same judge, and against itself a measure of the noise."""

TITLE = "posenc"
NEEDS = ("posenc",)


def table(length: int, dim: int, start: int = 0) -> object:
    """Its table."""
    import posenc

    return posenc.table(length, dim, start=start)
