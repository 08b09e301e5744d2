"""The convention of rows that are at positions one after another, or at any.

Phases of a few rows give their positions under each convention, or frequencies that are none's default. What is so guessed is
compared with these rows: strictly, then as arithmetic in float32 or float16 would leave it.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from posenc import _arrays
from posenc._encoding import Encoding
from posenc._match import Match, narrowed, rows_per_block
from posenc._naming import Candidate, by_default, by_progression
from posenc._phases import (
    FARTHEST,
    Layout,
    Noise,
    amplitude_of,
    positions_of,
    progression_of,
    refined_progression,
    steps_of,
)
from posenc.conventions import CONVENTIONS

_EXACT, _SINGLE, _HALF = 2.0**-48, 2.0**-21, 2.0**-10  # of an angle: what float64, float32 and float16 arithmetic lose
_SHARE = 0.97  # of entries that must be as they should
_INFORMATIVE = 0.25  # a tolerance, relative to the amplitude: above it an entry says nothing
_SAYING = 0.4  # of entries that must say something
_BITS = 4.0  # that the phases of a single position must have beyond those of the position
_HEAD, _SPREAD = 6, 12  # rows of the sample: the first, and evenly spread
_WIDE = 16  # columns: in fewer, another base may explain how the frequencies were rounded
_SOLVED = 4  # of them, whose positions are sought first
_FAR, _NEAR = 2**20, 8  # a first position beyond which those within this are tried, too: float32 frequencies are off by as much

Floats = NDArray[np.float64]


class Sample(NamedTuple):
    """Rows that are looked at."""

    table: NDArray[Any]  # all rows, (rows, dim)
    numbers: NDArray[np.intp]  # of those looked at
    rows: Floats
    kind: np.dtype[Any]

    @property
    def unit(self) -> float:
        return 2.0 ** (1 - _arrays.FORMATS[self.kind].precision)


class _Fit(NamedTuple):
    """A candidate that explains the sample."""

    rank: tuple[int, ...]  # the lower the simpler
    score: float  # the lower the closer
    candidate: Candidate
    amplitude: float
    first: float | None
    step: float | None
    is_fitted: bool


def sampled(table: NDArray[Any], kind: np.dtype[Any]) -> Sample | None:
    """Some rows that are finite and not zero, with the dtype of their numbers; None if there is none."""
    length = len(table)
    numbers = np.unique(np.concatenate([np.arange(min(_HEAD, length)), np.linspace(0, length - 1, _SPREAD).astype(np.intp)]))
    rows = table[numbers].astype(np.float64)
    used = np.isfinite(rows).all(axis=1) & (rows != 0.0).any(axis=1)
    if 2 * used.sum() < len(used):
        return None
    numbers, rows = numbers[used], rows[used]
    sizes = np.abs(rows)
    if np.count_nonzero((sizes != 0.0) & (sizes != sizes.max())) >= 8:
        sampled = narrowed(rows.astype(kind), kind)
        kind = kind if sampled == kind else narrowed(table, kind)
    return Sample(table, numbers, rows, kind)


def of_sequence(sample: Sample, only: str | None, base: float | None, first: int | None) -> tuple[Match, bool] | None:
    """What the rows are, and whether its numbers, though not estimates, are not round either."""
    if only is not None and only not in CONVENTIONS:
        return None
    search, rows = _Search(sample, first), sample.rows
    if not any(search.parts.values()):
        return None
    for angle in (_EXACT, _SINGLE, _HALF) if sample.kind.itemsize == 2 else (_EXACT, _SINGLE):
        noise = Noise(sample.unit, angle)
        fits = search.fits(by_default(rows.shape[1], base, only), noise)
        if not fits and base is None:
            fits = search.fits_of_progressions(noise, only)
        if fits:
            return search.match(fits)
    return None


class _Search:
    """What is computed once for all candidates."""

    def __init__(self, sample: Sample, first: int | None) -> None:
        self.sample, self.first = sample, first
        self.parts: dict[Layout, tuple[Floats, float] | None] = {}
        for cos_first in (False, True):
            for interleaved in (True, False):
                for is_zero in (True, False) if sample.rows.shape[1] % 2 else (False,):
                    layout = Layout(interleaved, cos_first, is_zero)
                    self.parts[layout] = self._part(layout)

    def _part(self, layout: Layout) -> tuple[Floats, float] | None:
        """Phases and amplitude, if rows have that layout."""
        rows = self.sample.rows
        if layout.is_zero and rows[:, -1].any():
            return None
        sines, cosines = layout.split(rows)
        amplitude = amplitude_of(sines, cosines, self.sample.unit)
        return None if amplitude is None else (np.arctan2(sines, cosines), amplitude)

    def fits(self, candidates: list[Candidate], noise: Noise) -> list[_Fit]:
        """Those that explain the rows."""
        return [fit for one in candidates if (fit := self.fit(one, noise)) is not None]

    def fits_of_progressions(self, noise: Noise, only: str | None) -> list[_Fit]:
        """Of the roundest numbers near those that rows say which follow each other."""
        for layout, part in self.parts.items():
            found = None if part is None else self._progression(layout, part[0], noise)
            if found is None:
                continue
            estimated, *rounded = by_progression(self.sample.rows.shape[1], *found, only)
            rough = self.fits([one for one in estimated if _layout_of(one.encoding) == layout], noise)
            if not rough:
                continue
            for candidates in rounded:
                alike = [one for one in candidates if _layout_of(one.encoding) == layout]
                fits = [fit for one in alike if (fit := self.fit(one, noise, like=rough[0])) is not None]
                if fits and (noise.angle > _EXACT or self.sample.rows.shape[1] >= _WIDE or not fits[0].candidate.is_doubtful):
                    return fits
            if noise.angle > _EXACT or self.sample.rows.shape[1] >= _WIDE:
                return rough
        return []

    def _progression(self, layout: Layout, phases: Floats, noise: Noise) -> tuple[float, float] | None:
        """First frequency, times the step of positions, and ratio."""
        table, length = self.sample.table, len(self.sample.table)

        def phasors(begin: int, end: int) -> NDArray[np.complex128]:
            sines, cosines = layout.split(table[begin:end].astype(np.float64))
            return np.nan_to_num(cosines + 1j * sines)

        steps = steps_of(phasors, length)
        found = progression_of(steps, 4.0 * noise.unit / length) if len(steps) > 1 else None
        if found is None or not 0.0 < found[1] < 1.0:
            return found
        numbers = self.sample.numbers.astype(np.float64)
        first, ratio = found
        for fix in (True, False):
            whole = round(first)
            if fix and (whole < 1 or abs(first - whole) > 0.05 * first):
                continue
            start = float(whole) if fix else first
            turned = phases if steps[-1] > 0.0 else -phases
            points, known = positions_of(turned, start * ratio ** np.arange(float(len(steps))), Noise(noise.unit, _SINGLE))
            if not known.any():
                continue
            middle = float(np.median(np.rint(points - numbers)))
            better = refined_progression(turned, numbers + middle, start, ratio, noise, fix_first=fix)
            if np.isfinite(better).all() and abs(better[1] - ratio) < 0.05 * ratio:
                return better
        return None

    def fit(self, candidate: Candidate, noise: Noise, like: _Fit | None = None) -> _Fit | None:
        """Where the rows are, if the candidate explains them; at the positions of another fit, if they are evenly spaced."""
        encoding = candidate.encoding
        part = self.parts[_layout_of(encoding)]
        if part is None:
            return None
        phases, measured = part
        amplitude, is_guess = _chosen_amplitude(measured, encoding, self.sample.unit)
        own = amplitude == encoding.amplitude
        if encoding.amplitude != 1.0 and not own:
            return None
        numbers, frequencies = self.sample.numbers.astype(np.float64), encoding.frequencies[: phases.shape[1]]

        def tried(rank: int, points: Floats, first: float | None, step: float | None, fitted: bool) -> _Fit | None:
            score = self._score(encoding, amplitude, points, noise)
            simple = (rank, int(not own))
            return None if score is None else _Fit(simple, score, candidate, amplitude, first, step, is_guess or fitted)

        if self.first is not None:
            return tried(0, numbers + self.first, self.first, 1, False)
        if like is not None and like.first is not None and like.step is not None:
            return tried(
                like.rank[0], like.first + like.step * numbers, like.first, like.step, like.is_fitted and like.rank[0] == 4
            )
        few = np.unique(np.linspace(0, len(numbers) - 1, _SOLVED).astype(np.intp) // 2 * 2 + np.arange(_SOLVED) % 2)
        few = few[few < len(numbers)]
        points, _ = positions_of(phases[few], frequencies, noise)
        for rank, first, step in _progressions(points, numbers[few]):
            is_far = isinstance(first, int) and abs(first) > _FAR
            near = range(-_NEAR, _NEAR + 1) if is_far else (0,)
            fits = [tried(rank, first + i + step * numbers, first + i, step, rank == 4) for i in near]
            if any(fits):
                return min((fit for fit in fits if fit is not None), key=lambda fit: fit.score)
        if len(numbers) < 2 or phases.shape[1] < 3:
            return None
        points, known = positions_of(phases, frequencies, noise)
        if known.mean() < _SHARE:
            return None
        whole = bool((points == np.rint(points)).all())
        return tried(2 if whole else 5, points, None, None, not whole)

    def _score(self, encoding: Encoding, amplitude: float, points: Floats, noise: Noise) -> float | None:
        """Mean error of the rows in tolerances; None if they are others."""
        frequencies, rows = encoding.frequencies, self.sample.rows
        pair, is_sine = _layout_of(encoding).columns(rows.shape[1], len(frequencies))
        angles = (points[:, None] * frequencies)[:, pair]
        wanted = np.where(pair < 0, 0.0, np.where(is_sine, np.sin(angles), np.cos(angles)))
        exact = (frequencies == 1.0)[pair] & (points == np.rint(points))[:, None]  # whatever the arithmetic
        allowed = np.where(exact, noise.unit, noise.of(angles))
        errors = np.abs(rows - amplitude * wanted) / amplitude
        says = allowed < _INFORMATIVE
        if np.count_nonzero(says) < _SAYING * says.size or np.mean((errors <= allowed)[says]) < _SHARE:
            return None
        _, places, same = np.unique(points, return_index=True, return_inverse=True)
        if (np.abs(rows - rows[places[same]]) > 4.0 * noise.unit * amplitude).any():  # one position, different rows
            return None
        if len(places) < 3 and not _is_evidence(points, allowed, says, pair):
            return None
        return float(np.mean(np.minimum(errors / allowed, 10.0)))

    def match(self, fits: list[_Fit]) -> tuple[Match, bool]:
        """The best of them; the others that are as simple and as close, which the rows do not tell apart."""
        fits.sort(key=lambda fit: fit.rank)
        as_simple = [fit for fit in fits if fit.rank == fits[0].rank]
        closest = min(fit.score for fit in as_simple)
        best, *others = [fit for fit in as_simple if fit.score <= 2.0 * closest + 1e-3]
        positions = self._positions(best) if best.first is None else None
        encoding, first = best.candidate.encoding, best.first
        zeros = np.flatnonzero(~(self.sample.table[:64] != 0).any(axis=1)).tolist()
        named = _in_order(best, zeros)
        whole = isinstance(first, int)
        match = Match(
            names=tuple(name for name, _ in named),
            extras=named[0][1],
            others=tuple(dict.fromkeys(fit.candidate.named[0][0] for fit in others if not best.candidate.is_fitted)),
            encoding=encoding.replace(amplitude=best.amplitude, first=first if whole else 0),
            first=first,
            step=best.step,
            positions=positions,
            shape=None,
            dtype=self.sample.kind,
            is_fitted=best.is_fitted or best.candidate.is_fitted or (positions is not None and positions.dtype.kind == "f"),
        )
        return match, best.candidate.is_doubtful

    def _positions(self, fit: _Fit) -> NDArray[Any]:
        """Of all rows."""
        encoding, table = fit.candidate.encoding, self.sample.table
        layout, noise = _layout_of(encoding), Noise(self.sample.unit, _SINGLE)
        n, points = table.shape[1] // 2, np.zeros(len(table))
        size = min(256, rows_per_block(table.shape[1]))
        for begin in range(0, len(table), size):
            phases = np.arctan2(*layout.split(table[begin : begin + size].astype(np.float64)))
            points[begin : begin + size] = positions_of(np.nan_to_num(phases), encoding.frequencies[:n], noise)[0]
        return points.astype(np.int64) if (points == np.rint(points)).all() else points


def _is_evidence(points: Floats, allowed: Floats, says: NDArray[np.bool_], pair: NDArray[np.intp]) -> bool:
    """Whether a row has more bits, in its phases, than its position, which was chosen to explain them."""
    row = int(says.sum(axis=1).argmax())
    _, firsts = np.unique(pair, return_index=True)
    bits = -np.log2(allowed[row, firsts][says[row, firsts] & (pair[firsts] >= 0)])
    if len(bits) < min(2, pair.max() + 1):  # one phase explains itself
        return False
    point = abs(float(points[row]))
    chosen = math.log2(1.0 + 2.0 * point) + (0.0 if point.is_integer() else float(bits.max(initial=0.0)))
    return float(bits.sum()) > chosen + _BITS


def _layout_of(encoding: Encoding) -> Layout:
    is_zero = encoding.dim % 2 == 1 and encoding.odd == "zero"
    return Layout(encoding.layout == "interleaved", encoding.cos_first, is_zero)


def _chosen_amplitude(measured: float, encoding: Encoding, unit: float) -> tuple[float, bool]:
    """The encoding's own, a usual or round one if it is within the error of the measurement; else that, and True."""
    root = math.sqrt(encoding.dim)
    rounded = (float(f"{measured:.{digits}e}") for digits in range(3))
    for amplitude in (encoding.amplitude, 1.0, root, 1.0 / root, *rounded):
        if abs(amplitude - measured) <= 4.0 * unit * measured:
            return float(amplitude), False
    return measured, True


def _progressions(points: Floats, numbers: Floats) -> Iterator[tuple[int, float, float]]:
    """First and step of evenly spaced positions that these may be, with their rank: whole numbers, eighths, any."""
    step = 1.0
    if len(points) > 1:
        step = float(np.median(np.diff(points) / np.diff(numbers)))
        overall = float((points[-1] - points[0]) / (numbers[-1] - numbers[0]))
        step = overall if np.abs(points).max() > _FAR and abs(overall - step) < 1.0 else step
    if not np.isfinite(step):
        return
    for unit in (1.0, 0.125):
        rounded = round(step / unit) * unit
        firsts = (float(np.median(points - rounded * numbers)), float(points[0] - rounded * numbers[0]))
        for first in dict.fromkeys(round(one / unit) * unit for one in firsts):
            if max(abs(first), abs(rounded)) > 8.0 * FARTHEST:
                continue
            if first.is_integer() and rounded.is_integer():
                yield 0 if rounded == 1.0 else 1, int(first), int(rounded)
            else:
                yield 3, first, rounded
    yield 4, float(np.median(points - step * numbers)), step


def _in_order(fit: _Fit, zeros: list[int]) -> list[tuple[str, dict[str, Any]]]:
    """The names of a fit, those first that begin where the table does."""
    named = list(fit.candidate.named)
    if fit.first is None or fit.step != 1 or not isinstance(fit.first, int):
        return named
    first, likely = fit.first, []
    for name, extras in named:
        if name == "fairseq":
            padding = [first + zero for zero in zeros]
            if len(padding) == 1 and padding[0] >= 0:
                likely.append((name, extras if padding[0] == 1 else {**extras, "padding_idx": int(padding[0])}))
            elif first == 2:
                likely.append((name, extras))
        elif name == "opennmt-tf" and first == 1 and not zeros:
            likely.append((name, extras))
    return likely + [one for one in named if one[0] not in (name for name, _ in likely)]
