"""The contenders beside posenc: time, share of the memory's speed, accuracy. Each contender in a fresh process."""

import importlib
import statistics
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from .child import Samples, warm
from .contenders import NAMES, Contender, contender
from .measure import Bench, Effort
from .rows import Skipped, Task, runs_here

SHAPES = ((8192, 1024), (512, 512))
QUICK_SHAPES = SHAPES[1:]
POSITIONS = (0, 130_000, 1_000_000)
JUDGED_ROWS, JUDGED_DIM, QUICK_ROWS = 256, 64, 32
FULL, QUICK = Effort(2.0, 5), Effort(0.1, 1)
#: In a quick run, positions up to here for those that make every row before them one by one.
QUICK_REACH = 1_000


# ---- in the process that measures ------------------------------------------------------------------------------------


def measured(
    name: str, shapes: Sequence[Sequence[int]], positions: Sequence[int], judged: int, effort: Sequence[float]
) -> dict[str, Any]:
    """The samples of a contender, of posenc's call for the same task and of a filled new array; the judge's verdicts."""
    found = loaded(name)
    dtype = str(rows_of(found, 8, 8).dtype)
    answer: dict[str, Any] = {"dtype": dtype, "speed": [], "accuracy": []}
    for length, dim in shapes:
        part = min(length, found.rows or length)
        sides = partial(found.table, part, dim), ours(found, length, dim, dtype), filler((length, dim), dtype)
        samples = warm(sides, effort[0], int(effort[1]))
        samples[0][:] = [sample * (length / part) for sample in samples[0]]
        answer["speed"].append(
            {"shape": [length, dim], "part": part, "bytes": bytes_of((length, dim), dtype), "samples": samples}
        )
    try:
        for position in positions:
            answer["accuracy"].append({"position": position, **verdict(found, position, judged)})
    except Skipped as reason:
        answer["not judged"] = str(reason)
    return answer


def loaded(name: str) -> Contender:
    """The contender, or a skip that says what is missing."""
    found: Contender = runs_here(partial(contender, name))
    runs_here(found.load)
    runs_here(partial(found.table, 8, 8))
    return found


def rows_of(found: Contender, length: int, dim: int, start: int = 0) -> Any:
    """A contender's rows as an array, of the shape that is asked for or ValueError."""
    import numpy as np

    rows = np.asarray(found.table(length, dim, start))
    if rows.shape != (length, dim):
        raise ValueError(f"{found.name} has shape {rows.shape}; it should be {(length, dim)}")
    return rows


def ours(found: Contender, length: int, dim: int, dtype: str) -> Task:
    """The call of posenc that does the contender's task."""
    import posenc

    if found.ours is not None:
        return partial(found.ours, length, dim)
    return partial(posenc.convention(found.convention, dim).table, length, start=0, dtype=dtype)


def filler(shape: tuple[int, int], dtype: str) -> Task:
    """A new array with every entry the same: the cost of its memory alone."""
    from .recipes import filled

    return partial(filled, *shape, dtype)


def bytes_of(shape: tuple[int, int], dtype: str) -> int:
    """Bytes of a table."""
    import numpy as np

    return shape[0] * shape[1] * np.dtype(dtype).itemsize


def verdict(found: Contender, position: int, rows: int) -> dict[str, Any]:
    """The judge's on rows from a position, or a skip if there is nothing to judge by."""
    judge = runs_here(partial(importlib.import_module, ".judge", __package__))
    dim = found.judged or JUDGED_DIM
    made = judge.judged(rows_of(found, rows, dim, position), position, found.convention, found.blank)
    return dict(made._asdict())


# ---- in the process that asks ----------------------------------------------------------------------------------------


def compared(
    bench: Bench,
    names: Iterable[str] = NAMES,
    shapes: Sequence[Sequence[int]] | None = None,
    *,
    quick: bool = False,
    tell: Callable[[str], object] = print,
) -> list[dict[str, Any]]:
    """An entry for each contender: its title and convention; speed and accuracy, or why it is skipped, or its error."""
    entries = []
    for name in names:
        entry: dict[str, Any] = {"name": name, "title": name, "convention": None}
        tell(name)
        try:
            known = contender(name)
            entry |= {"title": known.title, "convention": known.convention, "needs": list(known.needs)}
            slow = known.from_zero and known.rows is not None
            positions = [position for position in POSITIONS if not (quick and slow and position > QUICK_REACH)]
        except Exception as failure:  # a user's module may fail in any way
            entries.append(entry | {"error": f"{type(failure).__name__}: {failure}"})
            continue
        wish = {
            "name": name,
            "shapes": shapes or (QUICK_SHAPES if quick else SHAPES),
            "positions": positions,
            "judged": QUICK_ROWS if quick else JUDGED_ROWS,
            "effort": QUICK if quick else FULL,
        }
        answers, error = bench.asked("compare", json_of(wish))
        if error:
            entries.append(entry | {"error": error.splitlines()[-1]})
        elif "skipped" in answers[-1]:
            entries.append(entry | answers[-1])
        else:
            speed = [summary(**measurement) for measurement in answers[-1].pop("speed")]
            entries.append(entry | answers[-1] | {"speed": speed})
    return entries


def summary(samples: Samples, **about: Any) -> dict[str, Any]:
    """What is made of samples: medians of seconds, and medians and quartiles of the ratios within each round."""
    theirs, ours, fill = samples
    made: dict[str, Any] = dict(about)
    made["seconds"], made["posenc"], made["fill"] = map(statistics.median, samples)
    for key, reference in (("to posenc", ours), ("to fill", fill)):
        ratios = [a / b for a, b in zip(theirs, reference, strict=True)]
        quartiles = statistics.quantiles(ratios, method="inclusive") if len(ratios) > 1 else ratios * 3
        made[key], made[f"{key}, quartiles"] = statistics.median(ratios), [quartiles[0], quartiles[2]]
    return made | {"rounds": len(theirs)}


def json_of(wish: object) -> str:
    """One argument of a command line."""
    import json

    return json.dumps(wish)
