"""The side that measures: run by `measure` in a fresh process, answers lines of JSON. See `rows` on imports."""

import sys
from collections.abc import Iterable, Sequence
from itertools import repeat
from time import perf_counter, sleep

from .rows import ROWS, Skipped, Task

Samples = Sequence[list[float]]  # of each side, the contender first: one of each in a round

MARK = "bench: "  # begins a line that is an answer: packages print lines, too

WARM_UP_SECONDS = 0.05
SETTLE_SECONDS = 0.05  # of calls before a sample: memory last written by other cores takes more than ten calls to forget it
SAMPLE_SECONDS = 0.02  # of calls back to back, so that neither the clock nor threads waking up are what is measured
IDLE_SECONDS = 0.1


def main() -> None:
    """Measure what the command line says, see `answers`."""
    try:
        for answer in answers(*sys.argv[1:]):
            import json

            print(MARK + json.dumps(answer), flush=True)
    except Skipped as reason:
        import json

        print(MARK + json.dumps({"skipped": str(reason)}))


def answers(kind: str, *arguments: str) -> Iterable[object]:
    """What is asked for: ``machine``; a row of the goals, see `measured`; a contender's comparison; a contender's sweep."""
    if kind == "machine":
        from .report import machine

        return [machine()]
    if kind == "row":
        return [measured(int(arguments[0]), *arguments[1:])]
    import json

    if kind == "compare":
        from .comparison import measured as compared

        return [compared(**json.loads(arguments[0]))]
    from .sweeps import measured as swept

    return swept(**json.loads(arguments[0]))


def measured(number: int, *how: str) -> object:
    """The measurements of a row, for so many seconds and rounds: `Samples`; of one side, if its calls are cold: a number."""
    row = ROWS[number]
    pair = row.build()
    if row.mode == "cold":
        return seconds_of(pair[int(how[0])], 1)
    if row.mode == "memory":
        return growth_of(pair[int(how[0])])
    return (warm if row.mode == "warm" else idle)(pair, float(how[0]), int(how[1]))


def warm(sides: Sequence[Task], seconds: float, rounds: int) -> Samples:
    """Seconds a call, each sample a run of calls."""
    fastest = [warmed_up(task) for task in sides]
    samples: Samples = [[] for _ in sides]
    end = perf_counter() + seconds
    while len(samples[0]) < rounds or perf_counter() < end:
        for side in in_turn(len(samples[0]), len(sides)):
            for _ in range(round(SETTLE_SECONDS / fastest[side])):
                sides[side]()
            samples[side].append(seconds_of(sides[side], max(1, round(SAMPLE_SECONDS / fastest[side]))))
    return samples


def idle(sides: Sequence[Task], seconds: float, rounds: int, pause: float = IDLE_SECONDS) -> Samples:
    """Seconds of single calls, each after a pause."""
    for task in sides:
        warmed_up(task)
    samples: Samples = [[] for _ in sides]
    end = perf_counter() + seconds
    while len(samples[0]) < rounds or perf_counter() < end:
        for side in in_turn(len(samples[0]), len(sides)):
            sleep(pause)
            samples[side].append(seconds_of(sides[side], 1))
    return samples


def in_turn(number: int, sides: int = 2) -> Sequence[int]:
    """The order of the sides in a round: one way and then back, so that a drift cancels."""
    return range(sides) if number % 2 == 0 else range(sides)[::-1]


def seconds_of(task: Task, calls: int) -> float:
    """Seconds a call, over ``calls`` of them."""
    begin = perf_counter()
    for _ in repeat(None, calls):
        task()
    return (perf_counter() - begin) / calls


def warmed_up(task: Task) -> float:
    """Seconds of the fastest call, after some."""
    end = perf_counter() + WARM_UP_SECONDS
    fastest = seconds_of(task, 1)
    while perf_counter() < end:
        fastest = min(fastest, seconds_of(task, 1))
    return fastest


def growth_of(task: Task) -> float:
    """MiB by which the peak of resident memory grows in a call."""
    if sys.platform == "win32":
        raise Skipped("no peak of resident memory to read")
    import resource

    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    task()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / unit
