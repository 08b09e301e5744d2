"""What rows of sines and cosines say: phases, positions for known frequencies, frequencies for consecutive rows.

Estimates in float64. What they find is a guess; `posenc.identify` compares it with the rows.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FARTHEST = 2.0**25  # positions looked for; float32 itself has whole numbers to 2**24
_TURNS = 1024  # of the slowest pair, to each side
_RATIO = 4.0  # from one frequency to the next by which a position is refined
_TRUSTED = 0.5  # radians: a phase that is known less well does not refine a position
_JUDGES = 32  # pairs that judge a position
_FINALISTS = 24  # candidates that they judge
_STRAIGHT = 0.02  # of the logarithms of a progression
_LAG_ROWS = 64  # pairs of rows whose rotation is averaged


class Layout(NamedTuple):
    """Where sines and cosines stand, as in `posenc.Encoding`."""

    interleaved: bool
    cos_first: bool
    is_zero: bool  # the last column of an odd width

    def split(self, rows: NDArray[np.float64]) -> tuple[Floats, Floats]:
        """Sines and cosines of the whole pairs, each (rows, width // 2)."""
        n = rows.shape[1] // 2
        if self.interleaved:
            one, other = rows[:, 0 : 2 * n : 2], rows[:, 1 : 2 * n : 2]
        else:
            middle = n if self.is_zero else rows.shape[1] - n
            one, other = rows[:, :n], rows[:, middle : middle + n]
        return (other, one) if self.cos_first else (one, other)

    def columns(self, width: int, n: int) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Each column's pair, -1 for none, and whether it is a sine."""
        j = np.arange(width)
        if self.interleaved:
            pair, second = j // 2, j % 2 == 1
        else:
            pair, second = j % n, j >= n
        return np.where(self.is_zero & (j >= 2 * n), -1, pair), second == self.cos_first


class Noise(NamedTuple):
    """How far entries may be from amplitude * sin or cos: ``unit`` + ``angle`` * the angle, times the amplitude."""

    unit: float
    angle: float

    def of(self, angles: Floats) -> Floats:
        return self.unit + np.abs(angles) * self.angle


def wrapped(angles: Floats) -> Floats:
    """In [-pi, pi]."""
    turn = 2.0 * math.pi
    return angles - np.rint(angles * (1.0 / turn)) * turn


def amplitude_of(sines: Floats, cosines: Floats, unit: float) -> float | None:
    """Of sines and cosines at one angle each; None if they are not."""
    squares = sines * sines + cosines * cosines
    middle = float(np.median(squares)) if squares.size else 0.0
    if not 0.0 < middle < math.inf or np.mean(np.abs(squares - middle) <= 8.0 * unit * middle) < 0.97:
        return None
    return math.sqrt(middle)


def positions_of(phases: Floats, frequencies: Floats, noise: Noise) -> tuple[Floats, NDArray[np.bool_]]:
    """The position of each row, the smallest that explains its phases, and whether it does.

    ``phases`` is (rows, n), of frequencies that are not 0. The slowest pair leaves as many candidates as turns; each is refined
    by ever faster ones. A whole number is preferred.
    """
    order = np.argsort(np.abs(frequencies), kind="stable")
    used = _refining(np.abs(frequencies)[order], order)
    slowest = frequencies[used[0]]
    turns = min(_TURNS, math.ceil(FARTHEST * abs(slowest) / (2.0 * math.pi)))
    points = (phases[:, used[0], None] + 2.0 * math.pi * np.arange(-turns, turns + 1)) / slowest
    for i, k in enumerate(used[1:], 1):
        angles = points * frequencies[k]
        points = points + np.where(noise.of(angles) < _TRUSTED, wrapped(phases[:, k, None] - angles) / frequencies[k], 0.0)
        if i % 2 == 0 or i + 1 == len(used):
            points = _finalists(
                phases, frequencies, used[: i + 1], points, noise, 8 * _FINALISTS if i + 1 < len(used) else _FINALISTS
            )
    judges = np.unique(np.concatenate([used, order[np.linspace(0, len(order) - 1, _JUDGES).astype(np.intp)]]))
    best, found = np.zeros(len(points)), np.zeros(len(points), np.bool_)
    for candidates in (np.rint(points), points):
        losses = _losses(phases, frequencies, judges, candidates, noise)
        fits = losses < 1.0
        sizes = np.where(fits, np.abs(candidates), np.inf)
        chosen = np.where(fits.any(axis=1), sizes.argmin(axis=1), losses.argmin(axis=1))
        new = ~found
        best[new] = np.take_along_axis(candidates, chosen[:, None], 1)[new, 0]
        found |= fits.any(axis=1)
    return best, found


def _refining(sizes: Floats, order: NDArray[np.intp]) -> NDArray[np.intp]:
    """Numbers of the frequencies that refine a position, the slowest first, given their sizes in ascending ``order``."""
    used = [0]
    for i in range(1, len(order)):
        if i + 1 == len(order) or sizes[i + 1] > _RATIO * sizes[used[-1]]:
            used.append(i)
    return order[used]


def _finalists(phases: Floats, frequencies: Floats, which: NDArray[np.intp], points: Floats, noise: Noise, most: int) -> Floats:
    """The smallest of the candidates that may explain these phases, and the best of the others."""
    if points.shape[1] <= most:
        return points
    losses = np.minimum(*(_losses(phases, frequencies, which, one, noise) for one in (points, np.rint(points))))
    places = np.where(losses < 1.0, np.abs(points) / (8.0 * _TURNS * FARTHEST), losses)
    return np.take_along_axis(points, np.argpartition(places, most, axis=1)[:, :most], 1)


def _losses(phases: Floats, frequencies: Floats, which: NDArray[np.intp], points: Floats, noise: Noise) -> Floats:
    """How badly each candidate, (rows, candidates), explains these phases of its row: below 1 where it does."""
    total = np.zeros(points.shape)
    for k in which:
        angles = points * frequencies[k]
        total += np.minimum((wrapped(phases[:, k, None] - angles) / (3.0 * noise.of(angles))) ** 2, 9.0)
    return np.asarray(total / len(which))


def steps_of(phasors: Callable[[int, int], NDArray[np.complex128]], length: int) -> Floats:
    """Radians from each row to the next, (n,), in [-pi, pi] at first and refined by rows ever farther apart.

    ``phasors(begin, end)`` is (rows, n), 0 where a row says nothing.
    """
    steps = np.zeros(0)
    lag = 1
    while lag < length:
        count = min(_LAG_ROWS, length - lag)
        turned = (phasors(lag, lag + count) * phasors(0, count).conj()).sum(axis=0)
        angles = np.angle(turned)
        steps = angles if lag == 1 else steps + wrapped(angles - lag * steps) / lag
        lag *= 2
    return steps


def progression_of(steps: Floats, smallest: float) -> tuple[float, float] | None:
    """The first and the ratio of the geometric progression that they are, most of them, in size."""
    sizes = np.abs(steps)
    known = np.flatnonzero(sizes > smallest)
    for share in (0.0, 0.25, 0.5, 0.7, 0.85):  # the fast ones may have turned more than once
        slow = known[int(share * len(known)) :]
        if len(slow) < 2:
            return None
        logs, half = np.log(sizes[slow]), len(slow) // 2
        slope = float(np.median((logs[half:] - logs[: len(logs) - half]) / (slow[half:] - slow[: len(slow) - half])))
        first = float(np.median(logs - slope * slow))
        if np.quantile(np.abs(logs - slope * slow - first), 0.9) < _STRAIGHT:
            return math.exp(first), math.exp(slope)
    return None


def refined_progression(
    phases: Floats, positions: Floats, first: float, ratio: float, noise: Noise, *, fix_first: bool
) -> tuple[float, float]:
    """The progression of frequencies that fits phases (rows, n) at known positions best, by least squares."""
    k = np.arange(phases.shape[1])
    for _ in range(4):
        angles = positions[:, None] * (first * ratio**k)
        weights = angles / (noise.of(angles) + 1e-15)
        errors = wrapped(phases - angles) / (noise.of(angles) + 1e-15)
        sure = (noise.of(angles) < _TRUSTED) & (np.abs(errors) < 1e4)
        weights, errors = weights[sure], errors[sure]
        by_slope = weights * np.broadcast_to(k, phases.shape)[sure]
        if fix_first:
            total = float(by_slope @ by_slope)
            changes = (0.0, float(by_slope @ errors) / total if total else 0.0)
        else:
            design = np.stack([weights, by_slope], axis=1)
            changes = tuple(np.linalg.lstsq(design, errors)[0].tolist()) if len(errors) > 1 else (0.0, 0.0)
        first, ratio = first * math.exp(changes[0]), ratio * math.exp(changes[1])
    return first, ratio
