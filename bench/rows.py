"""The rows of the speed table, as data. A new one is a line in `ROWS`, and a function that builds its pair if none here does.

Invariant: this module and `child` import nothing that NumPy does not, and NumPy and posenc only inside functions, so that
a fresh process can still measure an import or a first call whole.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

Task = Callable[[], object]
Pair = tuple[Task, Task]  # contender, reference
Shape = tuple[int, int]

#: How a row is measured, see `child`:
#: warm    calls back to back, in one process
#: idle    single calls, each after a pause, in one process
#: cold    the first call, each in a fresh process
#: memory  growth of the peak resident memory, each in a fresh process
Mode = Literal["warm", "idle", "cold", "memory"]


class Skipped(Exception):
    """A row that cannot be measured here; says why."""


class Comparison(NamedTuple):
    """What is made of one round: a contender's and a reference's measurement, seconds (memory: MiB)."""

    of: Callable[[float, float], float]
    sense: Literal["<=", ">="]
    unit: str


RATIO = Comparison(lambda contender, reference: contender / reference, "<=", "")
SPEEDUP = Comparison(lambda contender, reference: reference / contender, ">=", "x")
MORE_MS = Comparison(lambda contender, reference: (contender - reference) * 1e3, "<=", " ms")
ALONE_MS = Comparison(lambda contender, _: contender * 1e3, "<=", " ms")
PEAK_MIB = Comparison(max, "<=", " MiB")


#: The kernels that have goals, in the order in which a row gives them.
KERNELS = ("avx512", "avx2")


class Row(NamedTuple):
    """One line of the table."""

    name: str
    against: str
    goals: tuple[float, float] | None
    mode: Mode
    comparison: Comparison
    build: Callable[[], Pair]  # called in the process that measures
    scale: float = 1.0  # times the reference's measurement, where it does a part of the work

    def goal(self, kernel: str) -> float | None:
        """What ``kernel`` is to reach."""
        return self.goals[KERNELS.index(kernel)] if self.goals and kernel in KERNELS else None


# ---- what is compared ------------------------------------------------------------------------------------------------


def warm_and_fill(shape: Shape, dtype: str = "float32", **keywords: Any) -> Pair:
    """A table into an array that is there already, and that array's ``fill``."""
    import numpy as np

    import posenc

    out = np.empty(shape, dtype)
    return partial(posenc.table, *shape, out=out, **keywords), partial(out.fill, 1.0)


def fresh_and(recipe: str, shape: Shape, part: Shape | None = None) -> Pair:
    """A new table, and a recipe's, or the recipe's for a part of it."""
    import posenc

    return partial(posenc.table, *shape), reference(recipe, part or shape)


def warm_and(recipe: str, shape: Shape) -> Pair:
    """A table into an array that is there already, and a recipe's new one."""
    import numpy as np

    import posenc

    return partial(posenc.table, *shape, out=np.empty(shape, np.float32)), reference(recipe, shape)


def reference(recipe: str, shape: Shape) -> Task:
    """The table of a contender, or a function of `recipes`."""
    from . import recipes
    from .contenders import NAMES, contender

    if recipe in NAMES:
        found = contender(recipe)
        runs_here(found.load)
        return partial(found.table, *shape)
    return partial(getattr(recipes, recipe), *shape)


def two_bases(shape: Shape, base: float) -> Pair:
    """Tables of ``base`` and of the usual base, into the same array."""
    import numpy as np

    import posenc

    out = np.empty(shape, np.float32)
    return partial(posenc.table, *shape, out=out, base=base), partial(posenc.table, *shape, out=out, base=1e4)


def default_and_one(shape: Shape) -> Pair:
    """A table by the default threads and by one, each into its own array. All but the threads is there already."""
    import numpy as np

    import posenc

    tables = [partial(posenc.table, *shape, out=np.empty(shape, np.float32), threads=1) for _ in range(2)]
    for table in tables:
        table()
    return partial(tables[0], threads=None), tables[1]


def two_dtypes(shape: Shape, dtype: str) -> Pair:
    """Tables of ``dtype`` and of float32, each into an array that is there already."""
    import importlib.util

    import numpy as np

    import posenc

    if dtype == "bfloat16" and importlib.util.find_spec("ml_dtypes") is None:
        raise Skipped("ml_dtypes is not installed")
    outs = [posenc.table(*shape, dtype=kind) for kind in (dtype, np.float32)]
    return partial(posenc.table, *shape, out=outs[0]), partial(posenc.table, *shape, out=outs[1])


def table_and_empty(shape: Shape) -> Pair:
    """A new table, and NumPy's new array."""
    import numpy as np

    import posenc

    return partial(posenc.table, *shape), partial(np.empty, shape, np.float32)


def imports() -> Pair:
    """Posenc with NumPy, and NumPy."""
    return partial(__import__, "posenc"), partial(__import__, "numpy")


def long_and_short(shape: Shape) -> Pair:
    """Two tables into an array that is there already, the second a tenth as long."""
    import numpy as np

    import posenc

    out = np.empty(shape, np.float32)
    out.fill(1.0)  # last, so that resident memory stands at its peak when the call begins
    short = out[: shape[0] // 10]
    return partial(posenc.table, *shape, out=out), partial(posenc.table, *short.shape, out=short)


def sum_and(recipe: str, shape: tuple[int, int, int]) -> Pair:
    """Encodings added to embeddings, and a recipe's sum with a table that is there already: both in place, or both new."""
    import numpy as np

    import posenc

    x, table = np.zeros(shape, np.float32), posenc.table(*shape[1:])
    if recipe == "torch":
        from . import recipes

        return partial(posenc.add, x), runs_here(partial(recipes.torch_module, x, table))
    return partial(posenc.add, x, out=x), partial(np.add, x, table, out=x)


def encode_and(recipe: str, dtype: str, shape: Shape) -> Pair:
    """Encodings of random positions into an array that is there already, and a recipe's new one."""
    import numpy as np

    import posenc

    from .contenders import numpy_float32, numpy_float64

    positions = np.random.default_rng(0).random(shape[0]) * 10_000
    task = partial(posenc.encode, positions, shape[1], out=np.empty(shape, dtype))
    if recipe == "numpy_float64":
        return task, partial(numpy_float64.encode, positions, shape[1], dtype)
    return task, partial(numpy_float32.encode, positions, shape[1])


def packed_and_table(shape: Shape) -> Pair:
    """Positions of packed sequences of 100 to 900 tokens, and a table, into an array that is there already."""
    import numpy as np

    import posenc

    lengths = np.random.default_rng(0).integers(100, 900, shape[0] // 100)
    positions = posenc.positions_from_lengths(lengths)[: shape[0]]
    out = np.empty(shape, np.float32)
    return partial(posenc.encode, positions, shape[1], out=out), partial(posenc.table, *shape, out=out)


def rotate_and(recipe: str, shape: tuple[int, int, int, int]) -> Pair:
    """Queries rotated into a new array, and a recipe's with tables of cosines and sines that are there already."""
    import numpy as np

    import posenc

    from . import recipes

    x, positions = np.ones(shape, np.float32), np.arange(shape[-2])
    rope = posenc.convention("rope_halves", shape[-1])
    sines, cosines = rope.sincos(positions, duplicate="halves")
    by_hand = runs_here(partial(recipes.rope, x, cosines, sines, by_torch=recipe == "torch"))
    return partial(rope.rotate, x, positions), by_hand


def grid_and(recipe: str, convention: str, shape: tuple[int, ...]) -> Pair:
    """A new grid, and that of a package's own function."""
    import posenc

    from . import recipes

    *points, dim = shape
    task = partial(getattr(recipes, recipe), *shape)
    runs_here(task)
    return partial(posenc.grid, tuple(points), dim, convention=convention), task


def cache_and_transformers(shape: Shape) -> Pair:
    """A new rotary cache, and that of transformers."""
    import posenc

    from . import recipes

    schedule = posenc.rope.default(shape[1])
    forward = runs_here(partial(recipes.transformers_cache, *shape))
    return partial(posenc.rope.cache, shape[0], schedule, layout="halves"), forward


def torch_modules(shape: tuple[int, int, int]) -> Pair:
    """Encodings added to tensors by `posenc.torch`, and by the tutorial's module with a table that is there already."""
    import numpy as np

    import posenc

    from . import recipes

    x = np.zeros(shape, np.float32)
    theirs = runs_here(partial(recipes.torch_module, x, posenc.table(*shape[1:])))
    return recipes.posenc_module(x), theirs


def tensor_in_place(shape: tuple[int, int, int]) -> Pair:
    """Encodings added to a tensor in place by `posenc.add`, and by torch with a table that is there already."""
    import numpy as np

    import posenc

    from . import recipes

    x = np.zeros(shape, np.float32)
    tensor, theirs = runs_here(partial(recipes.torch_in_place, x, posenc.table(*shape[1:])))
    return partial(posenc.add, tensor, out=tensor), theirs


def dask_arrays(shape: Shape) -> Pair:
    """A table of `posenc.dask` and that of a recipe, in blocks of as many rows, computed by threads."""
    import posenc

    from . import recipes

    recipe = runs_here(partial(recipes.dask_float32, *shape))
    table = posenc.dask.table(*shape, chunks=recipes.DASK_ROWS)
    return partial(table.compute, scheduler="threads"), partial(recipe.compute, scheduler="threads")


def arrow_lists(shape: Shape) -> Pair:
    """Encodings added to a column of lists of 100 to 899 rows, and NumPy's sum with a table that is there already."""
    import numpy as np

    import posenc

    from . import recipes

    rows, dim = shape
    ends = np.cumsum([0, *np.random.default_rng(0).integers(100, 900, rows // 100)])
    ends = ends[ends <= rows]
    x, table = np.ones((int(ends[-1]), dim), np.float32), posenc.table(900, dim)
    column, recipe = runs_here(partial(recipes.arrow_lists, x, ends, table))
    return partial(posenc.arrow.add, column), recipe


def runs_here(task: Callable[[], Any]) -> Any:
    """The task's result, or a skip that says which package is missing."""
    try:
        return task()
    except ImportError as error:
        raise Skipped(str(error)) from None


# ---- the table -------------------------------------------------------------------------------------------------------

SMALL, MIDDLE, LARGE, HUGE = (512, 512), (2048, 512), (8192, 1024), (65536, 1024)
LARGE_PART = (256, 1024)  # enough of LARGE for a slow recipe
LONG = (81920, 1024)
HEADS = (1, 32, 4096, 128)
RANDOM32, RANDOM64 = (("numpy_float64", dtype, (65536, 256)) for dtype in ("float32", "float64"))
MEMORY_MIB = 4 + 32  # of which 32 are the cache

ROWS = (
    Row("table float32 8192x1024, warm", "fill", (1.0, 1.5), "warm", RATIO, partial(warm_and_fill, LARGE)),
    Row("table float32 65536x1024, warm", "fill", (0.9, 1.1), "warm", RATIO, partial(warm_and_fill, HUGE)),
    Row("table float32 8192x1024, fresh", "empty + fill", (0.8, 0.9), "warm", RATIO, partial(fresh_and, "filled", LARGE)),
    Row("table float32 512x512, warm, threads=1", "fill", (2.4, 3.9), "warm", RATIO, partial(warm_and_fill, SMALL, threads=1)),
    Row("table float64 8192x1024, warm", "fill", (1.1, 1.3), "warm", RATIO, partial(warm_and_fill, LARGE, "float64")),
    Row("table float32 8192x1024, warm", "NumPy float64", (80, 50), "warm", SPEEDUP, partial(warm_and, "numpy_float64", LARGE)),
    Row("table float32 8192x1024, warm", "NumPy float32", (12, 8), "warm", SPEEDUP, partial(warm_and, "numpy_float32", LARGE)),
    Row("table float32 8192x1024, warm", "torch", (25, 15), "warm", SPEEDUP, partial(warm_and, "torch_float32", LARGE)),
    Row("table float32 8192x1024, fresh", "NumPy float64", None, "warm", SPEEDUP, partial(fresh_and, "numpy_float64", LARGE)),
    Row("table float32 8192x1024, fresh", "NumPy float32", None, "warm", SPEEDUP, partial(fresh_and, "numpy_float32", LARGE)),
    Row("table float32 8192x1024, fresh", "torch", None, "warm", SPEEDUP, partial(fresh_and, "torch_float32", LARGE)),
    Row(
        *("table float32 8192x1024, fresh", "Python loop", None, "warm", SPEEDUP),
        partial(fresh_and, "python_loop", LARGE, LARGE_PART),
        scale=LARGE[0] / LARGE_PART[0],
    ),
    Row("table float32 8192x1024, base=1e6", "base=1e4", (1.05, 1.05), "warm", RATIO, partial(two_bases, LARGE, 1e6)),
    Row("table float32 8192x1024, base=1e9", "base=1e4", (1.05, 1.05), "warm", RATIO, partial(two_bases, LARGE, 1e9)),
    Row("table float16 8192x1024, warm", "float32", (1.0, 1.0), "warm", RATIO, partial(two_dtypes, LARGE, "float16")),
    Row("table bfloat16 8192x1024, warm", "float32", (1.0, 1.0), "warm", RATIO, partial(two_dtypes, LARGE, "bfloat16")),
    Row("table float16 65536x1024, warm", "float32", (0.75, 0.9), "warm", RATIO, partial(two_dtypes, HUGE, "float16")),
    Row("table bfloat16 65536x1024, warm", "float32", (0.75, 0.9), "warm", RATIO, partial(two_dtypes, HUGE, "bfloat16")),
    *(
        Row(
            f"add float32 {n}x512x512, in place",
            "np.add, ready",
            goals,
            "warm",
            RATIO,
            partial(sum_and, "numpy", (n, 512, 512)),
        )
        for n, goals in ((1, None), (8, None), (32, (1.05, 1.05)), (256, None))
    ),
    Row(
        "add float32 1x65536x1024, in place", "np.add, ready", (0.8, 0.9), "warm", RATIO, partial(sum_and, "numpy", (1, *HUGE))
    ),
    Row(
        "add float32 32x512x512, a new array", "torch module", None, "warm", SPEEDUP, partial(sum_and, "torch", (32, 512, 512))
    ),
    Row("encode float32 65536 random x 256, warm", "NumPy float64", (30, 15), "warm", SPEEDUP, partial(encode_and, *RANDOM32)),
    Row(
        *("encode float32 65536 random x 256, warm", "NumPy float32", (5, 2.5), "warm", SPEEDUP),
        partial(encode_and, "numpy_float32", *RANDOM32[1:]),
    ),
    Row("encode float64 65536 random x 256, warm", "NumPy float64", (15, 8), "warm", SPEEDUP, partial(encode_and, *RANDOM64)),
    Row("encode float32 65536 packed x 256, warm", "table", None, "warm", RATIO, partial(packed_and_table, (65536, 256))),
    Row("rotate float32 1x32x4096x128, new", "NumPy RoPE", (5, 5), "warm", SPEEDUP, partial(rotate_and, "numpy", HEADS)),
    Row("rotate float32 1x32x4096x128, new", "torch RoPE", None, "warm", SPEEDUP, partial(rotate_and, "torch", HEADS)),
    *(
        Row(f"grid float32 {name}, new", against, (10, 10), "warm", SPEEDUP, partial(grid_and, recipe, convention, shape))
        for name, against, recipe, convention, shape in (
            ("64x64x1024", "timm", "timm_grid", "timm", (64, 64, 1024)),
            ("64x64x1024", "diffusers", "diffusers_grid", "mae", (64, 64, 1024)),
            ("16x32x32x1152", "diffusers", "diffusers_grid", "video", (16, 32, 32, 1152)),
        )
    ),
    Row(
        *("rope.cache float32 131072x128, new", "transformers", (10, 10), "warm", SPEEDUP),
        partial(cache_and_transformers, (131072, 128)),
    ),
    Row(
        *("add float32 32x512x512, in place, a tensor", "torch add_, ready", None, "warm", RATIO),
        partial(tensor_in_place, (32, 512, 512)),
    ),
    Row(
        *("posenc.torch float32 32x512x512, a new tensor", "torch module", None, "warm", SPEEDUP),
        partial(torch_modules, (32, 512, 512)),
    ),
    Row("posenc.torch float32 1x1x512, a step", "torch module", None, "warm", SPEEDUP, partial(torch_modules, (1, 1, 512))),
    Row("posenc.arrow float32 65536x512 in lists, new", "NumPy", None, "warm", SPEEDUP, partial(arrow_lists, (65536, 512))),
    Row("posenc.dask float32 65536x512, computed", "dask recipe", None, "warm", SPEEDUP, partial(dask_arrays, (65536, 512))),
    Row("table float32 2048x512, after 0.1 s idle", "threads=1", (1.3, 1.3), "idle", RATIO, partial(default_and_one, MIDDLE)),
    Row("table float32 8192x1024, after 0.1 s idle", "threads=1", (1.3, 1.3), "idle", RATIO, partial(default_and_one, LARGE)),
    Row("table float32 2048x512, first call", "threads=1", (2.0, 2.0), "cold", RATIO, partial(default_and_one, MIDDLE)),
    Row("table float32 8192x1024, first call", "threads=1", (2.0, 2.0), "cold", RATIO, partial(default_and_one, LARGE)),
    Row("table(1, 512), cached", "np.empty", (10, 10), "warm", RATIO, partial(table_and_empty, (1, 512))),
    Row("first table(512, 512)", "NumPy float64", (1.0, 1.0), "cold", RATIO, partial(fresh_and, "numpy_float64", SMALL)),
    Row("first table(512, 512), time", "-", (1.0, 1.0), "cold", ALONE_MS, partial(fresh_and, "numpy_float64", SMALL)),
    Row("import posenc", "import numpy", (10, 10), "cold", MORE_MS, imports),
    Row("extra memory, 81920 and 8192 rows", "-", (MEMORY_MIB, MEMORY_MIB), "memory", PEAK_MIB, partial(long_and_short, LONG)),
)
