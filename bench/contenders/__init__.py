"""What posenc is compared with: one module each, and in each one function with one signature.

``table(length, dim, start=0)`` makes the rows of positions ``start`` to ``start + length - 1``, as anything of shape
``(length, dim)`` that `numpy.asarray` takes. What it needs it imports when it is called. What a module says of itself:

- ``TITLE``: a few words. ``NEEDS``: the distributions that it needs, modules but for a hyphen.
- ``CONVENTION``: the formula, by posenc's name: `bench.judge` knows it, and posenc's table in it is the one compared with.
- ``FROM_ZERO``: the package makes tables of positions from 0 only, so that rows from ``start`` are cut from a longer one.
- ``ROWS``: so many rows are timed, and the time is scaled, because more take too long.
- ``JUDGED``: so many columns are judged, for the same reason.
- ``BLANK``: rows that are zero in its convention, which nobody judges.
- ``ours(length, dim)``: posenc's call for the same task, where it is not a table.

A grid fits in as the table of its points, `GRID_WIDTH` a row, whose ``start`` is the first column; a sum with embeddings as
that with x = 0, which is the table.
"""

import importlib
from collections.abc import Callable
from typing import NamedTuple

GRID_WIDTH = 128

#: In the order in which they are reported.
NAMES = (
    "posenc_table",
    "python_loop",
    "numpy_float64",
    "numpy_float64_kept",
    "numpy_float32",
    "torch_float32",
    "numexpr_float64",
    "numba_float32",
    "jax_float32",
    "positional_encodings_1d",
    "transformers_marian",
    "transformers_m2m100",
    "transformers_whisper",
    "diffusers_timestep",
    "timm_grid",
    "ready_copy",
    "ready_add",
)


class Contender(NamedTuple):
    """A module of this package, or a user's function, as the measurements see it."""

    name: str
    title: str
    table: Callable[..., object]
    needs: tuple[str, ...] = ()
    convention: str = "transformer"
    from_zero: bool = False
    rows: int | None = None
    judged: int | None = None
    blank: tuple[int, ...] = ()
    ours: Callable[[int, int], object] | None = None

    def load(self) -> None:
        """Import what it needs: ImportError says what is missing."""
        for distribution in self.needs:
            importlib.import_module(distribution.replace("-", "_"))


def contender(name: str) -> Contender:
    """The contender of a module here, or of ``module:function``, which may have these attributes too."""
    path, _, function = name.partition(":")
    module = importlib.import_module(path if function else f"{__name__}.{path}")
    table = getattr(module, function or "table")
    said = {
        field: getattr(table, field.upper(), getattr(module, field.upper(), None))
        for field in ("title", "needs", "convention", "from_zero", "rows", "judged", "blank")
    }
    said["ours"] = getattr(module, "ours", None)
    return Contender(
        name=name, table=table, **{"title": name} | {field: what for field, what in said.items() if what is not None}
    )
