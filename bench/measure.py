"""Runs the processes that measure, and makes a result of what they measured.

This side loads neither NumPy nor posenc: a process starts with its parent's peak of resident memory for its own, and that of a
small parent hides nothing.
"""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from .child import MARK, Samples, in_turn
from .rows import ROWS, Mode, Row

ROOT = Path(__file__).resolve().parent.parent

#: A process knows this package as bench, wherever it is installed: as posenc.bench it would load posenc with the first import.
START = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import bench.child; del sys.path[0]; bench.child.main()"

#: Variables that say how many threads the contenders use.
THREADS = ("POSENC_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "NUMEXPR_MAX_THREADS")

#: Variables that change how fast NumPy is, and the one that leaves an editable package without the bytecode of an installed.
SCRUBBED = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "PYTHONDONTWRITEBYTECODE")


class Effort(NamedTuple):
    """How long a row is measured: for so many seconds, but at least so many rounds."""

    seconds: float
    rounds: int


EFFORTS: dict[Mode, Effort] = {
    "warm": Effort(2.0, 7),
    "idle": Effort(4.0, 9),
    "cold": Effort(3.0, 9),
    "memory": Effort(1.0, 3),
}
QUICK: dict[Mode, Effort] = {
    "warm": Effort(0.5, 3),
    "idle": Effort(1.0, 5),
    "cold": Effort(1.0, 3),
    "memory": Effort(0.0, 1),
}


class Failed(Exception):
    """A process that measures ended in an error: its words."""


class Result(NamedTuple):
    """A row's outcome. What is compared in pairs is a round's two measurements; the medians are over rounds."""

    contender: float | None = None  # seconds or MiB
    reference: float | None = None
    value: float | None = None
    low: float | None = None  # quartiles of the value
    high: float | None = None
    rounds: int = 0
    goal: float | None = None
    verdict: str = "no goal"  # or met, missed, skipped: why, error: what


class Bench:
    """What all rows of a run share."""

    def __init__(self, quick: bool, threads: int | None) -> None:
        self.efforts = QUICK if quick else EFFORTS
        self.environment = {name: value for name, value in os.environ.items() if name not in SCRUBBED}
        if threads is not None:
            self.environment["POSENC_NUM_THREADS"] = str(threads)

    def ask(self, *arguments: object) -> Any:
        """The answer of `child` in a fresh process."""
        answers, error = self.asked(*arguments)
        if error:
            raise Failed(error)
        return answers[-1]

    def asked(self, *arguments: object, threads: int | None = None) -> tuple[list[Any], str]:
        """All answers of a fresh process, and the words of the error that ended it, if one did."""
        command = [sys.executable, "-c", START, *map(str, arguments)]
        environment = self.environment | ({} if threads is None else dict.fromkeys(THREADS, str(threads)))
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        error = (done.stderr.strip() or f"exit code {done.returncode}") if done.returncode else ""
        lines = [line.removeprefix(MARK) for line in done.stdout.splitlines() if line.startswith(MARK)]
        return list(map(json.loads, lines)), error

    def result(self, number: int, kernel: str) -> Result:
        """Measure row ``number`` and hold it against the goal of ``kernel``."""
        row = ROWS[number]
        effort, goal = self.efforts[row.mode], row.goal(kernel)
        try:
            is_cold = row.mode in ("cold", "memory")
            answer = self._cold(number, effort) if is_cold else self.ask("row", number, *effort)
        except Failed as error:
            return Result(goal=goal, verdict=f"error: {error}")
        if isinstance(answer, dict):
            return Result(goal=goal, verdict=f"skipped: {answer['skipped']}")
        return compared(row, answer, goal)

    def _cold(self, number: int, effort: Effort) -> Samples | dict[str, str]:
        for side in (0, 1):  # files are read into memory
            answer = self.ask("row", number, side)
            if isinstance(answer, dict):
                return answer
        samples: Samples = [[], []]
        end = perf_counter() + effort.seconds
        while len(samples[0]) < effort.rounds or perf_counter() < end:
            for side in in_turn(len(samples[0])):
                samples[side].append(self.ask("row", number, side))
        return samples


def compared(row: Row, samples: Samples, goal: float | None) -> Result:
    """The result of a row's samples."""
    contender, reference = samples[0], [row.scale * sample for sample in samples[1]]
    values = [row.comparison.of(*pair) for pair in zip(contender, reference, strict=True)]
    value = statistics.median(values)
    low, _, high = statistics.quantiles(values, method="inclusive") if len(values) > 1 else (value, value, value)
    if goal is None:
        verdict = "no goal"
    else:
        verdict = "met" if (value <= goal if row.comparison.sense == "<=" else value >= goal) else "missed"
    medians = statistics.median(contender), statistics.median(reference)
    return Result(*medians, value, low, high, len(values), goal, verdict)
