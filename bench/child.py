"""The side that measures: run by `bench.measure` in a fresh process, answers one line of JSON. See `bench.rows` on imports."""

import sys
from itertools import repeat
from time import perf_counter, sleep

from bench.rows import ROWS, Pair, Skipped, Task

Samples = tuple[list[float], list[float]]  # the contender's and the reference's, a pair each round

WARM_UP_SECONDS = 0.05
SETTLE_SECONDS = 0.05  # of calls before a sample: memory last written by other cores takes more than ten calls to forget it
SAMPLE_SECONDS = 0.02  # of calls back to back, so that neither the clock nor threads waking up are what is measured
IDLE_SECONDS = 0.1


def main() -> None:
    """Measure what the command line says: ``row seconds rounds`` or, for one cold call, ``row side``; or ``machine``."""
    answer: object
    if sys.argv[1] == "machine":
        from bench.report import machine

        answer = machine()
    else:
        try:
            answer = measured(int(sys.argv[1]), *sys.argv[2:])
        except Skipped as reason:
            answer = {"skipped": str(reason)}
    import json

    print(json.dumps(answer))


def measured(number: int, *how: str) -> object:
    """The measurements of a row: `Samples`, or a number if it is a cold call's."""
    row = ROWS[number]
    pair = row.build()
    if row.mode == "cold":
        return seconds_of(pair[int(how[0])], 1)
    if row.mode == "memory":
        return growth_of(pair[int(how[0])])
    return (warm if row.mode == "warm" else idle)(pair, float(how[0]), int(how[1]))


def warm(pair: Pair, seconds: float, rounds: int) -> Samples:
    """Seconds a call, each sample a run of calls."""
    fastest = [warmed_up(task) for task in pair]
    samples: Samples = ([], [])
    end = perf_counter() + seconds
    while len(samples[0]) < rounds or perf_counter() < end:
        for side in in_turn(len(samples[0])):
            for _ in range(round(SETTLE_SECONDS / fastest[side])):
                pair[side]()
            samples[side].append(seconds_of(pair[side], max(1, round(SAMPLE_SECONDS / fastest[side]))))
    return samples


def idle(pair: Pair, seconds: float, rounds: int) -> Samples:
    """Seconds of single calls, each after a pause."""
    for task in pair:
        warmed_up(task)
    samples: Samples = ([], [])
    end = perf_counter() + seconds
    while len(samples[0]) < rounds or perf_counter() < end:
        for side in in_turn(len(samples[0])):
            sleep(IDLE_SECONDS)
            samples[side].append(seconds_of(pair[side], 1))
    return samples


def in_turn(number: int) -> tuple[int, int]:
    """The order of the two sides in a round: each goes first as often as the other, so that a drift cancels."""
    return (0, 1) if number % 2 == 0 else (1, 0)


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
