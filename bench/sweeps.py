"""How speed and accuracy go with length, width, dtype, threads, batch, first calls, pauses and positions: data, and builders.

Each contender of a sweep has a fresh process, or one for each point where that is what is looked at.
"""

import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

from .child import idle, seconds_of, warm
from .comparison import bytes_of, filler, json_of, loaded, verdict
from .contenders import Contender, contender
from .measure import Bench, Effort
from .rows import LARGE, MIDDLE, Skipped, Task, runs_here

#: warm    calls back to back, and those of a new array's fill (of what fills x, where x is added to)
#: idle    single calls after a pause of x seconds
#: cold    the first call in a fresh process that has imported what it needs
#: threads the first of these, with so many threads
#: error   the judge's, no time
Mode = Literal["warm", "idle", "cold", "threads", "error"]

DIM = 512
ENTRIES = 1 << 22  # of each table of the sweep over widths: 16 MiB
FULL, QUICK = Effort(0.4, 1), Effort(0.05, 1)
COLD_ROUNDS = 3
IDLE_ROUNDS = 5
ERROR_ROWS = 16
REACH = 1_000_000  # of those that make all positions from 0
SLOW_REACH = 10_000


class Sweep(NamedTuple):
    """One of the sweeps."""

    name: str
    x: str  # what is varied
    what: str  # of what
    values: tuple[Any, ...]
    quick: tuple[Any, ...]  # values of a quick run
    contenders: tuple[str, ...]  # the first two in a quick run
    mode: Mode
    build: Callable[[Contender, Any], tuple[Task, Task, int]]  # what is timed, its reference, bytes written


# ---- what is measured: a task, the fill it is held against, the bytes it writes --------------------------------------


def table(found: Contender, shape: tuple[int, int]) -> tuple[Task, Task, int]:
    """A new float32 table."""
    return partial(found.table, *shape), filler(shape, "float32"), bytes_of(shape, "float32")


def of_length(found: Contender, length: int) -> tuple[Task, Task, int]:
    """So many rows."""
    return table(found, (length, DIM))


def of_width(found: Contender, dim: int) -> tuple[Task, Task, int]:
    """So many columns, of as many rows as `ENTRIES` allows."""
    return table(found, (ENTRIES // dim, dim))


def of_dtype(found: Contender, dtype: str) -> tuple[Task, Task, int]:
    """A new table of another dtype, by posenc or by NumPy's recipe in float64."""
    import importlib.util

    import numpy as np

    import posenc

    from .contenders import numpy_float64

    if dtype == "bfloat16" and importlib.util.find_spec("ml_dtypes") is None:
        raise Skipped("ml_dtypes is not installed")
    kind = posenc.table(0, 2, dtype=dtype).dtype
    task: Task = partial(posenc.table, *LARGE, dtype=dtype)
    if found.name != "posenc_table":
        task = partial(numpy_float64.encode, np.arange(LARGE[0]), LARGE[1], kind)
    size = np.dtype(kind).itemsize
    return task, filler(LARGE, f"u{size}"), bytes_of(LARGE, f"u{size}")


def of_threads(found: Contender, threads: int) -> tuple[Task, Task, int]:
    """The same table; threads are set from outside."""
    return table(found, LARGE)


def of_batch(found: Contender, batch: int) -> tuple[Task, Task, int]:
    """Encodings added to embeddings in place: by posenc, or by NumPy from a table that is there."""
    import numpy as np

    import posenc

    x = np.zeros((batch, DIM, DIM), np.float32)
    task: Task = partial(posenc.add, x, out=x)
    if found.name != "posenc_table":
        task = partial(np.add, x, posenc.table(DIM, DIM), out=x)
    return task, partial(x.fill, 0.0), x.nbytes


def of_pause(found: Contender, seconds: float) -> tuple[Task, Task, int]:
    """The same table; the pause is made by `idle`."""
    return table(found, MIDDLE)


def of_position(found: Contender, position: int) -> tuple[Task, Task, int]:
    """Nothing is timed."""
    raise NotImplementedError


RECIPES = ("posenc_table", "numpy_float64", "numpy_float32", "torch_float32", "numba_float32")
PLAIN = RECIPES[:4]
JUDGED = (
    *("posenc_table", "python_loop", "numpy_float64", "numpy_float32", "torch_float32", "numexpr_float64", "numba_float32"),
    *("jax_float32", "positional_encodings_1d", "transformers_marian", "transformers_m2m100", "transformers_whisper"),
    *("diffusers_timestep", "timm_grid"),
)
LENGTHS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1_000_000)
WIDTHS = tuple(2**k for k in range(1, 14))
COLD = (1, 16, 256, 4096, 65536)
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
DTYPES = ("float32", "float64", "float16", "bfloat16")
PAUSES = (0.0, 0.001, 0.01, 0.1, 1.0)
DECADES = tuple(round(10 ** (k / 3)) for k in range(22))  # 1 to 10**7
THREADS = (1, 2, 4, 8, 16)  # no more than there are cores

SWEEPS = (
    Sweep("length", "rows", f"of {DIM} float32", LENGTHS, (1, 64, 1024), RECIPES, "warm", of_length),
    Sweep("width", "columns", f"float32, {ENTRIES} entries in all", WIDTHS, (8, 512), PLAIN, "warm", of_width),
    Sweep("dtype", "dtype", "8192 x 1024", DTYPES, ("float16",), ("posenc_table", "numpy_float64"), "warm", of_dtype),
    Sweep(
        *("threads", "threads", "8192 x 1024 float32", THREADS, (1,)),
        *(("posenc_table", "torch_float32", "numexpr_float64", "numba_float32"), "threads", of_threads),
    ),
    Sweep("batch", "batch", f"x 512 x {DIM} float32", BATCHES, (1, 4), ("posenc_table", "ready_add"), "warm", of_batch),
    Sweep("cold", "rows", f"of {DIM} float32, first call", COLD, (1, 256), PLAIN, "cold", of_length),
    Sweep(
        *("idle", "pause in s", "2048 x 512 float32", PAUSES, (0.0, 0.01)),
        *(("posenc_table", "numpy_float32", "torch_float32", "numba_float32"), "idle", of_pause),
    ),
    Sweep("error", "position", f"{ERROR_ROWS} rows of 64 float32", DECADES, (1, 1000), JUDGED, "error", of_position),
)


# ---- in the process that measures ------------------------------------------------------------------------------------


def measured(sweep: str, name: str, values: Sequence[Any], effort: Sequence[float]) -> Iterator[dict[str, Any]]:
    """A point for each value: x, and seconds, fill and bytes, or the error."""
    [chosen] = (one for one in SWEEPS if one.name == sweep)
    if chosen.mode == "cold":  # nothing has been called
        found = runs_here(partial(contender, name))
        runs_here(found.load)
    else:
        found = loaded(name)
    for value in values:
        yield {"x": value, **point(chosen, found, value, *effort)}


def point(sweep: Sweep, found: Contender, value: Any, seconds: float, rounds: float) -> dict[str, Any]:
    """What is measured at a value."""
    if sweep.mode == "error":
        return {"error": verdict(found, value, ERROR_ROWS)["error"]}
    task, fill, size = sweep.build(found, value)
    if sweep.mode == "cold":
        return {"seconds": seconds_of(task, 1), "bytes": size}
    sides = task, fill
    samples = idle(sides, 0.0, int(rounds), value) if sweep.mode == "idle" else warm(sides, seconds, int(rounds))
    return {"seconds": statistics.median(samples[0]), "fill": statistics.median(samples[1]), "bytes": size}


# ---- in the process that asks ----------------------------------------------------------------------------------------


def swept(
    bench: Bench, cores: int, only: str = "", *, quick: bool = False, tell: Callable[[str], object] = print
) -> list[dict[str, Any]]:
    """Every sweep's points, those of a contender one after the other, and what stopped those that are not whole."""
    made = []
    for sweep in SWEEPS:
        if only not in sweep.name:
            continue
        about: dict[str, Any] = {"name": sweep.name, "x": sweep.x, "what": sweep.what, "mode": sweep.mode}
        points, stopped = [], {}
        for name in sweep.contenders[: 2 if quick else None]:
            tell(f"{sweep.name}: {name}")
            for values, threads in runs(sweep, name, cores, quick):
                answers, error = bench.asked("sweep", json_of(wish(sweep, name, values, quick)), threads=threads)
                if error or "skipped" in answers[-1]:
                    stopped[name] = error.splitlines()[-1] if error else f"skipped: {answers.pop()['skipped']}"
                points += [{"contender": name, **answer} for answer in answers]
        made.append(about | {"points": merged(points), "stopped": stopped})
    return made


def wish(sweep: Sweep, name: str, values: Sequence[Any], quick: bool) -> dict[str, Any]:
    """What a process is asked for."""
    effort = QUICK if quick else FULL
    if sweep.mode == "idle" and not quick:
        effort = Effort(0.0, IDLE_ROUNDS)
    return {"sweep": sweep.name, "name": name, "values": values, "effort": effort}


def runs(sweep: Sweep, name: str, cores: int, quick: bool) -> Iterator[tuple[Sequence[Any], int | None]]:
    """The values of each process, and its threads."""
    values = sweep.quick if quick else sweep.values
    if sweep.mode == "threads":
        yield from (([threads], threads) for threads in values if threads <= cores)
    elif sweep.mode == "cold":
        yield from (([value], None) for value in values for _ in range(1 if quick else COLD_ROUNDS))
    elif sweep.mode == "error":
        yield [value for value in values if value <= reach(name)], None
    else:
        yield values, None


def reach(name: str) -> float:
    """The largest position at which a contender is judged here."""
    known = contender(name)
    if not known.from_zero:
        return float("inf")
    return REACH if known.rows is None else SLOW_REACH


def merged(points: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Repeated points as one, with the median of their seconds."""
    groups: dict[tuple[str, Any], list[dict[str, Any]]] = {}
    for one in points:
        groups.setdefault((one["contender"], one["x"]), []).append(one)
    return [
        group[0] if len(group) == 1 else group[0] | {"seconds": statistics.median(one["seconds"] for one in group)}
        for group in groups.values()
    ]
